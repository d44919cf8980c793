//! Reading a job's stream in pages.

use std::time::Duration;

use longshore_model::limits::CHUNK_BYTES_MAX;
use longshore_model::{JobId, JobKey, JobRow};
use longshore_planted::{Bug, planted};
use longshore_store::{ChunkRow, StreamRow};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Jobs;
use crate::actor::request::{Request, StreamLookup, unread};
use crate::chunk::decoded;
use crate::endpoint_shared::requests::reloading;
use crate::payload_budget::SMALL_BYTES;
use crate::{BudgetPermit, EndpointError, StreamFrom, StreamPage, StreamSize};

/// The size limit of the chunks of one page, in bytes.
const PAGE_BYTES_MAX: usize = 16_000_000;

impl Jobs {
    /// Returns stored chunks of a job's stream, ascending by offset, and the job. Waits up to `wait` while there are
    /// none and the job is not terminal.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`](crate::Refusal::NoSuchJob) for an unknown or expired
    ///   id.
    /// - [`EndpointError::NoRoom`] if there was no memory for the job's output within 2 s.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if a chunk or the job's output cannot be read.
    pub async fn read_stream(
        &self,
        job: JobId,
        from: StreamFrom,
        wait: Duration,
    ) -> Result<StreamPage, EndpointError> {
        let until = Instant::now() + wait;
        loop {
            let (watch, news) = oneshot::channel();
            let (row, stream, _) = self.look_up_stream(job, watch).await?;
            let start = match from {
                StreamFrom::Drained => stream.consumed,
                StreamFrom::Offset(offset) => offset,
            };
            let (chunks, room) = self.stored_chunks(&row, start, stream).await?;
            if chunks.is_empty() && start < stream.next {
                self.check_exists(&row).await?;
            }
            let over = row.state.is_terminal() || self.shared.is_stopping() || Instant::now() >= until;
            if !chunks.is_empty() || over {
                let more = chunks.last().is_some_and(|last| last.offset + 1 < stream.next);
                let chunks = decoded(chunks)?;
                return Ok(StreamPage { job: self.snapshot(row).await?, chunks, more, room });
            }
            // There is a new chunk, or the job ended, or the actor dropped the waiter, or the time is over.
            let _ = tokio::time::timeout_at(until, news).await;
        }
    }

    /// Returns the number of chunks that the job's handler has yielded since its stream began, also of lost attempts, and
    /// the size of the stored chunks. After a restart of the server, they are read once for that.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`](crate::Refusal::NoSuchJob) for an unknown or expired id.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the row of the stream or the chunks cannot be read.
    pub async fn stream_size(&self, job: JobId) -> Result<StreamSize, EndpointError> {
        let (watch, _) = oneshot::channel();
        let (row, stream, bytes) = self.look_up_stream(job, watch).await?;
        let bytes = match bytes {
            Some(bytes) => bytes,
            None if stream.next == 0 => 0,
            None => self.shared.warm_stream_with_bytes(row.key).await?,
        };
        Ok(StreamSize { chunks: stream.next, bytes })
    }

    /// The job's row, the row of its stream and the bytes of its chunks, if these were counted. `watch` is woken by the next chunk or by the job's end.
    async fn look_up_stream(
        &self,
        job: JobId,
        watch: oneshot::Sender<()>,
    ) -> Result<(JobRow, StreamRow, Option<u64>), EndpointError> {
        match self.shared.request(|reply| Request::Stream { job, watch, reply }).await? {
            StreamLookup::Here(found) => Ok(*found),
            StreamLookup::Cold(key) => {
                self.warm_stream(key).await?;
                let (watch, _) = oneshot::channel();
                match self.shared.request(|reply| Request::Stream { job, watch, reply }).await? {
                    StreamLookup::Here(found) => Ok(*found),
                    StreamLookup::Cold(_) => Err(reloading()),
                }
            }
        }
    }

    /// Checks that a terminal job still exists after its chunks were missing, because a deleted job must not be shown
    /// without them.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`](crate::Refusal::NoSuchJob) if the job is deleted.
    pub(super) async fn check_exists(&self, row: &JobRow) -> Result<(), EndpointError> {
        if row.state.is_terminal() {
            let (watch, _) = oneshot::channel();
            self.look_up_stream(row.id, watch).await?;
        }
        Ok(())
    }

    /// The stored chunks of one page from offset `start`, and the memory that they take.
    async fn stored_chunks(
        &self,
        row: &JobRow,
        start: u64,
        stream: StreamRow,
    ) -> Result<(Vec<ChunkRow>, BudgetPermit), EndpointError> {
        if start >= stream.next {
            return Ok((Vec::new(), BudgetPermit::default()));
        }
        // About `SMALL_BYTES` are read before memory is reserved. More chunks are read only if memory for them is free.
        let mut chunks = self.chunks_from(row, start, stream, SMALL_BYTES).await?;
        let bytes = length(&chunks);
        let next = chunks.last().map_or(stream.next, |last| last.offset.saturating_add(1));
        let answers = &self.shared.services.answers;
        let more_bytes = PAGE_BYTES_MAX.min(answers.bytes_max() / 4).saturating_sub(CHUNK_BYTES_MAX);
        if bytes < SMALL_BYTES || next >= stream.next || more_bytes < SMALL_BYTES {
            return Ok((chunks, self.hold(bytes).await?));
        }
        // The last chunk may begin within the limit and end after it.
        let Some(mut permit) = answers.try_take(bytes + more_bytes + CHUNK_BYTES_MAX) else {
            return Ok((chunks, self.hold(bytes).await?));
        };
        chunks.extend(self.chunks_from(row, next, stream, more_bytes).await?);
        drop(permit.split(permit.num_permits().saturating_sub(length(&chunks))));
        Ok((chunks, BudgetPermit::of(permit)))
    }

    /// Up to `bytes_max` bytes of chunks from offset `start`, without those after `stream`.
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
        let mut chunks = chunks.inspect_err(|error| self.shared.note_unread(row.id, "stream", error))?;
        // The store may have later chunks already. They belong to a later page, which has a later state of the job.
        chunks.retain(|chunk| chunk.offset < stream.next);
        Ok(chunks)
    }

    /// Moves the consumed offset of the job's stream to `offset`, if it is lower: chunks below it reached their reader.
    /// Waits for no reply. If the move is lost, the next poll returns the chunks again.
    pub fn consume(&self, job: JobId, offset: u64) {
        let _ = self.shared.send(Request::Consume { job, offset });
    }

    /// Reads the row of a stream that the actor does not know, and sends it to the actor.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the row cannot be read.
    pub(super) async fn warm_stream(&self, key: JobKey) -> Result<(), EndpointError> {
        let stored = self.shared.services.store.stream(key).await.map_err(|error| unread(&error))?;
        self.shared.send(Request::WarmStream { key, stream: stored.unwrap_or_default(), bytes: None })
    }
}

/// The bytes of the chunks.
fn length(chunks: &[ChunkRow]) -> usize {
    chunks.iter().map(|chunk| chunk.bytes.len()).sum()
}
