//! The body of a post to `job-done` and `job-stream`: a JSON object around an output that is not parsed.
//!
//! The SDK declares the body as form data, and the text may have Python's `NaN`. The headers are ignored.

use std::fmt;

use bytes::Bytes;
use longshore_engine::Outcome;
use longshore_envelope::too_deep_at;
use longshore_model::limits::JSON_LEVELS_MAX;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::python_json::{plain_text, read_json};

/// A post about a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReportBody {
    /// The `output` member, JSON text, byte for byte.
    pub output: Option<Bytes>,
    /// The `metrics` member, JSON text, if it is an object.
    pub metrics: Option<Bytes>,
    /// The `error` member as plain text; `None` for one of Python's falsy values.
    pub error: Option<String>,
    /// `"status": "IN_PROGRESS"`: this is a progress value, not a result.
    pub in_progress: bool,
    /// `"stopPod": true`: the worker asks to be replaced.
    pub stop_pod: bool,
}

impl ReportBody {
    /// Parses the body of a post.
    pub fn parse(body: &Bytes) -> serde_json::Result<Self> {
        if let Some(at) = too_deep_at(body) {
            // Lists of jobs show outputs: one that ends its reader's parser would hide the others.
            let text = format!("it is nested deeper than {JSON_LEVELS_MAX} levels at byte {at}");
            return Err(serde_json::Error::custom(text));
        }
        read_json(body, |body| {
            let members: ReportMembers<'_> = serde_json::from_slice(body)?;
            // The slices point into `body`, so they share its memory instead of copying it.
            let share = |raw: &RawValue| body.slice_ref(raw.get().as_bytes());
            Ok(Self {
                output: members.output.map(share),
                metrics: members.metrics.filter(|metrics| metrics.get().starts_with('{')).map(share),
                error: members.error.and_then(error_text),
                in_progress: members.status.is_some_and(|status| status.get() == r#""IN_PROGRESS""#),
                stop_pod: members.stop_pod.is_some_and(|flag| flag.get() == "true"),
            })
        })
    }

    /// The content of the report. With an error the job has failed, also if the status says otherwise.
    pub fn into_kind(self) -> ReportKind {
        match self {
            Self { error: Some(error), output, .. } => ReportKind::Ended(Outcome::Failed { error, output }),
            Self { in_progress: true, output, .. } => {
                ReportKind::Progress(output.unwrap_or(Bytes::from_static(b"null")))
            }
            Self { output, .. } => ReportKind::Ended(Outcome::Completed { output }),
        }
    }
}

/// The content of a report.
#[derive(Debug)]
pub(super) enum ReportKind {
    /// The job has ended.
    Ended(Outcome),
    /// The job's progress value: JSON text.
    Progress(Bytes),
}

/// The text for clients of an `error` member: a string's content, or the JSON text of any other value. `None` for
/// Python's falsy values.
fn error_text(raw: &RawValue) -> Option<String> {
    let json = raw.get();
    match json.as_bytes().first()? {
        b'"' => Some(plain_text(json)).filter(|text| !text.is_empty()),
        b'n' | b'f' => None,
        b'[' | b'{' => {
            let inside = json.get(1..json.len() - 1)?.trim();
            (!inside.is_empty()).then(|| json.to_owned())
        }
        b't' => Some(json.to_owned()),
        _ => json.parse::<f64>().is_ok_and(|number| number != 0.0).then(|| json.to_owned()),
    }
}

/// The members that the server uses, as text. Of a repeated member the last one counts, as in Python.
#[derive(Default)]
struct ReportMembers<'a> {
    output: Option<&'a RawValue>,
    metrics: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    stop_pod: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ReportMember {
    Output,
    Metrics,
    Error,
    Status,
    StopPod,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for ReportMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReportMembersVisitor)
    }
}

struct ReportMembersVisitor;

impl<'de> Visitor<'de> for ReportMembersVisitor {
    type Value = ReportMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object with `output` or `error`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = ReportMembers::default();
        while let Some(member) = map.next_key()? {
            match member {
                ReportMember::Output => members.output = Some(map.next_value()?),
                ReportMember::Metrics => members.metrics = Some(map.next_value()?),
                ReportMember::Error => members.error = Some(map.next_value()?),
                ReportMember::Status => members.status = Some(map.next_value()?),
                ReportMember::StopPod => members.stop_pod = Some(map.next_value()?),
                ReportMember::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(body: &str) -> ReportBody {
        ReportBody::parse(&Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    fn word(body: &str) -> String {
        let text = |bytes: Option<Bytes>| {
            bytes.map_or("-".to_owned(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        match parse(body).into_kind() {
            ReportKind::Progress(value) => format!("progress {}", text(Some(value))),
            ReportKind::Ended(Outcome::Completed { output }) => format!("completed {}", text(output)),
            ReportKind::Ended(Outcome::Failed { error, output }) => {
                format!("failed {error:?} {}", text(output))
            }
        }
    }

    #[test]
    fn every_shape_the_worker_sdk_posts_is_understood() {
        for (body, expected) in [
            (r#"{"output": {"a": 1.0}}"#, r#"completed {"a": 1.0}"#),
            (r#"{"output": "hi"}"#, r#"completed "hi""#),
            (r#"{"output": null}"#, "completed null"),
            (r#"{"output": []}"#, "completed []"),
            ("{}", "completed -"),
            (r#"{"output": 1, "stopPod": true}"#, "completed 1"),
            (r#"{"error": "bad"}"#, r#"failed "bad" -"#),
            (r#"{"error": "bad", "output": {"x": 1}}"#, r#"failed "bad" {"x": 1}"#),
            (r#"{"error": "{\"error_type\": \"E\"}"}"#, r#"failed "{\"error_type\": \"E\"}" -"#),
            (r#"{"error": {"message": "m", "code": 1}}"#, r#"failed "{\"message\": \"m\", \"code\": 1}" -"#),
            (r#"{"status": "IN_PROGRESS", "output": 50}"#, "progress 50"),
            (r#"{"status": "IN_PROGRESS"}"#, "progress null"),
        ] {
            assert_eq!(word(body), expected, "{body}");
        }
    }

    #[test]
    fn falsy_errors_are_none_and_truthy_ones_are_text() {
        for falsy in ["null", "false", "\"\"", "0", "0.0", "-0", "[]", "{ }"] {
            assert_eq!(word(&format!(r#"{{"error": {falsy}, "output": 1}}"#)), "completed 1", "{falsy}");
        }
        for (truthy, text) in [("true", "true"), ("7", "7"), ("[0]", "[0]"), ("\" \"", " ")] {
            assert_eq!(word(&format!(r#"{{"error": {truthy}}}"#)), format!("failed {text:?} -"));
        }
        assert_eq!(word(r#"{"error": "e", "status": "IN_PROGRESS"}"#), r#"failed "e" -"#);
    }

    #[test]
    fn numbers_keep_their_digits_beside_a_nan() {
        let body = r#"{"output": [NaN, 1.0, 1e400, 12345678901234567890123, "NaN"]}"#;
        assert_eq!(word(body), r#"completed [null, 1.0, 1e400, 12345678901234567890123, "NaN"]"#);
    }

    #[test]
    fn the_output_shares_the_memory_of_the_body() {
        let body = Bytes::from(r#"{"output": {"big": true}}"#.to_owned());
        let output = ReportBody::parse(&body).unwrap().output.unwrap();
        assert!(body.as_ptr_range().contains(&output.as_ptr()));
    }

    #[test]
    fn a_request_to_be_replaced_is_only_the_literal_true() {
        assert!(parse(r#"{"stopPod": true}"#).stop_pod);
        for other in ["false", "1", "\"true\"", "null"] {
            assert!(!parse(&format!(r#"{{"stopPod": {other}}}"#)).stop_pod);
        }
    }

    #[test]
    fn a_repeated_member_counts_as_in_python() {
        assert_eq!(word(r#"{"output": 1, "output": 2}"#), "completed 2");
    }

    #[test]
    fn a_report_is_512_levels_deep_at_most() {
        let deep =
            |levels: usize| format!(r#"{{"output": {}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(parse(&deep(512)).output.is_some());
        for levels in [513, 2_000, 200_000] {
            let error = ReportBody::parse(&Bytes::from(deep(levels))).unwrap_err().to_string();
            assert!(error.contains("512 levels at byte 522"), "{error}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_place() {
        for (body, part) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("null", "a JSON object with `output` or `error`"),
            ("[1]", "a JSON object"),
            (r#"{"output": tru}"#, "column"),
            (r#"{"output": 1} trailing"#, "trailing"),
            ("output=1", "column 1"),
        ] {
            let error = ReportBody::parse(&Bytes::copy_from_slice(body.as_bytes())).unwrap_err().to_string();
            assert!(error.contains(part), "{body}: {error}");
        }
        ReportBody::parse(&Bytes::from_static(b"{\"output\": \"\xff\"}")).unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body: Vec<u8>) {
            let _ = ReportBody::parse(&body.into());
        }

        #[test]
        fn any_text_in_the_shape_of_a_report_is_survived(inner in r#"[\[\]{}",:0-9a-zN\\I-]{0,40}"#) {
            let _ = ReportBody::parse(&format!(r#"{{"output": {inner}, "error": {inner}}}"#).into());
        }
    }
}
