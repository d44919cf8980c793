//! Closes connections whose next request head is late: 20 s for the first one, 2 min for later ones.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::gate::peer;

/// How long a connection may be idle between requests, or take to send a later request's head. A worker whose handler
/// blocks must find its connection open when it reports: its client library keeps connections for 15 s, others for 90
/// s. A result posted to a closed connection is lost.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// How long a new connection may take to send its first request's head. Short, because idle new connections are a way
/// to exhaust the server's connections.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// No request has arrived yet, and [`FIRST_HEAD_TIMEOUT`] runs.
const NEW: u64 = u64::MAX;
/// A request waits for its response.
const RESPONDING: u64 = u64::MAX - 1;

/// The state of one connection's head timeout. Clones share it.
///
/// A plain number that a task checks from time to time. A timer that is set and reset for every head would cost a tenth
/// of a small request.
#[derive(Clone)]
pub(crate) struct HeadTimeout {
    began: Instant,
    /// [`NEW`], [`RESPONDING`], or the time from `began` to the end of the last response, in ms.
    state: Arc<AtomicU64>,
}

impl HeadTimeout {
    /// The timeout of a new connection.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), state: Arc::new(AtomicU64::new(NEW)) }
    }

    /// A request head has arrived: the timeout stops until the response has been sent.
    pub(crate) fn pause(&self) {
        self.state.store(RESPONDING, Ordering::Relaxed);
    }

    /// Returns when a request head is late.
    pub(crate) async fn expired(&self) {
        loop {
            let end = self.deadline();
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }

    /// When the next request head is due. Later than now while a request waits for its response.
    fn deadline(&self) -> Instant {
        match self.state.load(Ordering::Relaxed) {
            NEW => self.began + FIRST_HEAD_TIMEOUT,
            RESPONDING => Instant::now() + HEAD_TIMEOUT,
            since_ms => self.began + Duration::from_millis(since_ms) + HEAD_TIMEOUT,
        }
    }

    /// Wraps the response so that the timeout restarts when its body is dropped.
    pub(crate) fn restart_after(&self, response: Response<Body>) -> Response<TimedBody> {
        response.map(|body| TimedBody { body, timeout: self.clone() })
    }
}

/// The body of a response, whose drop restarts the timeout.
pub(crate) struct TimedBody {
    body: Body,
    timeout: HeadTimeout,
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        peer::set_request(peer::RequestProgress::Coming);
        let since_ms = self.timeout.began.elapsed().as_millis() as u64;
        self.timeout.state.store(since_ms, Ordering::Relaxed);
    }
}
