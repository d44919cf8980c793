//! What happens to a body that nobody read.
//!
//! A request can be answered before its body was sent, a refusal mostly. To close the connection then would
//! make the kernel reset it, and a client that is still sending would see that instead of the answer. So the
//! rest is read and thrown away, within bounds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::gate::peer;

/// The most bytes that are thrown away for one request: any body that some route takes.
const DISCARD_BYTES_MAX: usize = 70_000_000;
/// The longest that it may take.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(10);
/// A sender that is silent for so long is not sending.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// How many bodies are thrown away at once; over it connections are reset.
static DISCARDS: Semaphore = Semaphore::const_new(256);

/// A request's body, which outlives a handler that did not read it.
pub(crate) struct LingeringBody {
    inner: Option<Incoming>,
    /// How its request stands when all of it is here.
    whole: peer::RequestProgress,
    /// The sender waits to be told that its body is wanted (`Expect: 100-continue`), which the first read does.
    /// Without that there is nothing to throw away.
    unasked: bool,
}

impl LingeringBody {
    /// Wraps a request's body, if it has one.
    pub(crate) fn body_of(request: Request<Incoming>) -> Request<axum::body::Body> {
        let (head, inner) = request.into_parts();
        let whole = if head.version < Version::HTTP_11 {
            peer::RequestProgress::WholeOfOld
        } else {
            peer::RequestProgress::Whole
        };
        let body = if inner.is_end_stream() {
            peer::set_request(whole);
            axum::body::Body::empty()
        } else {
            peer::set_request(peer::RequestProgress::Coming);
            let unasked = head.headers.contains_key(EXPECT);
            axum::body::Body::new(Self { inner: Some(inner), whole, unasked })
        };
        Request::from_parts(head, body)
    }
}

impl Body for LingeringBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.unasked = false;
        let Some(inner) = self.inner.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *inner).poll_frame(context);
        let is_whole = matches!(polled, Poll::Ready(None)) || inner.is_end_stream();
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.inner = None;
        }
        if is_whole {
            peer::set_request(self.whole);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for LingeringBody {
    fn drop(&mut self) {
        let unread = self.inner.take().filter(|inner| !inner.is_end_stream() && !self.unasked);
        let (Some(inner), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) else { return };
        if let Ok(permit) = DISCARDS.try_acquire() {
            runtime.spawn(async move {
                let _late = tokio::time::timeout(DISCARD_TIME_MAX, discard(inner)).await;
                drop(permit);
            });
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut left = DISCARD_BYTES_MAX;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENCE_MAX, body.frame()).await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(bytes);
        if left == 0 {
            return;
        }
    }
}
