//! Reads request bodies: never more than the route takes, never more at once than the server's memory allows.

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

/// A sender that is silent for so long within a body has gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A body may take this long, and longer by the time that its bytes need at the slowest rate: one that trickles must
/// not hold its part of the memory for ever.
const TIME_MIN: Duration = Duration::from_secs(30);
/// The slowest rate at which a body may come, in bytes a second.
const BYTES_PER_S_MIN: usize = 16 * 1024;

/// How long a worker's report waits for room: longer than clients that stopped in the middle can keep theirs.
const REPORT_WAIT_MAX: Duration = Duration::from_mins(1);

/// Bodies up to this size count as they come, larger ones as a whole before they are read.
const SMALL_BYTES: usize = 64 * 1024;

/// This part of the budget is for small bodies: large ones, which can be slow, must not keep those out.
const PART_FOR_SMALL: usize = 16;

/// How many bytes of bodies may be in memory at once.
#[derive(Clone)]
pub(crate) struct BodyBudget {
    free: Arc<Semaphore>,
    bytes_max: usize,
    for_small: usize,
    wait_max: Duration,
}

impl BodyBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(bytes_max));
        Self { free, bytes_max, for_small: bytes_max / PART_FOR_SMALL, wait_max: Duration::ZERO }
    }

    /// The same budget for a worker's report, which waits for room: a worker that is refused three times within
    /// five seconds throws its result away.
    pub(crate) fn for_reports(&self) -> Self {
        Self { wait_max: REPORT_WAIT_MAX, ..self.clone() }
    }

    /// What a body takes before it is read; `announced` is the least that it will have.
    async fn admit(&self, announced: usize) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        if announced <= SMALL_BYTES && self.wait_max.is_zero() {
            return Ok(None);
        }
        self.take_for(announced, announced).await.map(Some)
    }

    /// Takes `bytes` more for a body that has `whole` of them so far; for a report as soon as there is room.
    async fn take_for(&self, bytes: usize, whole: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let left_free = if whole > SMALL_BYTES { self.for_small } else { 0 };
        let (Ok(permits), false) = (u32::try_from(bytes), self.wait_max.is_zero()) else {
            return self.take(bytes, left_free);
        };
        // There mostly is, and then nothing needs a timer.
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        if whole > self.bytes_max {
            // It would wait in vain, and every report behind it with it: room is given in the order of arrival.
            return self.take(bytes, left_free);
        }
        let room = Arc::clone(&self.free).acquire_many_owned(permits);
        // Boxed, so that the others have no room for it in their futures.
        match Box::pin(tokio::time::timeout(self.wait_max, room)).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => self.take(bytes, 0),
        }
    }

    /// Takes `bytes` out of the budget if `left_free` remain, or refuses at once: a queue of clients would only move
    /// the shortage.
    fn take(&self, bytes: usize, left_free: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let shortage = || {
            ApiError::unavailable(
                "overloaded",
                "the server holds as many bytes of bodies as it may; ask again",
            )
        };
        if self.free.available_permits() < bytes.saturating_add(left_free) {
            return Err(shortage());
        }
        let permits = u32::try_from(bytes).map_err(|_| shortage())?;
        Arc::clone(&self.free).try_acquire_many_owned(permits).map_err(|_| shortage())
    }
}

/// A body in memory, and its part of the budget. Hold the permit until somebody else answers for the bytes.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Reads a body of at most `bytes_max`. A body in one piece is not copied.
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
    // Of the wait for it: what is here already took no time.
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

/// How long a body may take until so many bytes of it are here.
fn time_max(bytes: usize) -> Duration {
    TIME_MIN + Duration::from_secs((bytes / BYTES_PER_S_MIN) as u64)
}

/// The next piece; `began` is when one was first waited for.
async fn next_data(body: &mut Body, began: &mut Option<Instant>) -> Result<Option<Bytes>, ApiError> {
    loop {
        if body.is_end_stream() {
            return Ok(None);
        }
        let frame = match what_is_here(body).await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                began.get_or_insert_with(Instant::now);
                // Boxed, so that a body that is here has no room for it in its future.
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

/// Why no more of a body comes.
fn broken(error: &axum::Error) -> ApiError {
    match Unreadable::of(error) {
        Some(unreadable @ Unreadable::Encoding) => ApiError::unsupported_encoding(unreadable.to_string()),
        Some(unreadable @ Unreadable::Gzip) => ApiError::bad_request("bad_gzip", unreadable.to_string()),
        None => ApiError::bad_request("body_incomplete", "the body broke off before its end"),
    }
}

/// The next frame if it is here already, as all of a small body mostly is: then nothing needs a timer.
async fn what_is_here(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_report_that_there_will_never_be_room_for_keeps_no_other_waiting() {
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
