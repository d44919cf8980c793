//! Bodies on their way: of a request to its worker, and of a response to its client. Neither is stored.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use longshore_engine::{Deadline, Link, RequestBody, RequestSlot};
use tokio::time::{Instant, Sleep, sleep};

use super::request_head::{clean_trailers, is_own, remove_hop_by_hop};
use crate::gate::rate_limits::RequestPermit;

/// The progress of a request's body: the time for the response counts from its last part.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// When the last part was read, in ms since `began`.
    last_ms: AtomicU64,
    /// Whether the worker has taken what was read, and the client has not sent more.
    waits_for_client: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        Self { began: Instant::now(), last_ms: AtomicU64::new(0), waits_for_client: AtomicBool::new(false) }
    }
}

impl Progress {
    /// The same body, whose parts count as progress.
    pub(super) fn watch(self: &Arc<Self>, body: Body) -> RequestBody {
        WatchedBody { inner: body, progress: Arc::clone(self) }.map_err(Into::into).boxed_unsync()
    }

    /// Whether the next part of the body is the client's to send.
    pub(super) fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed)
    }

    /// Awaits a response; `None` if neither the response nor a further part of the body comes within `limit`.
    pub(super) async fn limit<T>(
        &self,
        deadline: &mut Deadline,
        limit: Duration,
        mut answered: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        loop {
            let last = self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let due = (last + limit).max(Instant::now() + Duration::from_millis(1));
            let answer = deadline.limit(due, answered.as_mut()).await;
            if answer.is_some() {
                return answer;
            }
            let last = self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            if last.elapsed() >= limit {
                return None;
            }
        }
    }
}

/// The body of a request, with its progress.
struct WatchedBody {
    inner: Body,
    progress: Arc<Progress>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &mut polled {
            if let Some(trailers) = frame.trailers_mut() {
                clean_trailers(trailers);
            }
            let now_ms = self.progress.began.elapsed().as_millis() as u64;
            self.progress.last_ms.store(now_ms, Ordering::Relaxed);
        }
        self.progress.waits_for_client.store(polled.is_pending(), Ordering::Relaxed);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

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
    ) -> Self {
        Self { inner, link: Some(link), slot: Some(slot), idle_max, idle: None, began, permit, failure: None }
    }

    /// Ends the request. The connection serves further requests if the body is complete.
    fn end(&mut self, is_complete: bool) {
        self.idle = None;
        self.permit = None;
        let Some(slot) = self.slot.take() else { return };
        let link = self.link.take();
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
