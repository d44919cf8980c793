//! Reading a job's stream.

use std::time::Duration;

use longshore_model::limits::CHUNK_BYTES_MAX;
use longshore_model::{JobId, JobRow};
use longshore_planted::{Bug, planted};
use longshore_store::{ChunkRow, StreamRow};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::EndpointHandle;
use crate::actor::request::{Request, StreamLookup, unread};
use crate::chunk::decoded;
use crate::payload_budget::SMALL_BYTES;
use crate::{BudgetPermit, EndpointError, StreamFrom, StreamPage};

/// Chunks of one page, in bytes.
const PAGE_BYTES_MAX: usize = 16_000_000;

impl EndpointHandle {
    /// Chunks of a job's stream. Waits up to `wait` while there is none and the job is not terminal.
    pub async fn read_stream(
        &self,
        job: JobId,
        from: StreamFrom,
        wait: Duration,
    ) -> Result<StreamPage, EndpointError> {
        let until = Instant::now() + wait;
        loop {
            let (watch, news) = oneshot::channel();
            let (row, stream) = self.look_at_stream(job, watch).await?;
            let start = match from {
                StreamFrom::Drained => stream.consumed,
                StreamFrom::Offset(offset) => offset,
            };
            let (chunks, room) = self.stored_chunks(&row, start, stream).await?;
            if chunks.is_empty() && start < stream.next {
                self.check_there(&row).await?;
            }
            let over = row.state.is_terminal() || self.is_stopping() || Instant::now() >= until;
            if !chunks.is_empty() || over {
                let more = chunks.last().is_some_and(|last| last.offset + 1 < stream.next);
                let chunks = decoded(chunks)?;
                return Ok(StreamPage { job: self.snapshot(row).await?, chunks, more, room });
            }
            // Either there is news, or the actor dropped the wait: look again.
            let _ = tokio::time::timeout_at(until, news).await;
        }
    }

    async fn look_at_stream(
        &self,
        job: JobId,
        watch: oneshot::Sender<()>,
    ) -> Result<(JobRow, StreamRow), EndpointError> {
        match self.request(|reply| Request::Stream { job, watch, reply }).await? {
            StreamLookup::Here(row, stream) => Ok((*row, stream)),
            StreamLookup::Cold(key) => {
                self.warm_stream(key).await?;
                let (watch, _) = oneshot::channel();
                match self.request(|reply| Request::Stream { job, watch, reply }).await? {
                    StreamLookup::Here(row, stream) => Ok((*row, stream)),
                    StreamLookup::Cold(_) => {
                        Err(EndpointError::Unavailable("the queue is being reloaded".to_owned()))
                    }
                }
            }
        }
    }

    /// Refuses a job that is over and was deleted since it was looked at: it is not shown without its chunks. A cancelled
    /// one has no outcome that would be missed.
    pub(super) async fn check_there(&self, row: &JobRow) -> Result<(), EndpointError> {
        if row.state.is_terminal() {
            let (watch, _) = oneshot::channel();
            self.look_at_stream(row.id, watch).await?;
        }
        Ok(())
    }

    async fn stored_chunks(
        &self,
        row: &JobRow,
        start: u64,
        stream: StreamRow,
    ) -> Result<(Vec<ChunkRow>, BudgetPermit), EndpointError> {
        if start >= stream.next {
            return Ok((Vec::new(), BudgetPermit::default()));
        }
        // A few are always shown. What is beyond them needs room before it is read.
        let mut chunks = self.chunks_from(row, start, stream, SMALL_BYTES).await?;
        let bytes = length(&chunks);
        let next = chunks.last().map_or(stream.next, |last| last.offset.saturating_add(1));
        let answers = &self.shared.services.answers;
        let more_bytes = PAGE_BYTES_MAX.min(answers.bytes_max() / 4).saturating_sub(CHUNK_BYTES_MAX);
        if bytes < SMALL_BYTES || next >= stream.next || more_bytes < SMALL_BYTES {
            return Ok((chunks, self.hold(bytes).await?));
        }
        // The last one may begin within the bound and end behind it.
        let Some(mut permit) = answers.try_take(bytes + more_bytes + CHUNK_BYTES_MAX) else {
            return Ok((chunks, self.hold(bytes).await?));
        };
        chunks.extend(self.chunks_from(row, next, stream, more_bytes).await?);
        drop(permit.split(permit.num_permits().saturating_sub(length(&chunks))));
        Ok((chunks, BudgetPermit::of(permit)))
    }

    async fn chunks_from(
        &self,
        row: &JobRow,
        start: u64,
        stream: StreamRow,
        bytes_max: usize,
    ) -> Result<Vec<ChunkRow>, EndpointError> {
        let chunks = self.shared.services.store.chunks(row.key, start, bytes_max).await;
        let chunks = chunks.map_err(|error| unread(&error));
        if planted(Bug::DamagedChunkOmitted) && matches!(chunks, Err(EndpointError::Damaged(_))) {
            return Ok(Vec::new());
        }
        let mut chunks = chunks.inspect_err(|error| self.note_unread(row.id, "stream", error))?;
        // Later chunks may be there already; they belong to a later look, with its own state of the job.
        chunks.retain(|chunk| chunk.offset < stream.next);
        Ok(chunks)
    }

    /// Moves the drain cursor: chunks below `offset` reached their reader. Does not wait for the disk.
    pub fn consume(&self, job: JobId, offset: u64) {
        // Nobody waits for this; a lost move shows a chunk twice.
        let _ = self.tell(Request::Consume { job, offset });
    }
}

fn length(chunks: &[ChunkRow]) -> usize {
    chunks.iter().map(|chunk| chunk.bytes.len()).sum()
}
