//! Appending chunks to the stream of a job.

use bytes::Bytes;
use longshore_model::{JobId, RequestNo, WorkerId};

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
        self.append_once(worker, job, None, chunks).await
    }

    /// As [`append`](Self::append). Appends nothing if one of the stream's last posts had the number `post`.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub async fn append_once(
        &self,
        worker: WorkerId,
        job: JobId,
        post: Option<RequestNo>,
        chunks: Vec<Chunk>,
    ) -> Result<(), EndpointError> {
        let mut chunks: Vec<Bytes> = chunks.into_iter().map(Chunk::encode).collect();
        loop {
            let worker = worker.clone();
            let request = |reply| Request::Append { worker, job, post, chunks, reply };
            match self.shared.request(request).await? {
                Appended::Done => return Ok(()),
                Appended::Cold(key, unwritten) => {
                    self.shared.warm_stream_with_bytes(key).await?;
                    chunks = unwritten;
                }
            }
        }
    }
}
