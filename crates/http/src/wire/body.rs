//! Reads request bodies, within the size limit of the route and the server's memory for bodies.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::wire::api_error::ApiError;
use crate::wire::body_buffer::BodyBuffer;
use crate::wire::gunzip::Unreadable;

/// A sender that sends nothing for this long within a body counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Least time that a body may take. Larger bodies get the time that they need at the slowest rate. A slower sender must
/// not hold its share of the budget.
const TIME_MIN: Duration = Duration::from_secs(30);
/// Slowest rate of a body, in bytes per s.
const BYTES_PER_S_MIN: usize = 16 * 1024;

/// How long a worker's report waits for budget: longer than a client that has stopped sending can hold its share.
const REPORT_WAIT_MAX: Duration = Duration::from_mins(1);

/// Bodies up to this size are charged as they arrive, larger ones as a whole before they are read. In bytes.
const SMALL_BYTES: usize = 64 * 1024;

/// The budget divided by this number is kept for small bodies, so that large and slow ones cannot exhaust it.
const PART_FOR_SMALL: usize = 16;

/// Bounds the bytes of request bodies in memory. Clones share the budget.
#[derive(Clone)]
pub(crate) struct BodyBudget {
    /// One permit per free byte.
    free: Arc<Semaphore>,
    bytes_max: usize,
    /// Bytes that bodies over [`SMALL_BYTES`] leave free.
    for_small: usize,
    /// Longest wait for free bytes; zero: a body is refused immediately.
    wait_max: Duration,
}

impl BodyBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(bytes_max));
        Self { free, bytes_max, for_small: bytes_max / PART_FOR_SMALL, wait_max: Duration::ZERO }
    }

    /// The bytes that bodies take, and the most that they may take.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.bytes_max - self.free.available_permits().min(self.bytes_max), self.bytes_max)
    }

    /// The same budget for a worker's report, which waits for room: a worker that is refused three times within 5 s
    /// discards its result.
    pub(crate) fn for_reports(&self) -> Self {
        Self { wait_max: REPORT_WAIT_MAX, ..self.clone() }
    }

    /// Takes the budget that a body needs before it is read; `announced` is its least size in bytes.
    async fn admit(&self, announced: usize) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        if announced <= SMALL_BYTES && self.wait_max.is_zero() {
            return Ok(None);
        }
        self.take_for(announced, announced).await.map(Some)
    }

    /// Takes `bytes` more for a body that has `whole` bytes so far. A report waits for room.
    async fn take_for(&self, bytes: usize, whole: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let left_free = if whole > SMALL_BYTES { self.for_small } else { 0 };
        let (Ok(permits), false) = (u32::try_from(bytes), self.wait_max.is_zero()) else {
            return self.take(bytes, left_free);
        };
        // Usually there is room, and then no timer is needed.
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        if whole > self.bytes_max {
            // Such a request would never succeed, and would block every report behind it: the semaphore is fair.
            return self.take(bytes, left_free);
        }
        let room = Arc::clone(&self.free).acquire_many_owned(permits);
        // Boxed, to keep the wait out of the futures of other requests.
        match Box::pin(tokio::time::timeout(self.wait_max, room)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => self.take(bytes, 0),
        }
    }

    /// Takes `bytes` out of the budget if `left_free` remain, or fails immediately: a queue of clients would only move
    /// the shortage.
    fn take(&self, bytes: usize, left_free: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let shortage =
            || ApiError::unavailable("overloaded", "too many request bytes in flight; retry after 1 s");
        if self.free.available_permits() < bytes.saturating_add(left_free) {
            return Err(shortage());
        }
        let permits = u32::try_from(bytes).map_err(|_| shortage())?;
        Arc::clone(&self.free).try_acquire_many_owned(permits).map_err(|_| shortage())
    }
}

/// A body in memory, and its share of the budget. Hold the permit until another budget covers the bytes.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Reads a body of at most `bytes_max` bytes. A body in one piece is not copied.
///
/// # Errors
///
/// `body_too_large`, `overloaded`, the error of an unsupported encoding, or one for a sender that is too slow or
/// disconnects.
pub(crate) async fn read(
    mut body: Body,
    bytes_max: usize,
    budget: &BodyBudget,
) -> Result<ReadBody, ApiError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max {
        return Err(ApiError::body_too_large(bytes_max));
    }
    let mut held = budget.admit(announced).await?;
    // The time starts with the wait for the body: what has arrived already took none.
    let mut began = None;
    let mut whole = Bytes::new();
    // Boxed, so that a body in one piece has no room for it in its future.
    let mut pieces: Option<Box<BodyBuffer>> = None;
    while let Some(data) = next_data(&mut body, &mut began).await? {
        let length = whole.len() + pieces.as_ref().map_or(0, |pieces| pieces.len()) + data.len();
        if began.is_some_and(|began: Instant| began.elapsed() > time_max(length)) {
            return Err(ApiError::body_timeout("the body comes too slowly"));
        }
        if length > bytes_max {
            return Err(ApiError::body_too_large(bytes_max));
        }
        let held_bytes = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if length > held_bytes {
            let more = budget.take_for(length - held_bytes, length).await?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
        }
        if length == data.len() {
            whole = data;
            continue;
        }
        let first = std::mem::take(&mut whole);
        let pieces = pieces.get_or_insert_with(|| {
            let mut pieces = BodyBuffer::with_capacity(announced.max(length));
            pieces.extend_from_slice(&first);
            Box::new(pieces)
        });
        pieces.extend_from_slice(&data);
    }
    let bytes = pieces.map_or(whole, |pieces| pieces.freeze());
    let permit = held.map_or_else(|| budget.take(0, 0), Ok)?;
    Ok(ReadBody { bytes, permit })
}

/// How long a body may take until this many bytes have arrived.
fn time_max(bytes: usize) -> Duration {
    TIME_MIN + Duration::from_secs((bytes / BYTES_PER_S_MIN) as u64)
}

/// Returns the next piece. `began` is when the first piece was awaited.
async fn next_data(body: &mut Body, began: &mut Option<Instant>) -> Result<Option<Bytes>, ApiError> {
    loop {
        if body.is_end_stream() {
            return Ok(None);
        }
        let frame = match arrived_frame(body).await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                began.get_or_insert_with(Instant::now);
                // Boxed, so that a body that has arrived needs no room for the timer in its future.
                Box::pin(tokio::time::timeout(SILENCE_MAX, body.frame()))
                    .await
                    .map_err(|_| ApiError::body_timeout("the body stopped before its end"))?
            }
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                // An empty piece or trailers.
                _ => {}
            },
            Some(Err(error)) => return Err(broken(&error)),
        }
    }
}

/// Why a body ended early.
fn broken(error: &axum::Error) -> ApiError {
    match Unreadable::of(error) {
        Some(unreadable @ Unreadable::Encoding) => ApiError::unsupported_encoding(unreadable.to_string()),
        Some(unreadable @ Unreadable::Gzip) => ApiError::bad_request("bad_gzip", unreadable.to_string()),
        None => ApiError::bad_request("body_incomplete", "the body broke off before its end"),
    }
}

/// The next frame if it has arrived. A small body usually has arrived as a whole, and is then read without a timer.
async fn arrived_frame(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_report_over_the_whole_budget_does_not_block_others() {
        let budget = BodyBudget::new(1_000).for_reports();
        let began = Instant::now();
        let in_pieces = Body::from_stream(futures_util::stream::iter(
            [900, 900].map(|bytes| Ok::<_, std::io::Error>(Bytes::from(vec![7; bytes]))),
        ));
        for body in [Body::from(vec![7; 2_000]), in_pieces] {
            let refused = read(body, 10_000, &budget).await.unwrap_err();
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(read(Body::from(vec![7; 900]), 10_000, &budget).await.unwrap().bytes.len(), 900);
    }
}
