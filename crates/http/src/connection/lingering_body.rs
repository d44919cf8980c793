//! Discards request bodies that no handler read (lingering close).
//!
//! A request, usually a refused one, can have its response before its body has arrived. If the server closed the
//! connection then, the kernel would reset it, and a client that is still sending would see the reset instead of the
//! response. So the rest of the body is read and discarded, within bounds.

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

/// Most bytes that are discarded for one request: the largest body of any route.
const DISCARD_BYTES_MAX: usize = 70_000_000;
/// Longest time to discard one body.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(10);
/// A sender that sends nothing for this long counts as finished.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Bodies that are discarded concurrently; above it, connections are reset.
static DISCARDS: Semaphore = Semaphore::const_new(256);

/// The body of a request. If a handler drops it unread, its rest is discarded.
pub(crate) struct LingeringBody {
    /// `None` after the body has ended or failed.
    inner: Option<Incoming>,
    /// The progress to set when the body has arrived.
    whole: peer::RequestProgress,
    /// The sender waits for `100 Continue` before it sends the body (`Expect: 100-continue`), and the first read sends
    /// that. Until then there is nothing to discard.
    awaits_continue: bool,
}

impl LingeringBody {
    /// Wraps the body of a request, if there is one.
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
            let awaits_continue = head.headers.contains_key(EXPECT);
            axum::body::Body::new(Self { inner: Some(inner), whole, awaits_continue })
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
        self.awaits_continue = false;
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
        let unread = self.inner.take().filter(|inner| !inner.is_end_stream() && !self.awaits_continue);
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
