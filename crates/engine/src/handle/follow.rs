//! Following a job: its chunks, how it stands, and its end, as they come.

use std::sync::Arc;
use std::time::Duration;

use longshore_model::JobId;
use longshore_planted::{Bug, planted};
use tokio::time::{Instant, sleep_until};

use super::EndpointHandle;
use crate::actor::request::{Request, TailLookup, unread};
use crate::chunk::decoded;
use crate::stream_tail::{StreamTail, TailSnapshot, TailVersion};
use crate::{EndpointError, JobSnapshot, StreamChunk};

/// Chunks that are handed over at once, in bytes: what a slow reader holds in memory. A single longer chunk is more.
const BYTES_MAX: usize = 64 * 1024;
/// How long a follower rests after it got chunks, for each follower of the job that there is. What comes meanwhile is
/// handed over together: a thousand who follow a fast worker would else keep the processors busy with every single
/// chunk, and the worker waiting. It is some three times what it takes to tell one.
const REST: Duration = Duration::from_micros(100);
/// The shortest rest that is taken: a few followers are told at once.
const REST_MIN: Duration = Duration::from_millis(1);
/// The longest.
const REST_MAX: Duration = Duration::from_secs(1);
/// After a reload of the queue somebody who follows asks again after this.
const REATTACH: Duration = Duration::from_millis(100);

/// What a follower hears next.
#[derive(Debug)]
pub enum FollowEvent {
    /// Chunks, ascending by offset. Offsets that are left out belong to a lost attempt.
    Chunks(Vec<StreamChunk>),
    /// How the job stands, when that changed: also when it got a new attempt or a progress value.
    Status(Box<JobSnapshot>),
    /// The job is over, and every chunk was handed over before. The last word.
    Ended(Box<JobSnapshot>),
}

/// Somebody who follows a job. Costs the queue nothing while it waits, and nothing when it is dropped.
pub struct Follower {
    endpoint: EndpointHandle,
    job: JobId,
    tail: Arc<StreamTail>,
    /// Everything below this offset was handed over.
    position: u64,
    told: Option<TailVersion>,
    /// No more chunks before this.
    rests_until: Option<Instant>,
}

impl EndpointHandle {
    /// Follows a job from the chunk with this offset on.
    pub async fn follow(&self, job: JobId, offset: u64) -> Result<Follower, EndpointError> {
        let tail = self.tail(job).await?;
        Ok(Follower { endpoint: self.clone(), job, tail, position: offset, told: None, rests_until: None })
    }

    async fn tail(&self, job: JobId) -> Result<Arc<StreamTail>, EndpointError> {
        match self.request(|reply| Request::Follow { job, reply }).await? {
            TailLookup::Here(tail) => return Ok(tail),
            TailLookup::Cold(key) => self.warm_stream(key).await?,
        }
        match self.request(|reply| Request::Follow { job, reply }).await? {
            TailLookup::Here(tail) => Ok(tail),
            TailLookup::Cold(_) => Err(EndpointError::Unavailable("the queue is being reloaded".to_owned())),
        }
    }
}

impl Follower {
    /// What happens next, first of all how the job stands. After [`FollowEvent::Ended`] nothing does. If the future is
    /// dropped, nothing is lost.
    pub async fn next(&mut self) -> Result<FollowEvent, EndpointError> {
        loop {
            let look = self.tail.snapshot();
            if look.closed {
                self.attach().await?;
                continue;
            }
            let over = look.row.state.is_terminal();
            if self.told != Some(look.version) && !over {
                let sight = look.version;
                let snapshot = self.snapshot(look).await?;
                self.told = Some(sight);
                if snapshot.row.state.is_terminal() {
                    // It has ended meanwhile: that comes last, after its chunks. The tail hears of it in a moment.
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

    /// Until when it rests, if there are many.
    fn rest(&self) -> Option<Instant> {
        let followers = u32::try_from(Arc::strong_count(&self.tail)).unwrap_or(u32::MAX);
        let rest = REST.saturating_mul(followers).min(REST_MAX);
        (rest >= REST_MIN).then(|| Instant::now() + rest)
    }

    /// The queue was loaded again, or the job is gone: what follows from it shows at the next look.
    async fn attach(&mut self) -> Result<(), EndpointError> {
        loop {
            match self.endpoint.tail(self.job).await {
                Ok(tail) => {
                    // Another tail counts progress values anew.
                    (self.tail, self.told) = (tail, None);
                    return Ok(());
                }
                Err(EndpointError::Unavailable(_)) if !self.endpoint.is_stopping() => {
                    tokio::time::sleep(REATTACH).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn snapshot(&self, look: TailSnapshot) -> Result<JobSnapshot, EndpointError> {
        self.endpoint.snapshot(look.row).await
    }

    async fn chunks(&mut self, look: &TailSnapshot) -> Result<Vec<StreamChunk>, EndpointError> {
        let mut chunks = if let Some(chunks) = self.tail.recent(self.position, BYTES_MAX) {
            chunks
        } else {
            let store = &self.endpoint.shared.services.store;
            let stored = store.chunks(look.row.key, self.position, BYTES_MAX).await;
            let stored = stored.map_err(|error| unread(&error));
            stored.inspect_err(|error| self.endpoint.note_unread(self.job, "stream", error))?
        };
        // Later chunks may be there already, of a later attempt perhaps, which is told before them.
        chunks.retain(|chunk| chunk.offset < look.next);
        if chunks.is_empty() {
            self.endpoint.check_there(&look.row).await?;
        }
        // None at all: they were dropped with their attempt.
        self.position = chunks.last().map_or(look.next, |last| last.offset + 1);
        decoded(chunks)
    }
}
