//! Counting the bytes of a stream that the actor does not know, after a restart.

use longshore_model::JobKey;

use super::EndpointShared;
use crate::EndpointError;
use crate::actor::request::{Request, unread};

/// The size of the reads with which the bytes of a stream are counted, in bytes.
const COUNTED_BYTES: usize = 1_000_000;

impl EndpointShared {
    /// Reads the row of a stream that the actor does not know, counts the bytes of its chunks, sends both to the actor and
    /// returns the bytes. Chunks after a damaged one are not counted, so that the worker can append in spite of the damage.
    ///
    /// # Errors
    ///
    /// `Unreadable`, `Damaged` if the row of the stream cannot be read; `Unreadable` if a chunk cannot be read now.
    pub(crate) async fn warm_stream_with_bytes(&self, key: JobKey) -> Result<u64, EndpointError> {
        let store = &self.services.store;
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
        self.send(Request::WarmStream { key, stream: stored.unwrap_or_default(), bytes: Some(bytes) })?;
        Ok(bytes)
    }
}
