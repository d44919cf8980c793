//! The envelope of a job's input: parsed once, checked, and left unchanged.
//!
//! The worker gets the request's members byte for byte, so no value is rebuilt. Values of any depth are
//! skipped without recursion.

mod error;
mod json_depth;
mod members;
mod web_address;

use bytes::Bytes;
use http::Uri;
use longshore_model::limits::{EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_MIN, TTL_MS_MAX, TTL_MS_MIN};

pub use crate::error::EnvelopeError;
pub use crate::json_depth::too_deep_at;
use crate::members::{EnvelopeMembers, MEMBERS_MAX};
pub use crate::web_address::{is_webhook, web_address};

/// The fields of an `s3Config`.
const S3_FIELDS: [&str; 4] = ["accessId", "accessSecret", "bucketName", "endpointUrl"];

/// The body of a submit, checked: what the server needs to know of it, and the members for the worker.
#[derive(Debug)]
pub struct Envelope {
    /// The members of the request's object, without its braces.
    pub members: Bytes,
    /// Whether there is a webhook to call.
    pub webhook: bool,
    /// Whether the job starts after those without this mark.
    pub low_priority: bool,
    /// The field `policy.executionTimeout`, in milliseconds; `None` if absent.
    pub execution_timeout_ms: Option<u32>,
    /// The field `policy.ttl`, in milliseconds; `None` if absent.
    pub ttl_ms: Option<u32>,
}

/// Checks a request's body. The text of an error names the place, never the value, which may be a secret.
///
/// `seal` returns the member that is stored instead of an `s3Config`, if it must not be stored as it is.
/// `may_be_called` returns whether the server may ever call the address of a webhook.
///
/// # Errors
///
/// If the body is no JSON object with the object `input`, a field that the server uses has another form, or `seal` fails.
pub fn parse<E: From<EnvelopeError>>(
    body: &Bytes,
    seal: impl FnOnce(&str) -> Result<Option<String>, E>,
    may_be_called: impl FnOnce(&Uri) -> bool,
) -> Result<Envelope, E> {
    let text = object_of(body)?;
    let members: EnvelopeMembers<'_> = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    check_input(members.get("input"))?;
    let config = members.present("s3Config");
    config.map(check_s3_config).transpose()?;
    let policy = policy(members.present("policy"))?;
    let sealed = config.map(seal).transpose()?.flatten();
    let members_text = if let Some(sealed) = sealed {
        // First, so that it is found without a scan.
        Bytes::from(members.rewritten(sealed.into_bytes(), Some("s3Config")))
    } else if members.are_plain() {
        // `text` is the object and nothing else: the members are between its first and last byte.
        body.slice_ref(text[1..text.len() - 1].trim_ascii().as_bytes())
    } else {
        Bytes::from(members.rewritten(Vec::new(), None))
    };
    Ok(Envelope {
        members: members_text,
        webhook: webhook(members.present("webhook"), may_be_called)?,
        low_priority: policy.low_priority,
        execution_timeout_ms: policy.execution_timeout_ms,
        ttl_ms: policy.ttl_ms,
    })
}

/// Returns the text of the object in the body, without white space around it.
fn object_of(body: &Bytes) -> Result<&str, EnvelopeError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        EnvelopeError::bad_json(format!("the body is not JSON: it is not UTF-8 from byte {at} on"))
    })?;
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return Err(EnvelopeError::bad_json("the body is empty; send a JSON object with `input`"));
    }
    if !text.starts_with('{') {
        return Err(EnvelopeError::bad_json("the body must be a JSON object with `input`"));
    }
    too_deep_at(body).map_or(Ok(text), |at| Err(EnvelopeError::nested_too_deep(at)))
}

fn check_input(input: Option<&str>) -> Result<(), EnvelopeError> {
    match input {
        Some(input) if input.starts_with('{') => Ok(()),
        Some(_) => Err(EnvelopeError::new("bad_input", "`input` must be a JSON object")),
        None => Err(EnvelopeError::new("missing_input", "`input` is missing; it must be a JSON object")),
    }
}

fn not_json(error: &serde_json::Error) -> EnvelopeError {
    if error.is_data() {
        return EnvelopeError::bad_json(format!("an object has over {MEMBERS_MAX} members"));
    }
    let (line, column) = (error.line(), error.column());
    EnvelopeError::bad_json(format!("the body is not JSON: see line {line}, column {column}"))
}

/// Checks the fields that the server uses; others are between the client and its worker. `null` counts as an absent
/// field, as everywhere in a request.
fn check_s3_config(raw: &str) -> Result<(), EnvelopeError> {
    let refused = |text: String| Err(EnvelopeError::new("bad_s3_config", text));
    if !raw.starts_with('{') {
        return refused("`s3Config` must be a JSON object".to_owned());
    }
    let members: EnvelopeMembers<'_> = serde_json::from_str(raw).map_err(|error| not_json(&error))?;
    let is_wrong = |name: &&str| members.present(name).is_some_and(|value| !value.starts_with('"'));
    match S3_FIELDS.iter().find(|name| is_wrong(name)) {
        None => Ok(()),
        // The value may be a secret.
        Some(name) => refused(format!("`s3Config.{name}` must be a string")),
    }
}

#[derive(Debug, Default)]
struct Policy {
    execution_timeout_ms: Option<u32>,
    low_priority: bool,
    ttl_ms: Option<u32>,
}

fn policy(raw: Option<&str>) -> Result<Policy, EnvelopeError> {
    let Some(raw) = raw else { return Ok(Policy::default()) };
    if !raw.starts_with('{') {
        return Err(EnvelopeError::new("bad_policy", "`policy` must be a JSON object"));
    }
    let members: EnvelopeMembers<'_> = serde_json::from_str(raw).map_err(|error| not_json(&error))?;
    let span = |name, min, max| members.present(name).map(|raw| span_ms(name, raw, min, max)).transpose();
    let low_priority = match members.present("lowPriority") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            return Err(EnvelopeError::new("bad_policy", "`policy.lowPriority` must be true or false"));
        }
    };
    Ok(Policy {
        execution_timeout_ms: span("executionTimeout", EXECUTION_TIMEOUT_MS_MIN, EXECUTION_TIMEOUT_MS_MAX)?,
        low_priority,
        ttl_ms: span("ttl", TTL_MS_MIN, TTL_MS_MAX)?,
    })
}

fn span_ms(name: &str, raw: &str, min: u64, max: u64) -> Result<u32, EnvelopeError> {
    // A JSON number that parses here is an integer: no sign, fraction or exponent.
    let value = raw.parse::<u32>().ok().filter(|value| (min..=max).contains(&u64::from(*value)));
    value.ok_or_else(|| {
        let text = format!("`policy.{name}` must be an integer from {min} to {max} (milliseconds)");
        EnvelopeError::new("bad_policy", text)
    })
}

/// Whether there is a webhook to call, at an address that `may_be_called`.
fn webhook(raw: Option<&str>, may_be_called: impl FnOnce(&Uri) -> bool) -> Result<bool, EnvelopeError> {
    let Some(raw) = raw else { return Ok(false) };
    let url =
        serde_json::from_str::<String>(raw).ok().and_then(|url| web_address(&url)).ok_or_else(|| {
            EnvelopeError::new("bad_webhook", "`webhook` must be an absolute http or https URL")
        })?;
    if may_be_called(&url) { Ok(true) } else { Err(EnvelopeError::webhook_never_allowed()) }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::members::RESERVED;

    fn read(body: &Bytes) -> Result<Envelope, EnvelopeError> {
        parse(body, |_| Ok(None), |_| true)
    }

    fn parsed(body: &str) -> Envelope {
        read(&Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    fn members(body: &str) -> String {
        String::from_utf8(parsed(body).members.to_vec()).unwrap()
    }

    fn code(body: impl AsRef<[u8]>) -> &'static str {
        read(&Bytes::copy_from_slice(body.as_ref())).unwrap_err().code()
    }

    #[test]
    fn keeps_members_byte_for_byte_and_without_a_copy() {
        let body = Bytes::from_static(
            b" {\"x\": [1.0, 1e400, 18446744073709551617],\n\"input\":{\"a\" : \"\\u00e9\"}, \"s3Config\":{\"accessId\":\"i\"} }\n",
        );
        let members = read(&body).unwrap().members;
        assert_eq!(members, body.slice(2..body.len() - 3));
        assert_eq!(members.as_ptr(), body[2..].as_ptr());
    }

    #[test]
    fn drops_what_the_server_sets_and_the_earlier_of_two() {
        let body =
            r#"{"id":1,"input":{"id":7},"status":"x","delayTime":1,"self":2,"a\"b":1,"input": {"id":8.0}}"#;
        assert_eq!(members(body), r#""a\"b":1,"input":{"id":8.0}"#);
        // A name written with escapes is the same name.
        assert_eq!(members(r#"{"\u0069d":1,"input":{}}"#), r#""input":{}"#);
    }

    #[test]
    fn a_sealed_config_stands_in_front_of_what_else_there_is() {
        let sealed = |body: &'static str| {
            let seal = |config: &str| Ok(Some(format!(r#""s3Config":"sealed {}""#, config.len())));
            let members =
                parse::<EnvelopeError>(&Bytes::from_static(body.as_bytes()), seal, |_| true).unwrap().members;
            String::from_utf8(members.to_vec()).unwrap()
        };
        let body =
            r#"{"id":1,"input": {"s3Config":{"a":1}} ,"s\u0033Config":{"b":1},"s3Config":{"c":12},"x":1}"#;
        assert_eq!(sealed(body), r#""s3Config":"sealed 8","input":{"s3Config":{"a":1}},"x":1"#);
        assert_eq!(sealed(r#"{"input":{},"s3Config":null}"#), r#""input":{},"s3Config":null"#);
        assert_eq!(code(r#"{"input":{},"s3Config":"longshore-sealed:1:x"}"#), "bad_s3_config");
    }

    #[test]
    fn the_fields_of_an_s3_config_are_strings() {
        for field in S3_FIELDS {
            for value in ["5", "true", "[]", "{}", "1e400"] {
                let body = format!(r#"{{"input":{{}},"s3Config":{{"{field}":"x","{field}" : {value}}}}}"#);
                let failure = read(&Bytes::from(body.clone())).unwrap_err();
                assert_eq!(failure.code(), "bad_s3_config", "{body}");
                let text = format!("{failure:?}");
                assert!(text.contains(&format!("`s3Config.{field}` must be a string")), "{text}");
            }
        }
        // Unchanged: `null` is no field, and the server ignores other fields.
        let body = r#""input":{},"s3Config":{"accessId" : null, "bucketName":"b\u0020","region":1.0}"#;
        assert_eq!(members(&format!("{{{body}}}")), body);
    }

    #[test]
    fn an_input_must_be_an_object() {
        for body in [r#"{"input":null}"#, r#"{"input":[]}"#, r#"{"input":"{}"}"#, r#"{"input":{},"input":1}"#]
        {
            assert_eq!(code(body), "bad_input", "{body}");
        }
        for body in ["{}", r#"{"Input":{}}"#, r#"{"prompt":"x"}"#] {
            assert_eq!(code(body), "missing_input", "{body}");
        }
        assert_eq!(members(r#"{"input":{}}"#), r#""input":{}"#);
    }

    #[test]
    fn a_body_must_be_a_json_object() {
        for body in [
            "",
            " ",
            "null",
            "[]",
            "\"secret\"",
            "x",
            "{",
            "{}}",
            "{\"input\":{}} x",
            "{\"input\":{},}",
            "{'input':{}}",
            "{\"input\":{\"a\":NaN}}",
            "{\"input\":{\"a\":01}}",
            "\u{feff}{\"input\":{}}",
            "{\"input\":{\"a\":\"\n\"}}",
        ] {
            assert_eq!(code(body), "bad_json", "{body}");
        }
        assert_eq!(code(b"{\"input\":{\"a\":\"\xff\"}}"), "bad_json");
    }

    #[test]
    fn a_policy_is_held_to_its_ranges() {
        let policy = |text: &str| format!(r#"{{"input":{{}},"policy":{text}}}"#);
        let envelope = parsed(&policy(r#"{"executionTimeout":5000,"ttl":10000,"lowPriority":true,"x":1}"#));
        assert_eq!(
            (envelope.execution_timeout_ms, envelope.ttl_ms, envelope.low_priority),
            (Some(5_000), Some(10_000), true)
        );
        let envelope =
            parsed(&policy(r#"{"executionTimeout":604800000,"ttl":604800000,"lowPriority":false}"#));
        assert_eq!((envelope.execution_timeout_ms, envelope.ttl_ms), (Some(604_800_000), Some(604_800_000)));
        for absent in ["null", "{}", r#"{"executionTimeout":null,"ttl":null,"lowPriority":null}"#] {
            let envelope = parsed(&policy(absent));
            assert_eq!(
                (envelope.execution_timeout_ms, envelope.ttl_ms, envelope.low_priority),
                (None, None, false)
            );
        }
        for bad in [
            "[]",
            "1",
            r#"{"executionTimeout":4999}"#,
            r#"{"executionTimeout":604800001}"#,
            r#"{"executionTimeout":"9000"}"#,
            r#"{"executionTimeout":9000.0}"#,
            r#"{"executionTimeout":9e3}"#,
            r#"{"executionTimeout":-1}"#,
            r#"{"executionTimeout":99999999999999999999}"#,
            r#"{"ttl":9999}"#,
            r#"{"ttl":604800001}"#,
            r#"{"ttl":true}"#,
            r#"{"lowPriority":1}"#,
            r#"{"lowPriority":"true"}"#,
        ] {
            assert_eq!(code(policy(bad)), "bad_policy", "{bad}");
        }
    }

    #[test]
    fn a_webhook_is_an_absolute_web_address() {
        let body = |text: &str| format!(r#"{{"input":{{}},"webhook":{text}}}"#);
        for good in
            [r#""http://a""#, r#""https://u:p@a.b:81/c?d=e""#, r#""HTTPS:\/\/a""#, r#""http://[::1]:8/""#]
        {
            assert!(parsed(&body(good)).webhook, "{good}");
        }
        assert!(!parsed(&body("null")).webhook);
        assert!(!parsed(r#"{"input":{}}"#).webhook);
        for bad in [
            r#""""#,
            r#""a/b""#,
            r#""/a""#,
            r#""//a/b""#,
            r#""ftp://a""#,
            r#""http://""#,
            r#""http://a b""#,
            "1",
            "{}",
            r#""file:///etc""#,
            r#""http://a:65536/""#,
            r#""http://u@:80/""#,
            r#""http://[::1]:x/""#,
        ] {
            assert_eq!(code(body(bad)), "bad_webhook", "{bad}");
        }
    }

    #[test]
    fn a_webhook_that_may_not_be_called_is_refused() {
        let body = Bytes::from_static(br#"{"input":{},"webhook":"http://u:p@[::1]:80/x"}"#);
        let refused =
            parse::<EnvelopeError>(&body, |_| Ok(None), |url| url.host() != Some("[::1]")).unwrap_err();
        assert_eq!(refused.code(), "webhook_never_allowed");
        assert!(read(&body).unwrap().webhook);
    }

    #[test]
    fn an_s3_config_is_an_object() {
        assert_eq!(code(r#"{"input":{},"s3Config":"x"}"#), "bad_s3_config");
        assert_eq!(members(r#"{"input":{},"s3Config":null}"#), r#""input":{},"s3Config":null"#);
    }

    #[test]
    fn a_body_is_512_levels_deep_at_most() {
        let body = |levels: usize| {
            format!(r#" {{"input":{{"a":{}{}}}}}"#, "[".repeat(levels - 2), "]".repeat(levels - 2))
        };
        assert_eq!(members(&body(512)).len(), body(512).len() - 3);
        let refused = read(&Bytes::from(body(513))).unwrap_err();
        assert_eq!(
            (refused.code(), refused.to_string().ends_with("byte 525")),
            ("nested_too_deep", true),
            "{refused:?}"
        );
        assert_eq!(body(513).as_bytes()[525..527], *b"[]");
        for levels in [2_000, 1_000_000] {
            assert_eq!(code(body(levels)), "nested_too_deep");
            assert_eq!(code(format!(r#"{{"input":{{"a":{}"#, "[".repeat(levels))), "nested_too_deep");
        }
        assert_eq!(code(format!(r#"{{"input":{{"a":{}"#, "[".repeat(400))), "bad_json");
    }

    #[test]
    fn many_members_are_refused_before_they_cost_memory() {
        let many = (0..300).map(|at| format!(r#""k{at}":1"#)).collect::<Vec<_>>().join(",");
        assert_eq!(code(format!(r#"{{{many},"input":{{}}}}"#)), "bad_json");
        assert_eq!(code(format!(r#"{{"input":{{}},"policy":{{{many},"ttl":10000}}}}"#)), "bad_json");
    }

    #[test]
    fn failures_repeat_nothing_of_the_body() {
        for body in
            [r#"{"input":{},"webhook":"hunter2"}"#, r#"{"input":"hunter2"}"#, "\"hunter2\"", r#"{"hunter2"}"#]
        {
            let failure = read(&Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
            assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,8}".prop_map(Into::into),
        ];
        let names = prop_oneof![
            "[a-z]{1,2}",
            Just("id".to_owned()),
            Just("self".to_owned()),
            Just("input".to_owned())
        ];
        leaf.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::hash_map(names.clone(), inner, 0..4)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    /// Checks the result for any input: an error, or members that form a JSON object with an `input`.
    fn holds(body: &[u8]) -> Result<(), TestCaseError> {
        if let Ok(envelope) = read(&Bytes::copy_from_slice(body)) {
            let text = [b"{", envelope.members.as_ref(), b"}"].concat();
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&text).unwrap();
            prop_assert!(object["input"].is_object());
            prop_assert!(RESERVED.iter().all(|name| !object.contains_key(*name)));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_end_well(body in prop::collection::vec(any::<u8>(), 0..200)) {
            holds(&body)?;
        }

        #[test]
        fn any_json_like_text_ends_well(body in r#"(\{|\}|\[|\]|"input"|"id"|:|,|"|\\|1|e|-|\.| |null|u00){0,20}"#) {
            holds(body.as_bytes())?;
            holds(format!("{{\"input\":{{}},{body}}}").as_bytes())?;
            holds(format!("{{\"input\":{{\"a\":{body}}}}}").as_bytes())?;
        }

        #[test]
        fn any_json_ends_well(value in json(), cut in 0_usize..64) {
            let mut text = value.to_string();
            holds(text.as_bytes())?;
            holds(format!("{{\"input\":{{}},\"x\":{text}}}").as_bytes())?;
            if text.is_char_boundary(cut.min(text.len())) {
                text.truncate(cut);
            }
            holds(text.as_bytes())?;
        }
    }
}
