//! Whose turn it is on a connection, and since when: a client that does not say what it wants is not waited for
//! for ever.

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

/// How long a connection may be idle between requests, or take to send a later request's head. A worker whose
/// handler blocks for long must find its connection open when it reports: its client library keeps connections
/// for 15 s, others for 90 s, and a result posted into a closed one is lost.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// How long a new connection may take to send its first request's head: nobody connects to say nothing, except
/// those who want to use connections up.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// The client was asked nothing yet, and [`FIRST_HEAD_TIMEOUT`] runs.
const NEW: u64 = u64::MAX;
/// A request is being answered.
const ANSWERING: u64 = u64::MAX - 1;

/// The turns of one connection.
///
/// Told by plain numbers, which somebody looks at from time to time: a timer for every head, set and taken back,
/// cost a tenth of what is needed to read a small request and to answer it.
#[derive(Clone)]
pub(crate) struct HeadTimeout {
    began: Instant,
    /// The client's turn since this many milliseconds after the beginning, or one of the two above.
    state: Arc<AtomicU64>,
}

impl HeadTimeout {
    /// Of a new connection.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), state: Arc::new(AtomicU64::new(NEW)) }
    }

    /// The client has said what it wants.
    pub(crate) fn answering(&self) {
        self.state.store(ANSWERING, Ordering::Relaxed);
    }

    /// Ends when the client has not sent a request's head in time.
    pub(crate) async fn patience_runs_out(&self) {
        loop {
            let end = self.patience_ends();
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }

    /// When the client has to have sent a request's head; later if it is not its turn.
    fn patience_ends(&self) -> Instant {
        match self.state.load(Ordering::Relaxed) {
            NEW => self.began + FIRST_HEAD_TIMEOUT,
            ANSWERING => Instant::now() + HEAD_TIMEOUT,
            since_ms => self.began + Duration::from_millis(since_ms) + HEAD_TIMEOUT,
        }
    }

    /// An answer at the end of which it is the client's turn.
    pub(crate) fn answer(&self, response: Response<Body>) -> Response<TimedBody> {
        response.map(|body| TimedBody { body, turns: self.clone() })
    }
}

/// The body of an answer.
pub(crate) struct TimedBody {
    body: Body,
    turns: HeadTimeout,
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
        let since_ms = self.turns.began.elapsed().as_millis() as u64;
        self.turns.state.store(since_ms, Ordering::Relaxed);
    }
}
