//! The id of a request in the log and in its response: the sender's id, or a number that the server counts.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use longshore_model::TraceContext;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Marks a response without `X-Request-ID`: browsers keep it, and it would name one request for all that follow.
#[derive(Clone, Copy)]
pub(crate) struct WithoutRequestId;
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Longest id of a sender that is used, in bytes.
const ID_BYTES_MAX: usize = 128;

/// The id of a request: unique in this process unless the sender chose it.
#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    /// The request's number, from a random start on. Shown as 16 hex digits.
    Counted(u64),
    /// The sender's `x-request-id`: at most 128 bytes, all of them safe in a log line.
    Given(HeaderValue),
}

/// The trace that a request is part of: a `traceparent` as W3C writes it.
#[derive(Clone, Debug)]
pub(crate) struct Trace(HeaderValue);

/// Returns the id of a request, and its trace if the sender names a valid one.
pub(crate) fn of(headers: &HeaderMap) -> (RequestId, Option<Trace>) {
    let (id, trace) = (headers.get(REQUEST_ID), headers.get(TRACEPARENT));
    let id = match id.filter(|given| is_sane(given.as_bytes())) {
        Some(given) => RequestId::Given(given.clone()),
        None => RequestId::Counted(next()),
    };
    let trace = trace.filter(|value| parsed(value).is_some()).cloned().map(Trace);
    (id, trace)
}

/// The trace that the sender names; `None` without a valid one.
pub(crate) fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(TRACEPARENT).and_then(parsed)
}

fn parsed(value: &HeaderValue) -> Option<TraceContext> {
    TraceContext::parse(value.as_bytes()).filter(|_| value.len() <= ID_BYTES_MAX)
}

impl RequestId {
    /// The value of the response's `x-request-id`.
    pub(crate) fn header(&self) -> HeaderValue {
        match self {
            Self::Given(given) => given.clone(),
            Self::Counted(number) => {
                let mut digits = const_hex::Buffer::<8>::new();
                // Digits are always a header's value.
                HeaderValue::from_str(digits.format(&number.to_be_bytes()))
                    .unwrap_or(const { HeaderValue::from_static("unknown") })
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(given) => f.write_str(given.to_str().unwrap_or_default()),
            Self::Counted(number) => write!(f, "{number:016x}"),
        }
    }
}

impl Trace {
    /// Adds the trace to the response, so that a proxy can assign the response to it.
    pub(crate) fn mark(self, headers: &mut HeaderMap) {
        headers.insert(TRACEPARENT, self.0);
    }
}

/// The trace's id without its version, parent and flags.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().ok().and_then(|text| text.get(3..35)).unwrap_or_default())
    }
}

/// The next number, from a start that is random per process.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<u64> = OnceLock::new();
    let start = START.get_or_init(|| RandomState::new().hash_one(0));
    start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn is_sane(id: &[u8]) -> bool {
    let fits = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'=' | b'@')
    };
    // Looks at all bytes, because the compiler then checks sixteen in one step.
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.iter().fold(true, |all, byte| all & fits(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_senders_name_is_taken_over_if_it_can_stand_in_a_log_line() {
        for given in ["a", "req-1.2:3/4+5=6@7_8", &"x".repeat(128)] {
            let id = of(&headers("x-request-id", given)).0;
            assert_eq!((id.to_string().as_str(), id.header().as_bytes()), (given, given.as_bytes()));
        }
        for given in ["", "a b", "a\"b", "a,b", "{}", "ä", &"x".repeat(129)] {
            let id = of(&headers("x-request-id", given)).0;
            assert!(matches!(id, RequestId::Counted(_)), "{given}");
            assert_eq!(id.header().as_bytes(), id.to_string().as_bytes());
        }
    }

    #[test]
    fn our_numbers_differ() {
        let [one, two] = [HeaderMap::new(), HeaderMap::new()].map(|headers| of(&headers).0.to_string());
        assert!(one != two && one.len() == 16);
    }

    #[test]
    fn a_trace_is_known_by_its_form() {
        let trace = |text: &str| of(&headers("traceparent", text)).1.map(|trace| trace.to_string());
        let id = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        assert_eq!(trace(TRACED), id);
        assert_eq!(trace(&TRACED.replacen("00-", "cc-", 1)), id);
        assert_eq!(trace(&format!("{}-more", TRACED.replacen("00-", "cc-", 1))), id);
        for text in [
            &TRACED[..54],
            &format!("{TRACED}-more"),
            &format!("{}-{}", TRACED.replacen("00-", "cc-", 1), "x".repeat(100)),
        ] {
            assert_eq!(trace(text), None, "{text}");
        }
    }
}
