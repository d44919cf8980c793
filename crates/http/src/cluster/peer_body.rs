//! Bodies on their way to the owner and from it.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use longshore_engine::RequestBody;

/// The body of a request, for one attempt after the other.
pub(super) enum Source {
    /// Kept for as many attempts as it takes.
    Kept(Bytes),
    /// Passed on as it comes. Another attempt may have it if the one before read nothing of it.
    Passing(Arc<Mutex<Passing>>),
}

/// A body that is read once.
pub(super) struct Passing {
    body: Body,
    has_begun: bool,
}

impl Source {
    pub(super) fn passing(body: Body) -> Self {
        Self::Passing(Arc::new(Mutex::new(Passing { body, has_begun: false })))
    }

    /// The body for an attempt; `None` if an earlier one has read some of it.
    pub(super) fn body(&self) -> Option<RequestBody> {
        match self {
            Self::Kept(bytes) => {
                Some(Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync())
            }
            Self::Passing(passing) => {
                let is_whole = !lock(passing).has_begun;
                is_whole.then(|| Lent(Arc::clone(passing)).boxed_unsync())
            }
        }
    }
}

fn lock(passing: &Mutex<Passing>) -> std::sync::MutexGuard<'_, Passing> {
    // A body that panicked is polled by no one again.
    passing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of one attempt.
struct Lent(Arc<Mutex<Passing>>);

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut passing = lock(&self.0);
        let polled = Pin::new(&mut passing.body).poll_frame(context);
        // The end of a body without bytes leaves nothing that another attempt would miss.
        if matches!(polled, Poll::Ready(Some(_))) {
            passing.has_begun = true;
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).body.size_hint()
    }
}

/// The body of the owner's response. It ends with an error when another node owns the shards, for an owner that stands still
/// would never end it.
pub(super) struct PeerBody {
    inner: Body,
    /// Ends when another node owns the shards.
    superseded: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl PeerBody {
    pub(super) fn new(inner: Body, superseded: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { inner, superseded: Box::pin(superseded) }
    }
}

impl HttpBody for PeerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Pending if self.superseded.as_mut().poll(context).is_ready() => {
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
            polled => polled.map_err(io::Error::other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
