//! Hostile envelopes of submits.

use longshore_hostile::{JSON_TOKENS, Names, cases, json, mutated, object};
use proptest::prelude::*;
use serde_json::value::RawValue;

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::*;
use crate::members::RESERVED;

fn read(body: &Bytes) -> Result<Envelope, EnvelopeError> {
    parse(body, |_| Ok(None), |_| true)
}

const NAMES: Names = &[
    "input",
    "input",
    "webhook",
    "policy",
    "s3Config",
    "id",
    "status",
    "delayTime",
    "self",
    "executionTimeout",
    "ttl",
    "lowPriority",
    "\\u0069nput",
    "a",
];

const GOOD: &[&str] = &[
    r#"{"input":{"a":[1.0,"ü\ud83d\ude00"]},"webhook":"https://u:p@h.example:81/x?y=z","policy":{"executionTimeout":5000,"ttl":10000,"lowPriority":true}}"#,
    r#" {"x" : null, "input" : { } , "s3Config":{"accessId":"i","accessSecret":"s"} } "#,
    r#"{"id":1,"input":{"n":18446744073709551617,"n":1e400},"input":{"b":[[[]]]},"self":{}}"#,
];

/// An envelope with fields that clients send, in any order.
fn envelope() -> impl Strategy<Value = String> {
    (object(NAMES), object(NAMES), json(NAMES), any::<bool>()).prop_map(|(input, policy, other, known)| {
        let name = if known { "webhook" } else { "more" };
        format!("{{\"policy\":{policy},\"{name}\":{other},\"input\":{input}}}")
    })
}

/// The members of a JSON object according to another reader: a map of texts.
fn read_otherwise(body: &[u8]) -> Option<Vec<(String, String)>> {
    struct Pairs(Vec<(String, String)>);

    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct PairsVisitor;

            impl<'de> Visitor<'de> for PairsVisitor {
                type Value = Pairs;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                    let mut pairs = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                        pairs.push((name, value.get().to_owned()));
                    }
                    Ok(Pairs(pairs))
                }
            }

            deserializer.deserialize_map(PairsVisitor)
        }
    }

    Some(serde_json::from_slice::<Pairs>(body).ok()?.0)
}

/// The members of a request that its worker gets. Of a repeated name the last value counts, at its own place.
fn to_deliver(mut members: Vec<(String, String)>) -> Vec<(String, String)> {
    let names: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
    let mut at = 0;
    members.retain(|(name, _)| {
        at += 1;
        !names[at..].contains(name) && !RESERVED.contains(&name.as_str())
    });
    members
}

/// Checks what must hold of any body: it is refused with 400, or its members are those of the body, byte for byte and
/// in order, without the server's own.
fn holds(body: &[u8]) -> Result<(), TestCaseError> {
    let envelope = match read(&Bytes::copy_from_slice(body)) {
        Ok(envelope) => envelope,
        Err(failure) => {
            prop_assert!(!failure.code().is_empty());
            return Ok(());
        }
    };
    let delivered = [b"{", envelope.members.as_ref(), b"}"].concat();
    let delivered = read_otherwise(&delivered);
    prop_assert!(delivered.is_some(), "the members make no object");
    let sent = read_otherwise(body).map(to_deliver);
    prop_assert_eq!(&delivered, &sent);
    let input = sent.iter().flatten().find(|(name, _)| name == "input").map(|(_, value)| value.as_str());
    let is_object = input.is_some_and(|input| input.starts_with('{'));
    prop_assert!(is_object);
    Ok(())
}

/// A body that every JSON parser accepts must not be refused as "not JSON".
fn agrees(body: &[u8]) -> Result<(), TestCaseError> {
    if let (Ok(serde_json::Value::Object(object)), Err(failure)) =
        (serde_json::from_slice(body), read(&Bytes::copy_from_slice(body)))
    {
        prop_assert!(failure.code() != "bad_json", "{failure:?}");
        let input = object.get("input");
        prop_assert_eq!(failure.code() == "missing_input", input.is_none());
        prop_assert_eq!(failure.code() == "bad_input", input.is_some_and(|input| !input.is_object()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_bytes(body in longshore_hostile::bytes()) {
        holds(&body)?;
        agrees(&body)?;
    }

    #[test]
    fn objects_of_any_members(body in object(NAMES)) {
        holds(body.as_bytes())?;
        agrees(body.as_bytes())?;
    }

    #[test]
    fn envelopes_with_any_values(body in envelope()) {
        holds(body.as_bytes())?;
        agrees(body.as_bytes())?;
    }

    #[test]
    fn spoiled_envelopes(body in mutated(prop_oneof![prop::sample::select(GOOD.to_vec()).prop_map(str::to_owned), envelope()], JSON_TOKENS)) {
        holds(&body)?;
        agrees(&body)?;
    }

    #[test]
    fn a_good_envelope_with_any_input_is_delivered(input in object(NAMES), ttl in TTL_MS_MIN..=TTL_MS_MAX) {
        let body = format!("{{\"policy\":{{\"ttl\":{ttl}}},\"input\":{input},\"webhook\":\"http://a/\"}}");
        prop_assume!(too_deep_at(body.as_bytes()).is_none());
        let envelope = read(&Bytes::from(body.clone().into_bytes())).unwrap();
        prop_assert_eq!(envelope.members.as_ref(), &body.as_bytes()[1..body.len() - 1]);
        prop_assert_eq!((envelope.ttl_ms, envelope.webhook), (Some(ttl as u32), true));
    }
}
