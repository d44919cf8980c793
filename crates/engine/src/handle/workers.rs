//! What workers ask.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::limits::{ERROR_BYTES_MAX, PROGRESS_BYTES_MAX};
use longshore_model::{JobId, WorkerId};
use longshore_queue::Report;
use longshore_store::{OutcomeRow, Payload};

use super::EndpointHandle;
use crate::actor::request::{Appended, Request, unread};
use crate::supervisor::FleetEvent;
use crate::{Chunk, EndpointError, Outcome};

/// Chunks that are looked at together when their bytes are counted, after a restart.
const COUNTED_BYTES: usize = 1_000_000;

impl EndpointHandle {
    /// A job's outcome. A report that no longer counts is `Ok` too.
    pub async fn report(&self, worker: WorkerId, job: JobId, outcome: Outcome) -> Result<(), EndpointError> {
        let (report, row) = match outcome {
            Outcome::Completed { output } => {
                let output_bytes = output.as_ref().map_or(0, |output| output.len() as u64);
                let keep = output_bytes <= self.output_bytes_max(job);
                let output = self.put_output(job, output.filter(|_| keep)).await?;
                (Report::Completed { output_bytes }, OutcomeRow { output, error: None })
            }
            Outcome::Failed { error, output } => {
                let small = |output: &Bytes| output.len() as u64 <= self.output_bytes_max(job);
                let output = self.put_output(job, output.filter(small)).await?;
                (Report::Failed, OutcomeRow { output, error: Some(cut(error).into()) })
            }
        };
        self.request(|reply| Request::Report { worker, job, report, outcome: row, reply }).await?;
        Ok(())
    }

    fn output_bytes_max(&self, job: JobId) -> u64 {
        let settings = &self.shared.services.settings;
        if job.is_sync() { settings.sync_output_bytes_max } else { settings.output_bytes_max }
    }

    async fn put_output(&self, job: JobId, output: Option<Bytes>) -> Result<Option<Payload>, EndpointError> {
        match output {
            // Boxed: every result would carry around what few of them need.
            Some(bytes) if self.shared.is_large(&bytes) => {
                let stowed = Box::pin(self.shared.put_blob(self.shared.output_file(job), bytes));
                Ok(Some(Payload::Blob(stowed.await?)))
            }
            small => Ok(small.map(Payload::Inline)),
        }
    }

    /// A progress value: JSON text. One that is too long is dropped, and the last one stays.
    pub async fn progress(&self, worker: WorkerId, job: JobId, value: Bytes) -> Result<(), EndpointError> {
        if value.len() > PROGRESS_BYTES_MAX {
            return self.tell(Request::TouchWorker { worker });
        }
        let output = self.put_output(job, Some(value)).await?;
        let outcome = OutcomeRow { output, error: None };
        self.request(|reply| Request::Progress { worker, job, outcome, reply }).await
    }

    /// Chunks of a job's stream, each of at most 1 MB as it is shown.
    pub async fn append(
        &self,
        worker: WorkerId,
        job: JobId,
        chunks: Vec<Chunk>,
    ) -> Result<(), EndpointError> {
        let mut chunks: Vec<Bytes> = chunks.into_iter().map(Chunk::encode).collect();
        loop {
            let worker = worker.clone();
            match self.request(|reply| Request::Append { worker, job, chunks, reply }).await? {
                Appended::Done => return Ok(()),
                Appended::Cold(key, unwritten) => {
                    self.warm_stream_with_bytes(key).await?;
                    chunks = unwritten;
                }
            }
        }
    }

    /// A worker lives and holds these jobs (none: it did not say; ids that are not ours are left out).
    pub async fn ping(&self, worker: WorkerId, holds: Option<Vec<JobId>>) -> Result<(), EndpointError> {
        self.request(|reply| Request::Ping { worker, holds, reply }).await
    }

    /// A worker says that it is not fit to run (a failed self-check) and is about to exit.
    pub async fn report_unfit(&self, worker: WorkerId, reason: String) -> Result<(), EndpointError> {
        tracing::warn!(endpoint = %self.record().id, %worker, %reason, "a worker says that it is not fit to run");
        self.drain_worker(worker.clone()).await?;
        self.shared.notify_fleet(FleetEvent::Replace { worker, reason });
        Ok(())
    }

    /// The jobs that a worker must stop; empty when `hold` passed without one.
    pub async fn stops(&self, worker: WorkerId, hold: Duration) -> Result<Vec<JobId>, EndpointError> {
        if self.is_deleted() {
            return Err(EndpointError::Deleted);
        }
        // A worker whose pings are held up somewhere is not silent while it asks this.
        self.tell(Request::TouchWorker { worker: worker.clone() })?;
        Ok(self.shared.stop_signals.next(&worker, hold).await)
    }

    /// A worker asked to be replaced (`stopPod`).
    pub async fn request_replacement(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.drain_worker(worker.clone()).await?;
        self.shared.notify_fleet(FleetEvent::Refresh { worker });
        Ok(())
    }

    /// Reads where a stream stands and tells the actor.
    pub(super) async fn warm_stream(&self, key: longshore_model::JobKey) -> Result<(), EndpointError> {
        let stored = self.shared.services.store.stream(key).await.map_err(|error| unread(&error))?;
        self.tell(Request::WarmStream { key, stream: stored.unwrap_or_default(), bytes: None })
    }

    /// The same for somebody who wants to append, and must know how much there is. What lies behind a damaged chunk is
    /// not counted: a worker goes on, whatever became of the chunks before.
    async fn warm_stream_with_bytes(&self, key: longshore_model::JobKey) -> Result<(), EndpointError> {
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
        self.tell(Request::WarmStream { key, stream: stored.unwrap_or_default(), bytes: Some(bytes) })
    }
}

/// An error that is too long is cut, and says how long it was.
fn cut(mut error: String) -> String {
    let bytes = error.len();
    if bytes > ERROR_BYTES_MAX {
        error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
        // Writing into memory cannot fail.
        let _ = write!(error, "… (cut here: the whole error has {bytes} bytes)");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_cut_between_characters_and_says_its_whole_size() {
        assert_eq!(cut("é".repeat(500_000)), "é".repeat(500_000));
        let long = format!("x{}", "é".repeat(500_000));
        let expected = format!("x{}… (cut here: the whole error has 1000001 bytes)", "é".repeat(499_999));
        assert!(cut(long) == expected);
    }
}
