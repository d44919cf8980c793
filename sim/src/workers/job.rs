//! A job as a worker receives it.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct ReceivedJob<'a> {
    #[serde(borrow)]
    id: std::borrow::Cow<'a, str>,
    #[serde(rename = "input")]
    _input: IgnoredAny,
}

/// The mark of a job that makes the whole take response unreadable. In reality, this is a number with more digits
/// than Python parses.
pub const UNREADABLE: &str = r#""unreadable":true"#;

/// Whether a take's response makes its parser fail, so that none of its jobs arrives.
pub(super) fn is_unreadable(body: &[u8]) -> bool {
    body.windows(UNREADABLE.len()).any(|window| window == UNREADABLE.as_bytes())
}

/// The job ids in a take's response. An invalid response has none, as with the SDK.
pub(super) fn ids(body: &[u8]) -> Vec<Arc<str>> {
    let jobs = if body.first() == Some(&b'[') {
        serde_json::from_slice::<Vec<ReceivedJob<'_>>>(body).unwrap_or_default()
    } else {
        serde_json::from_slice::<ReceivedJob<'_>>(body).map(|job| vec![job]).unwrap_or_default()
    };
    jobs.into_iter().map(|job| Arc::from(&*job.id)).collect()
}

#[derive(Default, Deserialize)]
struct Stops<'a> {
    #[serde(borrow, rename = "jobsToStop")]
    jobs: Vec<std::borrow::Cow<'a, str>>,
}

/// The jobs that a response tells the worker to stop.
pub(super) fn stops(body: &[u8]) -> Vec<Arc<str>> {
    let stops = serde_json::from_slice::<Stops<'_>>(body).unwrap_or_default();
    stops.jobs.into_iter().map(|job| Arc::from(&*job)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ids: &[Arc<str>]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_job_or_many_are_read() {
        assert_eq!(texts(&ids(br#"{"id":"a","delayTime":1,"input":{}}"#)), ["a"]);
        assert_eq!(texts(&ids(br#"[{"id":"a","input":{}},{"id":"b","input":null}]"#)), ["a", "b"]);
        for nothing in ["", "[]", "null", r#"{"id":"a"}"#, "oops"] {
            assert!(ids(nothing.as_bytes()).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn stops_are_read() {
        assert_eq!(texts(&stops(br#"{"jobsToStop":["a","b"]}"#)), ["a", "b"]);
        assert!(stops(b"").is_empty());
    }
}
