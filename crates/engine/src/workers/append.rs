//! Appending chunks to the stream of a job.

use bytes::Bytes;
use longshore_model::{JobId, WorkerId};

use super::Workers;
use crate::actor::request::{Appended, Request};
use crate::{Chunk, EndpointError};

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
                    self.shared.warm_stream_with_bytes(key).await?;
                    chunks = unwritten;
                }
            }
        }
    }
}
