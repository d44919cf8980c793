//! The body of a request while its worker reads it, and how slowly it may come. It is not stored.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use longshore_engine::{Deadline, RequestBody};
use tokio::time::Instant;

use super::error::LbError;
use super::request_head::clean_trailers;

/// The slowest rate of a request's body, in bytes per s: these have to come for each second of waiting beyond the limit.
const BYTES_PER_S_MIN: u64 = 1024;
/// How long a body that waits for its worker is not looked at: it may wait for its client from any moment on.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// In place of a time, while a body does not wait for its client.
const NEVER: u64 = u64::MAX;

/// The progress of a request's body: the time for the response counts from its last part. The client has that much time for
/// its body too, and more for one that comes at [`BYTES_PER_S_MIN`]: until the response begins, the body occupies its worker.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// When the last part was read, in ms since `began`.
    last_ms: AtomicU64,
    /// The bytes that were read.
    bytes: AtomicU64,
    /// How long the worker has waited for the client before, in ms.
    waited_ms: AtomicU64,
    /// Since when the worker has taken what was read, and the client has not sent more, in ms since `began`; [`NEVER`]: the next
    /// part is the worker's to take, or there is none.
    waits_since_ms: AtomicU64,
    /// Whether all of the body was read.
    is_whole: AtomicBool,
    /// Whether the rest of the body is of no use.
    is_cut: AtomicBool,
    /// The task that reads the body.
    reader: AtomicWaker,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            last_ms: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            waited_ms: AtomicU64::new(0),
            waits_since_ms: AtomicU64::new(NEVER),
            is_whole: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        }
    }
}

impl Progress {
    /// The same body, whose parts count as progress.
    pub(super) fn watch(self: &Arc<Self>, body: Body) -> RequestBody {
        WatchedBody { inner: body, progress: Arc::clone(self) }.map_err(Into::into).boxed_unsync()
    }

    /// Whether the worker had all of the body to read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    /// Ends the body early, which closes the connection to the worker.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.reader.wake();
    }

    /// Awaits the response, and measures the request's body meanwhile.
    ///
    /// # Errors
    ///
    /// [`LbError::TimedOut`] and [`LbError::BodyTimedOut`] if neither the response nor a further part of the body comes within
    /// `limit`; [`LbError::BodyTooSlow`] if the worker has waited for the body for longer than `limit`, and for longer than
    /// the body may take.
    pub(super) async fn limit<T>(
        &self,
        deadline: &mut Deadline,
        limit: Duration,
        mut answered: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, LbError> {
        loop {
            let due = self.next_look(limit).max(Instant::now() + Duration::from_millis(1));
            if let Some(answer) = deadline.limit(due, answered.as_mut()).await {
                return Ok(answer);
            }
            let waits_since = self.waits_since();
            if self.last().elapsed() >= limit {
                return Err(if waits_since.is_some() { LbError::BodyTimedOut } else { LbError::TimedOut });
            }
            if waits_since.is_some_and(|since| since.elapsed() >= self.patience(limit)) {
                return Err(LbError::BodyTooSlow);
            }
        }
    }

    /// When the time may be over, as far as it is known now.
    fn next_look(&self, limit: Duration) -> Instant {
        let patience = self.patience(limit);
        let too_slow = match self.waits_since() {
            Some(since) => since + patience,
            None => Instant::now() + patience.max(LOOK_INTERVAL),
        };
        too_slow.min(self.last() + limit)
    }

    /// How long the worker may wait for the client from now on.
    fn patience(&self, limit: Duration) -> Duration {
        let earned_ms = self.bytes.load(Ordering::Relaxed).saturating_mul(1000) / BYTES_PER_S_MIN;
        let waited = Duration::from_millis(self.waited_ms.load(Ordering::Relaxed));
        (limit + Duration::from_millis(earned_ms)).saturating_sub(waited)
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn waits_since(&self) -> Option<Instant> {
        let since_ms = self.waits_since_ms.load(Ordering::Relaxed);
        (since_ms != NEVER).then(|| self.began + Duration::from_millis(since_ms))
    }

    /// Notes what a read of the body has brought; `is_pending`: the client has not sent more.
    fn note(&self, frame: Option<&Frame<Bytes>>, is_pending: bool) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let since_ms = self.waits_since_ms.load(Ordering::Relaxed);
        if is_pending {
            if since_ms == NEVER {
                self.waits_since_ms.store(now_ms, Ordering::Relaxed);
            }
            return;
        }
        // One task alone reads the body.
        if since_ms != NEVER {
            self.waited_ms.fetch_add(now_ms - since_ms, Ordering::Relaxed);
            self.waits_since_ms.store(NEVER, Ordering::Relaxed);
        }
        if let Some(frame) = frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.last_ms.store(now_ms, Ordering::Relaxed);
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
        self.progress.reader.register(context.waker());
        if self.progress.is_cut.load(Ordering::Acquire) {
            return Poll::Ready(Some(Err(axum::Error::new(io::Error::from(
                io::ErrorKind::ConnectionAborted,
            )))));
        }
        let mut polled = Pin::new(&mut self.inner).poll_frame(context);
        let is_pending = polled.is_pending();
        let frame = if let Poll::Ready(Some(Ok(frame))) = &mut polled {
            if let Some(trailers) = frame.trailers_mut() {
                clean_trailers(trailers);
            }
            Some(&*frame)
        } else {
            None
        };
        self.progress.note(frame, is_pending);
        if matches!(polled, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.progress.is_whole.store(true, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    /// How a body ends that comes in parts of `bytes`, each `pause` after the one before, and when. `parts` of them come; the
    /// worker reads each of them immediately and does not answer.
    async fn ended(parts: u64, bytes: usize, pause: Duration) -> (LbError, Duration) {
        let body = async_stream(parts, bytes, pause);
        let progress = Arc::new(Progress::default());
        let watched = progress.watch(body);
        let reader = tokio::spawn(async move {
            let _ = watched.collect().await;
        });
        let began = Instant::now();
        let mut answered = std::pin::pin!(pending::<()>());
        let error = progress.limit(&mut Deadline::new(began), LIMIT, answered.as_mut()).await.unwrap_err();
        reader.abort();
        (error, began.elapsed())
    }

    fn async_stream(parts: u64, bytes: usize, pause: Duration) -> Body {
        Body::from_stream(futures_util::stream::unfold(0, move |sent| async move {
            tokio::time::sleep(pause).await;
            (sent < parts).then(|| (Ok::<_, io::Error>(Bytes::from(vec![0; bytes])), sent + 1))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_few_bytes_a_second_does_not_occupy_its_worker_for_ever() {
        let (error, took) = ended(u64::MAX, 1, Duration::from_secs(3)).await;
        assert!(matches!(error, LbError::BodyTooSlow), "{error:?}");
        assert!(took >= LIMIT && took < LIMIT + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_at_the_slowest_rate_may_take_as_long_as_it_needs() {
        let (parts, pause) = (600, Duration::from_secs(10));
        let (error, took) = ended(parts, 10 * BYTES_PER_S_MIN as usize, pause).await;
        assert!(matches!(error, LbError::TimedOut), "{error:?}");
        // All of it came, and the worker had its time from the last part on.
        let sent = pause * parts as u32;
        assert!(took >= sent + LIMIT && took < sent + LIMIT + 2 * pause, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_ends_when_its_time_is_over() {
        let (error, took) = ended(1, 1 << 20, Duration::from_secs(1_000)).await;
        assert!(matches!(error, LbError::BodyTimedOut), "{error:?}");
        assert!(took < LIMIT + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_reads_slowly_is_not_the_clients_fault() {
        let progress = Arc::new(Progress::default());
        let mut watched = progress.watch(async_stream(1_000, 1, Duration::ZERO));
        let reader = tokio::spawn(async move {
            while let Some(Ok(_)) = watched.frame().await {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        });
        let began = Instant::now();
        let mut answered = std::pin::pin!(pending::<()>());
        let error = progress.limit(&mut Deadline::new(began), LIMIT, answered.as_mut()).await.unwrap_err();
        reader.abort();
        assert!(matches!(error, LbError::TimedOut) && began.elapsed() > 100 * LIMIT, "{error:?}");
    }
}
