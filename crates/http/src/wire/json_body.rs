//! Writes JSON responses: small parts go into one buffer, payloads are inserted without a copy.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body::{Body as HttpBody, Frame, SizeHint};
use longshore_engine::BudgetPermit;

/// From this size in bytes on, a payload is sent from where it is instead of being copied.
pub(crate) const SHARED_BYTES_MIN: usize = 16 * 1024;

/// A JSON text under construction. The caller makes sure that the parts form one JSON value.
#[derive(Debug, Default)]
pub(crate) struct JsonBody {
    /// The parts before `tail`, in order.
    done: Vec<Bytes>,
    tail: Vec<u8>,
    held: BudgetPermit,
}

impl JsonBody {
    pub(crate) fn new() -> Self {
        Self::with_capacity(256)
    }

    /// An empty body with capacity for this many bytes; with the exact size, no byte is moved at the end.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { done: Vec::new(), tail: Vec::with_capacity(bytes), held: BudgetPermit::default() }
    }

    /// Appends text without a change: braces, names, literals.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.tail.extend_from_slice(text.as_bytes());
        self
    }

    /// Holds this permit until the last byte of the body is dropped, because the body was made from the bytes that the
    /// permit covers.
    pub(crate) fn hold(&mut self, held: &BudgetPermit) -> &mut Self {
        if !held.is_nothing() {
            self.held = held.clone();
        }
        self
    }

    /// The buffer at the end of the body, for callers that write into a buffer.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends a string with its quotes and escapes.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        // Serializing a `str` into memory cannot fail.
        let _infallible = serde_json::to_writer(&mut self.tail, text);
        self
    }

    /// Appends an integer in decimal digits.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        let _infallible = serde_json::to_writer(&mut self.tail, &number);
        self
    }

    /// Appends a payload: JSON text that is not parsed.
    pub(crate) fn raw(&mut self, payload: &Bytes) -> &mut Self {
        if payload.len() < SHARED_BYTES_MIN {
            self.tail.extend_from_slice(payload);
        } else {
            self.done.push(Bytes::from(std::mem::take(&mut self.tail)));
            self.done.push(payload.clone());
        }
        self
    }

    /// Returns the body as one piece of bytes.
    pub(crate) fn into_bytes(self) -> Bytes {
        let mut whole = Vec::new();
        for piece in self.into_pieces().pieces.into_iter().rev() {
            whole.extend_from_slice(&piece);
        }
        Bytes::from(whole)
    }

    /// Returns a response that calls `taken` when the connection has read the body to its end, but not if the reader
    /// disconnects before. The response has no `Content-Length`: hyper drops a body of known length before its end is
    /// known.
    pub(crate) fn into_response_then(self, taken: impl FnOnce() + Send + 'static) -> Response {
        let body = Body::new(NotifyingBody {
            pieces: self.into_pieces(),
            yielded: false,
            taken: Some(Box::new(taken)),
        });
        as_json(Response::new(body))
    }

    /// The parts of the body in order.
    pub(crate) fn into_parts(mut self) -> Vec<Bytes> {
        if !self.tail.is_empty() {
            self.done.push(self.held.around(Bytes::from(self.tail)));
        }
        self.done
    }

    fn into_pieces(self) -> SegmentedBody {
        let mut pieces = self.into_parts();
        pieces.reverse();
        SegmentedBody { pieces }
    }
}

impl IntoResponse for JsonBody {
    fn into_response(self) -> Response {
        let is_one_piece = self.done.is_empty() && self.held.is_nothing();
        let body = if is_one_piece { Body::from(self.tail) } else { Body::new(self.into_pieces()) };
        as_json(Response::new(body))
    }
}

/// A response whose body is JSON already.
pub(crate) fn json(text: Bytes) -> Response {
    as_json(Response::new(Body::from(text)))
}

fn as_json(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body of known parts, stored last first.
struct SegmentedBody {
    pieces: Vec<Bytes>,
}

impl HttpBody for SegmentedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.pieces.pop().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// A body that reports its end.
struct NotifyingBody {
    pieces: SegmentedBody,
    /// The connection was given a chance to write all pieces.
    yielded: bool,
    taken: Option<Box<dyn FnOnce() + Send>>,
}

impl HttpBody for NotifyingBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(piece) = self.pieces.pieces.pop() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if !self.yielded {
            // Lets the connection write what it has: on a broken connection that fails, and the body is not polled
            // again.
            self.yielded = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(taken) = self.taken.take() {
            taken();
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;

    fn sample(payload: &Bytes) -> JsonBody {
        let mut body = JsonBody::new();
        body.text("{\"a\":")
            .string("\"\n\u{7f}ü")
            .text(",\"b\":")
            .number(u64::MAX)
            .text(",\"c\":")
            .raw(payload)
            .text("}");
        body
    }

    fn big() -> Bytes {
        Bytes::from([b"\"", vec![b'x'; SHARED_BYTES_MIN].as_slice(), b"\""].concat())
    }

    #[tokio::test]
    async fn splices_payloads_as_they_are() {
        for payload in [Bytes::from_static(b"1e400"), big()] {
            let response = sample(&payload).into_response();
            let length = response.body().size_hint().exact().unwrap();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(length, text.len() as u64);
            let head = "{\"a\":\"\\\"\\n\u{7f}ü\",\"b\":18446744073709551615,\"c\":";
            assert_eq!(text, [head.as_bytes(), &payload, b"}"].concat());
        }
    }

    #[test]
    fn a_large_payload_is_not_copied() {
        let payload = big();
        let pieces = sample(&payload).into_pieces().pieces;
        assert!(pieces.iter().any(|piece| piece.as_ptr() == payload.as_ptr()));
    }

    #[tokio::test]
    async fn says_that_it_was_taken_at_its_end_and_not_before() {
        let taken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&taken);
        let response = sample(&big()).into_response_then(move || flag.store(true, Ordering::Relaxed));
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), None);
        for _ in 0..3 {
            assert!(body.frame().await.is_some());
            assert!(!taken.load(Ordering::Relaxed));
        }
        assert!(body.frame().await.is_none());
        assert!(taken.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn says_nothing_when_the_reader_disconnects() {
        let taken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&taken);
        let response = sample(&big()).into_response_then(move || flag.store(true, Ordering::Relaxed));
        let mut body = response.into_body();
        for _ in 0..3 {
            assert!(body.frame().await.is_some());
        }
        drop(body);
        assert!(!taken.load(Ordering::Relaxed));
    }
}
