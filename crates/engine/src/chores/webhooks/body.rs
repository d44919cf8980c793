//! What a receiver gets: the job record plus `input` and `webhook`, and nothing else of what was submitted.

use std::fmt;

use http::Uri;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::JobSnapshot;
use crate::record::write_record_members;

/// A call, ready to be made.
pub(super) struct Message {
    pub url: Uri,
    pub body: Vec<u8>,
}

/// Builds the message from a job and its submitted members.
pub(super) fn build(job: &JobSnapshot, members: &[u8]) -> Result<Message, String> {
    let object = [b"{", members, b"}"].concat();
    let envelope: Envelope<'_> = serde_json::from_slice(&object)
        .map_err(|error| format!("the stored job is not readable: {error}"))?;
    let webhook = envelope.webhook.ok_or("the stored job names no webhook")?;
    let url: String = serde_json::from_str(webhook.get()).map_err(|_| "the webhook is not a string")?;
    // The error of the parser would not quote the address; keep it so, it can hold a secret.
    let url: Uri = url.parse().map_err(|error| format!("the webhook is not a valid address: {error}"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err("the webhook is not an absolute http or https address".to_owned());
    }
    let input = envelope.input.map_or("null", RawValue::get);
    let output_bytes = job.output.as_ref().map_or(0, bytes::Bytes::len);
    let mut body = Vec::with_capacity(input.len() + webhook.get().len() + output_bytes + 512);
    body.push(b'{');
    write_record_members(job, &mut body);
    for (name, value) in [("input", input), ("webhook", webhook.get())] {
        body.extend_from_slice(b",\"");
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(b"\":");
        body.extend_from_slice(value.as_bytes());
    }
    body.push(b'}');
    Ok(Message { url, body })
}

/// The two members that concern a webhook; the others (`s3Config`!) are not even looked at.
#[derive(Default)]
struct Envelope<'a> {
    input: Option<&'a RawValue>,
    webhook: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// Reads an object whose keys may repeat: as in most JSON readers, the last one counts.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the members of a job")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "input" => envelope.input = Some(map.next_value()?),
                "webhook" => envelope.webhook = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::chores::webhooks::tests::completed;

    fn text(members: &str) -> Result<(String, String), String> {
        let mut job = completed();
        job.output = Some(Bytes::from_static(b"{\"n\":1.0}"));
        let message = build(&job, members.as_bytes())?;
        Ok((message.url.to_string(), String::from_utf8(message.body).expect("UTF-8")))
    }

    #[test]
    fn the_body_is_the_record_with_input_and_webhook() {
        let (url, body) =
            text(r#""input":{"n":1e400,"s":"é"},"webhook":"https://h.example\/x?k=1","policy":{}"#).unwrap();
        assert_eq!(url, "https://h.example/x?k=1");
        let id = completed().row.id;
        assert_eq!(
            body,
            format!(
                r#"{{"id":"{id}","status":"COMPLETED","delayTime":5,"executionTime":20,"workerId":"w1","#
            ) + r#""output":{"n":1.0},"input":{"n":1e400,"s":"é"},"webhook":"https://h.example\/x?k=1"}"#
        );
    }

    #[test]
    fn storage_credentials_and_unknown_members_stay_here() {
        let (_, body) = text(
            r#""s3Config":{"accessSecret":"hush"},"input":{},"webhook":"http://h.example/","extra":"hush2""#,
        )
        .unwrap();
        assert!(!body.contains("hush") && !body.contains("s3Config"), "{body}");
    }

    #[test]
    fn the_last_of_repeated_members_counts_and_escaped_names_are_known() {
        let (url, _) =
            text(r#""webhook":"http://a.example/","input":{},"\u0077ebhook":"http://b.example/""#).unwrap();
        assert_eq!(url, "http://b.example/");
    }

    #[test]
    fn an_unusable_address_is_named_without_quoting_it() {
        for members in [
            r#""input":{},"webhook":"ftp://secret.example/""#,
            r#""input":{},"webhook":"/secret""#,
            r#""input":{},"webhook":"http://secret example/""#,
            r#""input":{},"webhook":7"#,
            r#""input":{}"#,
        ] {
            let error = text(members).expect_err(members);
            assert!(error.contains("webhook") && !error.contains("secret"), "{error}");
        }
    }
}
