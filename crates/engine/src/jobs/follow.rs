//! Following a job: its chunks, its state and its end, as they happen.

use std::sync::Arc;
use std::time::Duration;

use longshore_model::JobId;
use longshore_planted::{Bug, planted};
use tokio::time::{Instant, sleep_until};

use super::Jobs;
use crate::actor::request::{Request, TailLookup, unread};
use crate::chunk::decoded;
use crate::endpoint_shared::requests::reloading;
use crate::stream_tail::{StreamTail, TailSnapshot, TailVersion};
use crate::{EndpointError, JobSnapshot, StreamChunk};

/// The size limit of the chunks of one event, in bytes: what a slow reader holds in memory. A single longer chunk is an
/// event of its own.
const BYTES_MAX: usize = 64 * 1024;
/// The pause of a follower after an event with chunks, for each follower of the job. The chunks of the pause come in
/// one event. Without it, a thousand followers of a fast worker would keep the processors busy with single chunks, and
/// the worker waiting. One event costs about a third of it.
const REST: Duration = Duration::from_micros(100);
/// Shorter pauses are left out, so that few followers get each chunk immediately.
const REST_MIN: Duration = Duration::from_millis(1);
/// The limit of the pause.
const REST_MAX: Duration = Duration::from_secs(1);
/// The pause before a follower asks again for the tail after a reload of the queue.
const REATTACH: Duration = Duration::from_millis(100);

/// An event of a followed job.
#[derive(Debug)]
pub enum FollowEvent {
    /// Chunks, ascending by offset. The offsets that are missing belong to a lost attempt.
    Chunks(Vec<StreamChunk>),
    /// The job in a new state, with a new attempt or with a new progress value. Not terminal.
    Status(Box<JobSnapshot>),
    /// The terminal job. Every chunk came before, and no event follows.
    Ended(Box<JobSnapshot>),
}

/// A follower of one job. Waiting followers cost the queue nothing, and dropping one needs no request.
pub struct Follower {
    jobs: Jobs,
    job: JobId,
    tail: Arc<StreamTail>,
    /// The offset after the last returned chunk.
    position: u64,
    /// The version of the last returned status; `None` before the first.
    returned: Option<TailVersion>,
    /// The end of the pause after chunks, if there is one.
    rests_until: Option<Instant>,
}

impl Jobs {
    /// Follows a job from the chunk with this offset.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`](crate::Refusal::NoSuchJob) for an unknown or expired
    ///   id.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the row of the stream cannot be read.
    pub async fn follow(&self, job: JobId, offset: u64) -> Result<Follower, EndpointError> {
        let tail = self.tail(job).await?;
        Ok(Follower { jobs: self.clone(), job, tail, position: offset, returned: None, rests_until: None })
    }

    async fn tail(&self, job: JobId) -> Result<Arc<StreamTail>, EndpointError> {
        match self.shared.request(|reply| Request::Follow { job, reply }).await? {
            TailLookup::Here(tail) => return Ok(tail),
            TailLookup::Cold(key) => self.warm_stream(key).await?,
        }
        match self.shared.request(|reply| Request::Follow { job, reply }).await? {
            TailLookup::Here(tail) => Ok(tail),
            TailLookup::Cold(_) => Err(reloading()),
        }
    }
}

impl Follower {
    /// Waits for the next event and returns it. The first event of a job that is not terminal is its state. If the
    /// future is dropped, no event is lost.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`](crate::Refusal::NoSuchJob) if the job is deleted.
    /// - [`EndpointError::Unavailable`] if the server stops. While the queue reloads, the follower waits.
    /// - [`EndpointError::NoRoom`] if there was no memory for the job's output within 2 s.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if chunks or the job's output cannot be read.
    pub async fn next(&mut self) -> Result<FollowEvent, EndpointError> {
        loop {
            let look = self.tail.snapshot();
            if look.closed {
                self.attach().await?;
                continue;
            }
            let over = look.row.state.is_terminal();
            if self.returned != Some(look.version) && !over {
                let version = look.version;
                let snapshot = self.snapshot(look).await?;
                self.returned = Some(version);
                if snapshot.row.state.is_terminal() {
                    // The job has ended since. The end comes from the tail, after the chunks.
                    continue;
                }
                return Ok(FollowEvent::Status(Box::new(snapshot)));
            }
            if self.position < look.next && !(over && planted(Bug::EndBeforeChunks)) {
                if let Some(rests_until) = self.rests_until.filter(|_| !over) {
                    sleep_until(rests_until).await;
                    self.rests_until = None;
                    continue;
                }
                let chunks = self.chunks(&look).await?;
                if !chunks.is_empty() {
                    self.rests_until = self.rest();
                    return Ok(FollowEvent::Chunks(chunks));
                }
                continue;
            }
            if over {
                return Ok(FollowEvent::Ended(Box::new(self.snapshot(look).await?)));
            }
            self.tail.changed(&look).await;
        }
    }

    /// The end of the pause after chunks; `None` with few followers.
    fn rest(&self) -> Option<Instant> {
        let followers = u32::try_from(Arc::strong_count(&self.tail)).unwrap_or(u32::MAX);
        let rest = REST.saturating_mul(followers).min(REST_MAX);
        (rest >= REST_MIN).then(|| Instant::now() + rest)
    }

    /// Asks for another tail after the tail was closed: the queue reloads, the job is deleted or the server stops.
    async fn attach(&mut self) -> Result<(), EndpointError> {
        loop {
            match self.jobs.tail(self.job).await {
                Ok(tail) => {
                    // Each tail counts progress values from 0, so versions of two tails cannot be compared.
                    (self.tail, self.returned) = (tail, None);
                    return Ok(());
                }
                Err(error) if error.is_of_writing() && !self.jobs.shared.is_stopping() => {
                    tokio::time::sleep(REATTACH).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn snapshot(&self, look: TailSnapshot) -> Result<JobSnapshot, EndpointError> {
        self.jobs.snapshot(look.row).await
    }

    /// The next chunks up to `look`, from memory if the tail has them. Empty if they belong to a lost attempt.
    async fn chunks(&mut self, look: &TailSnapshot) -> Result<Vec<StreamChunk>, EndpointError> {
        let mut chunks = if let Some(chunks) = self.tail.recent(self.position, BYTES_MAX) {
            chunks
        } else {
            let store = &self.jobs.shared.services.store;
            let stored = store.chunks(look.row.key, self.position, BYTES_MAX).await;
            let stored = stored.map_err(|error| unread(&error));
            stored.inspect_err(|error| self.jobs.shared.note_unread(self.job, "stream", error))?
        };
        // The store may have later chunks already. A later attempt's chunks come after the event of that attempt.
        chunks.retain(|chunk| chunk.offset < look.next);
        if chunks.is_empty() {
            self.jobs.check_exists(&look.row).await?;
        }
        // Without chunks, those before `next` were dropped with their attempt.
        self.position = chunks.last().map_or(look.next, |last| last.offset + 1);
        decoded(chunks)
    }
}
