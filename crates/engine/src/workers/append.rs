//! Appending chunks to the stream of a job.

use bytes::Bytes;
use longshore_model::{JobId, JobKey, WorkerId};

use super::Workers;
use crate::actor::request::{Appended, Request, unread};
use crate::{Chunk, EndpointError};

/// The size of the reads with which the bytes of a stream are counted after a restart, in bytes.
const COUNTED_BYTES: usize = 1_000_000;

impl Workers {
    /// Appends chunks to the stream of a job that the worker holds. Chunks for another job are dropped. A stream over
    /// its size limit fails the job. Each chunk has at most
    /// [`CHUNK_BYTES_MAX`](longshore_model::limits::CHUNK_BYTES_MAX) bytes of JSON text.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the row of the stream cannot be read after a
    /// restart.
    pub async fn append(
        &self,
        worker: WorkerId,
        job: JobId,
        chunks: Vec<Chunk>,
    ) -> Result<(), EndpointError> {
        let mut chunks: Vec<Bytes> = chunks.into_iter().map(Chunk::encode).collect();
        loop {
            let worker = worker.clone();
            match self.shared.request(|reply| Request::Append { worker, job, chunks, reply }).await? {
                Appended::Done => return Ok(()),
                Appended::Cold(key, unwritten) => {
                    self.warm_stream_with_bytes(key).await?;
                    chunks = unwritten;
                }
            }
        }
    }

    /// Reads the row of a stream that the actor does not know, counts the bytes of its chunks, and sends both to the
    /// actor. Chunks after a damaged one are not counted, so that the worker can append in spite of the damage.
    async fn warm_stream_with_bytes(&self, key: JobKey) -> Result<(), EndpointError> {
        let store = &self.shared.services.store;
        let stored = store.stream(key).await.map_err(|error| unread(&error))?;
        let (mut offset, mut bytes) = (0, 0);
        loop {
            let chunks = store.chunks(key, offset, COUNTED_BYTES).await;
            let chunks = match chunks.map_err(|error| unread(&error)) {
                Err(EndpointError::Damaged(_)) => break,
                chunks => chunks?,
            };
            let Some(last) = chunks.last() else { break };
            offset = last.offset + 1;
            bytes += chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum::<u64>();
        }
        self.shared.send(Request::WarmStream { key, stream: stored.unwrap_or_default(), bytes: Some(bytes) })
    }
}
