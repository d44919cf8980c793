//! Builds the body of a webhook call: the members of `/status`, then `input` and `webhook` as submitted, no other
//! member.
//!
//! Over the limit of bytes the output is left out, then the input. The members `outputOmitted` and `inputOmitted` say
//! so, and `statusUrl` says where to read the output.

use std::fmt;
use std::io::Write as _;

use http::Uri;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::JobSnapshot;
use crate::job_json::{write_json_string, write_record_members};

/// What a body depends on beside the job.
pub(super) struct BodyContext<'a> {
    /// The endpoint's webhook URL, which is called for jobs without one of their own.
    pub webhook: Option<&'a str>,
    /// Limit of the body, in bytes.
    pub bytes_max: usize,
    /// The URL or path of the job's status.
    pub status_url: &'a str,
}

/// The URL and the body of a call.
pub(super) struct Message {
    /// An absolute `http` or `https` URL with a host.
    pub url: Uri,
    /// The body, a JSON object.
    pub body: Vec<u8>,
}

/// Builds the message for a job. `members` are the job's members as submitted.
///
/// # Errors
///
/// Why no call can be made, for the log of deliveries: the members are not JSON, or the webhook is missing or is no
/// absolute `http` or `https` URL. The text does not quote the webhook, which can hold a secret.
pub(super) fn build(job: &JobSnapshot, members: &[u8], context: &BodyContext<'_>) -> Result<Message, String> {
    let object = [b"{", members, b"}"].concat();
    let envelope: Envelope<'_> =
        serde_json::from_slice(&object).map_err(|error| format!("the stored job is not JSON: {error}"))?;
    let of_endpoint = context.webhook.map(serde_json::value::to_raw_value).transpose();
    let of_endpoint = of_endpoint.map_err(|error| error.to_string())?;
    let webhook = envelope.webhook().or(of_endpoint.as_deref());
    let webhook = webhook.ok_or("neither the job nor its endpoint has a webhook")?;
    let url: String = serde_json::from_str(webhook.get()).map_err(|_| "the webhook is not a string")?;
    let url = address(&url)?;
    let input = envelope.input.map_or("null", RawValue::get);
    let body = write(job, input, webhook.get(), context);
    Ok(Message { url, body })
}

/// The address that calls for a job go to. `members` are the job's members as submitted, empty for one without a webhook of its own;
/// `of_endpoint` is the endpoint's webhook. `None` if no call can be made.
pub(super) fn receiver(members: &[u8], of_endpoint: Option<&str>) -> Option<Uri> {
    let object = [b"{", members, b"}"].concat();
    let envelope: Envelope<'_> = serde_json::from_slice(&object).ok()?;
    let of_job = envelope.webhook().map(|webhook| serde_json::from_str::<String>(webhook.get()));
    match of_job {
        Some(url) => address(&url.ok()?).ok(),
        None => address(of_endpoint?).ok(),
    }
}

/// Reads the text of a webhook. The error does not quote it, because it can hold a secret.
fn address(url: &str) -> Result<Uri, String> {
    let url: Uri = url.parse().map_err(|error| format!("the webhook is not a valid address: {error}"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
        return Err("the webhook is not an absolute http or https address".to_owned());
    }
    Ok(url)
}

/// Writes the body. `input` and `webhook` are JSON, copied byte for byte.
fn write(job: &JobSnapshot, input: &str, webhook: &str, context: &BodyContext<'_>) -> Vec<u8> {
    let output_bytes = job.output.as_ref().map_or(0, bytes::Bytes::len);
    let error_bytes = job.error.as_ref().map_or(0, String::len);
    // 512 is more than the names and numbers of all members need.
    let other_bytes = webhook.len() + error_bytes + 512;
    let omits_output = output_bytes > 0 && output_bytes + input.len() + other_bytes > context.bytes_max;
    let sent_bytes = if omits_output { 0 } else { output_bytes };
    let omits_input = sent_bytes + input.len() + other_bytes > context.bytes_max;
    let input = if omits_input { "" } else { input };
    let mut body = Vec::with_capacity(input.len() + other_bytes + sent_bytes);
    body.push(b'{');
    if omits_output {
        write_record_members(&JobSnapshot { output: None, ..job.clone() }, &mut body);
        // Writing into memory cannot fail.
        let _ = write!(body, r#","outputOmitted":true,"outputBytes":{output_bytes},"statusUrl":"#);
        write_json_string(context.status_url, &mut body);
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

/// The two members that a body contains. The others are skipped: `s3Config` holds credentials.
#[derive(Default)]
struct Envelope<'a> {
    input: Option<&'a RawValue>,
    webhook: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// The job's own webhook. `null` counts as none.
    fn webhook(&self) -> Option<&'a RawValue> {
        self.webhook.filter(|webhook| webhook.get() != "null")
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeReader)
    }
}

/// Reads an object whose keys may repeat: as in most JSON parsers, the last value counts.
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

    #[test]
    fn the_receiver_is_that_of_the_job_or_else_of_the_endpoint() {
        let of = |members: &str, endpoint| receiver(members.as_bytes(), endpoint).map(|url| url.to_string());
        let job = r#""input":1,"webhook":"https://j.example/a""#;
        assert_eq!(of(job, Some("https://e.example/")).as_deref(), Some("https://j.example/a"));
        for none in ["", r#""input":1"#, r#""webhook":null"#] {
            assert_eq!(of(none, Some("https://e.example/")).as_deref(), Some("https://e.example/"), "{none}");
            assert_eq!(of(none, None), None, "{none}");
        }
        assert_eq!(of(r#""webhook":"ftp://x""#, None), None);
    }

    fn text(members: &str) -> Result<(String, String), String> {
        let mut job = completed();
        job.output = Some(Bytes::from_static(b"{\"n\":1.0}"));
        let context = BodyContext { webhook: None, bytes_max: 10_000, status_url: "" };
        let message = build(&job, members.as_bytes(), &context)?;
        Ok((message.url.to_string(), String::from_utf8(message.body).expect("UTF-8")))
    }

    #[test]
    fn the_body_has_the_members_of_status_then_input_and_webhook() {
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
    fn storage_credentials_and_unknown_members_are_not_sent() {
        let (_, body) = text(
            r#""s3Config":{"accessSecret":"hush"},"input":{},"webhook":"http://h.example/","extra":"hush2""#,
        )
        .unwrap();
        assert!(!body.contains("hush") && !body.contains("s3Config"), "{body}");
    }

    #[test]
    fn the_last_of_repeated_members_counts_and_escaped_names_are_read() {
        let (url, _) =
            text(r#""webhook":"http://a.example/","input":{},"\u0077ebhook":"http://b.example/""#).unwrap();
        assert_eq!(url, "http://b.example/");
    }

    #[test]
    fn an_invalid_webhook_is_an_error_that_does_not_quote_it() {
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
    fn the_endpoints_webhook_is_called_for_jobs_without_one() {
        let context =
            BodyContext { webhook: Some("http://default.example/"), bytes_max: 10_000, status_url: "" };
        let text = |members: &str| build(&completed(), members.as_bytes(), &context).unwrap();
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
    fn output_then_input_are_omitted_over_the_limit() {
        let mut job = completed();
        job.output = Some(Bytes::from(format!("\"{}\"", "o".repeat(3_000))));
        let parse = |bytes_max: usize, input: &str| {
            let members = format!(r#""input":{{"a":"{input}"}},"webhook":"http://h.example/""#);
            let context = BodyContext { webhook: None, bytes_max, status_url: "http://me/v2/e/status/j" };
            let body = build(&job, members.as_bytes(), &context).unwrap().body;
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
