//! The body of a worker's response while its client reads it. It is not stored.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use longshore_engine::{Link, RequestSlot};
use tokio::time::{Instant, Sleep, sleep};

use super::request_head::{is_own, remove_hop_by_hop};
use super::upload::Progress;
use crate::gate::rate_limits::RequestPermit;

/// The body of a worker's response. The request counts as outstanding until the body has ended or is dropped.
pub(super) struct StreamedBody {
    inner: Incoming,
    /// The connection to the worker; `None` after the body has ended.
    link: Option<Link>,
    slot: Option<RequestSlot>,
    /// The longest pause; `None`: no limit.
    idle_max: Option<Duration>,
    /// Runs while the worker sends nothing.
    idle: Option<Pin<Box<Sleep>>>,
    began: Instant,
    permit: Option<RequestPermit>,
    /// The body of the request, if the response began before all of it had come.
    upload: Option<Arc<Progress>>,
    /// Why the body ends early, which the next poll says.
    failure: Option<io::Error>,
}

/// Removes headers of this server, and those of one connection, from the trailers of a response.
fn remove_own(frame: &mut Frame<Bytes>) {
    if let Some(trailers) = frame.trailers_mut() {
        remove_hop_by_hop(trailers, is_own);
    }
}

impl StreamedBody {
    pub(super) fn new(
        inner: Incoming,
        link: Link,
        slot: RequestSlot,
        idle_max: Option<Duration>,
        began: Instant,
        permit: Option<RequestPermit>,
        upload: Option<Arc<Progress>>,
    ) -> Self {
        let (link, slot) = (Some(link), Some(slot));
        Self { inner, link, slot, idle_max, idle: None, began, permit, upload, failure: None }
    }

    /// Ends the request. The connection serves further requests if the body is complete, and that of the request was before the
    /// response began: a worker that ignores bodies may take the rest for another request.
    fn end(&mut self, is_complete: bool) {
        self.idle = None;
        self.permit = None;
        let Some(slot) = self.slot.take() else { return };
        let mut link = self.link.take();
        if let Some(upload) = self.upload.take() {
            upload.cut();
            link = None;
        }
        let now = Instant::now();
        if let Some(link) = link.filter(|_| is_complete) {
            slot.worker().links().keep_idle(now, link);
        }
        let took = now.duration_since(self.began);
        slot.balancer().metrics().duration_ms.record(took.as_millis() as u64);
    }

    /// Ends the body early, at the next poll: hyper sends what it has before, and no more once a body has failed.
    fn fail(
        &mut self,
        context: &Context<'_>,
        error: io::Error,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.end(false);
        self.failure = Some(error);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether the worker has sent nothing for too long.
    fn is_stalled(&mut self, context: &mut Context<'_>) -> bool {
        let Some(idle_max) = self.idle_max else { return false };
        let idle = self.idle.get_or_insert_with(|| Box::pin(sleep(idle_max)));
        idle.as_mut().poll(context).is_ready()
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(mut frame))) => {
                remove_own(&mut frame);
                let idle_max = self.idle_max;
                if let (Some(idle), Some(idle_max)) = (&mut self.idle, idle_max) {
                    idle.as_mut().reset(Instant::now() + idle_max);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                self.end(true);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => self.fail(context, io::Error::other(error)),
            Poll::Pending if self.is_stalled(context) => self.fail(context, io::ErrorKind::TimedOut.into()),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for StreamedBody {
    fn drop(&mut self) {
        let is_complete = self.inner.is_end_stream();
        self.end(is_complete);
    }
}
