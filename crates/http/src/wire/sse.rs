//! Server-sent events: their format, and responses made of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue};
use http_body::{Body as HttpBody, Frame};

use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// The content type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Longest silence of a response before it sends a comment: proxies and clients close silent responses.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment, which clients skip.
pub(crate) const COMMENT: &[u8] = b": keep-alive\n\n";

/// Asks proxies not to buffer the response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Whether a request accepts events.
pub(crate) fn are_wanted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let media = range.split(';').next().unwrap_or_default();
        media.trim().eq_ignore_ascii_case(EVENT_STREAM)
    })
}

/// Returns JSON text without line breaks, which would end a `data:` line. In JSON, line breaks are white space only.
pub(crate) fn on_one_line(json: Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !json.iter().any(is_break) {
        return json;
    }
    json.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect()
}

/// The header with the `id` of the last event that a reader got.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Returns the `id` after which a reader wants to go on; `None` without the header. An `id` that is no number is refused.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    // Browsers omit the header without an id; other clients send it empty.
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    let number = value.to_str().ok().filter(|_| digits).and_then(|text| text.parse().ok());
    let refusal = || ApiError::bad_request("bad_parameter", "`Last-Event-ID` must be the `id` of an event");
    number.map(Some).ok_or_else(refusal)
}

/// Resolves to the next bytes of a response and the source of further ones; `None` at the end.
pub(crate) type Next<S> = Pin<Box<dyn Future<Output = Option<(Vec<Bytes>, S)>> + Send>>;

/// A response of events. `next` makes them from `source` when the connection is ready to send; while it is not, none is
/// made.
pub(crate) fn answer<S: Send + Unpin + 'static>(source: S, next: fn(S) -> Next<S>) -> Response {
    let body = EventStream { pieces: Vec::new(), making: Some(next(source)), next };
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

struct EventStream<S> {
    /// Pieces that are ready, stored last first.
    pieces: Vec<Bytes>,
    making: Option<Next<S>>,
    next: fn(S) -> Next<S>,
}

impl<S: Send + Unpin + 'static> HttpBody for EventStream<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(piece) = self.pieces.pop() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(making) = self.making.as_mut() else { return Poll::Ready(None) };
            let Poll::Ready(made) = making.as_mut().poll(context) else { return Poll::Pending };
            let Some((mut pieces, source)) = made else {
                self.making = None;
                return Poll::Ready(None);
            };
            pieces.reverse();
            self.pieces = pieces;
            self.making = Some((self.next)(source));
        }
    }
}

impl JsonBody {
    /// Begins an event with this name and one line of data.
    pub(crate) fn event(&mut self, name: &str) -> &mut Self {
        self.text("event: ").text(name).text("\ndata: ")
    }

    /// Ends an event with the empty line that a client waits for.
    pub(crate) fn end_event(&mut self) -> &mut Self {
        self.text("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_wanted_if_the_header_names_them() {
        for (accept, wanted) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.5", true),
            ("*/*", false),
            ("text/*", false),
            ("text/event-streams", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(are_wanted(&headers), wanted, "{accept}");
        }
        assert!(!are_wanted(&HeaderMap::new()));
    }

    #[test]
    fn json_on_one_line_means_the_same() {
        let json = Bytes::from_static(b"{\n \"a\": \"x\\ny\",\r\n\"b\": 1.0\n}");
        assert_eq!(on_one_line(json), &b"{  \"a\": \"x\\ny\",  \"b\": 1.0 }"[..]);
        let short = Bytes::from_static(b"[1]");
        assert_eq!(on_one_line(short.clone()).as_ptr(), short.as_ptr());
    }
}
