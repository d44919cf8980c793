//! What a receiver gets: the job record plus `input` and `webhook`, and nothing else of what was submitted.
//!
//! Where that is too much for one call, the output is left out, and if need be the input: what is sent says so, and
//! where to find the output.

use std::fmt;
use std::io::Write as _;

use http::Uri;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::JobSnapshot;
use crate::job_json::{write_json_string, write_record_members};

/// What a body is made of beside the job.
pub(super) struct BodyContext<'a> {
    /// Who is told if the job names nobody.
    pub webhook: Option<&'a str>,
    /// The most bytes.
    pub bytes_max: usize,
    /// Where the job's status is.
    pub status_url: &'a str,
}

/// A call, ready to be made.
pub(super) struct Message {
    pub url: Uri,
    pub body: Vec<u8>,
}

/// Builds the message from a job and its submitted members.
pub(super) fn build(job: &JobSnapshot, members: &[u8], frame: &BodyContext<'_>) -> Result<Message, String> {
    let object = [b"{", members, b"}"].concat();
    let envelope: Envelope<'_> = serde_json::from_slice(&object)
        .map_err(|error| format!("the stored job is not readable: {error}"))?;
    let of_endpoint = frame.webhook.map(serde_json::value::to_raw_value).transpose();
    let of_endpoint = of_endpoint.map_err(|error| error.to_string())?;
    // A webhook that is null names nobody.
    let of_job = envelope.webhook.filter(|webhook| webhook.get() != "null");
    let webhook = of_job.or(of_endpoint.as_deref());
    let webhook = webhook.ok_or("the job names no webhook, and its endpoint none any more")?;
    let url: String = serde_json::from_str(webhook.get()).map_err(|_| "the webhook is not a string")?;
    // The error of the parser would not quote the address; keep it so, it can hold a secret.
    let url: Uri = url.parse().map_err(|error| format!("the webhook is not a valid address: {error}"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err("the webhook is not an absolute http or https address".to_owned());
    }
    let input = envelope.input.map_or("null", RawValue::get);
    let body = write(job, input, webhook.get(), frame);
    Ok(Message { url, body })
}

fn write(job: &JobSnapshot, input: &str, webhook: &str, frame: &BodyContext<'_>) -> Vec<u8> {
    let output_bytes = job.output.as_ref().map_or(0, bytes::Bytes::len);
    let error_bytes = job.error.as_ref().map_or(0, String::len);
    let other_bytes = webhook.len() + error_bytes + 512;
    let omits_output = output_bytes > 0 && output_bytes + input.len() + other_bytes > frame.bytes_max;
    let sent_bytes = if omits_output { 0 } else { output_bytes };
    let omits_input = sent_bytes + input.len() + other_bytes > frame.bytes_max;
    let input = if omits_input { "" } else { input };
    let mut body = Vec::with_capacity(input.len() + other_bytes + sent_bytes);
    body.push(b'{');
    if omits_output {
        write_record_members(&JobSnapshot { output: None, ..job.clone() }, &mut body);
        // Writing into memory cannot fail.
        let _ = write!(body, r#","outputOmitted":true,"outputBytes":{output_bytes},"statusUrl":"#);
        write_json_string(frame.status_url, &mut body);
    } else {
        write_record_members(job, &mut body);
    }
    if omits_input {
        body.extend_from_slice(br#","inputOmitted":true"#);
    }
    for (name, value) in [("input", input), ("webhook", webhook)] {
        if value.is_empty() {
            continue;
        }
        body.extend_from_slice(b",\"");
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(b"\":");
        body.extend_from_slice(value.as_bytes());
    }
    body.push(b'}');
    body
}

/// The two members that concern a webhook; the others (`s3Config`!) are not even looked at.
#[derive(Default)]
struct Envelope<'a> {
    input: Option<&'a RawValue>,
    webhook: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeReader)
    }
}

/// Reads an object whose keys may repeat: as in most JSON readers, the last one counts.
struct EnvelopeReader;

impl<'de> Visitor<'de> for EnvelopeReader {
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
    use crate::webhooks::tests::completed;

    fn text(members: &str) -> Result<(String, String), String> {
        let mut job = completed();
        job.output = Some(Bytes::from_static(b"{\"n\":1.0}"));
        let frame = BodyContext { webhook: None, bytes_max: 10_000, status_url: "" };
        let message = build(&job, members.as_bytes(), &frame)?;
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

    #[test]
    fn the_endpoints_webhook_is_called_for_jobs_that_name_none() {
        let frame =
            BodyContext { webhook: Some("http://default.example/"), bytes_max: 10_000, status_url: "" };
        let text = |members: &str| build(&completed(), members.as_bytes(), &frame).unwrap();
        for members in [r#""input":{}"#, r#""input":{},"webhook":null"#] {
            let message = text(members);
            assert_eq!(message.url, "http://default.example/");
            assert!(
                String::from_utf8(message.body).unwrap().ends_with(r#""webhook":"http://default.example/"}"#)
            );
        }
        assert_eq!(text(r#""input":{},"webhook":"http://own.example/""#).url, "http://own.example/");
    }

    #[test]
    fn what_is_too_large_is_left_out_and_can_be_found() {
        let mut job = completed();
        job.output = Some(Bytes::from(format!("\"{}\"", "o".repeat(3_000))));
        let parse = |bytes_max: usize, input: &str| {
            let members = format!(r#""input":{{"a":"{input}"}},"webhook":"http://h.example/""#);
            let frame = BodyContext { webhook: None, bytes_max, status_url: "http://me/v2/e/status/j" };
            let body = build(&job, members.as_bytes(), &frame).unwrap().body;
            assert!(body.len() <= bytes_max, "{}", body.len());
            serde_json::from_slice::<serde_json::Value>(&body).unwrap()
        };
        let whole = parse(4_000, "");
        assert!(whole["output"].is_string() && whole.get("outputOmitted").is_none(), "{whole}");
        let without = parse(3_000, "");
        assert!(without.get("output").is_none() && without["input"].is_object(), "{without}");
        assert_eq!((&without["outputOmitted"], &without["outputBytes"]), (&true.into(), &3_002.into()));
        assert_eq!(without["statusUrl"], "http://me/v2/e/status/j");
        let least = parse(1_000, &"i".repeat(1_000));
        assert!(least.get("input").is_none() && least["inputOmitted"] == true, "{least}");
    }
}
