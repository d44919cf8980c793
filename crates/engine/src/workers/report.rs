//! A worker's reports on a job: the result, and progress values.

use std::fmt::Write as _;

use bytes::Bytes;
use longshore_model::limits::{ERROR_BYTES_MAX, PROGRESS_BYTES_MAX};
use longshore_model::{JobId, WorkerId};
use longshore_queue::Report;
use longshore_store::{OutcomeRow, Payload};

use super::Workers;
use crate::actor::request::Request;
use crate::{EndpointError, Outcome};

impl Workers {
    /// Reports the outcome of a job. That ends the job, or requeues it if it failed and the endpoint retries errors. A
    /// report that does not count is no error and leaves the job as it is.
    ///
    /// An output over the limit of its job's kind is not stored, and the queue fails the job instead. An error text is
    /// cut to [`ERROR_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
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
        self.shared.request(|reply| Request::Report { worker, job, report, outcome: row, reply }).await?;
        Ok(())
    }

    /// The size limit of the job's output, in bytes.
    fn output_bytes_max(&self, job: JobId) -> u64 {
        let settings = &self.shared.services.settings;
        if job.is_sync() { settings.sync_output_bytes_max } else { settings.output_bytes_max }
    }

    /// The output as the row has it. A large one is written to a file first.
    async fn put_output(&self, job: JobId, output: Option<Bytes>) -> Result<Option<Payload>, EndpointError> {
        match output {
            // Boxed: few outputs are large, and every future would reserve the size.
            Some(bytes) if self.shared.is_large(&bytes) => {
                let reference = Box::pin(self.shared.put_blob(self.shared.output_file(job), bytes));
                Ok(Some(Payload::Blob(reference.await?)))
            }
            small => Ok(small.map(Payload::Inline)),
        }
    }

    /// Stores a progress value, which is JSON text, in place of the last one. A value over [`PROGRESS_BYTES_MAX`] bytes
    /// is dropped, and the last one stays.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn progress(&self, worker: WorkerId, job: JobId, value: Bytes) -> Result<(), EndpointError> {
        if value.len() > PROGRESS_BYTES_MAX {
            return self.shared.send(Request::TouchWorker { worker });
        }
        let output = self.put_output(job, Some(value)).await?;
        let outcome = OutcomeRow { output, error: None };
        self.shared.request(|reply| Request::Progress { worker, job, outcome, reply }).await
    }
}

/// Cuts an error text over [`ERROR_BYTES_MAX`] bytes and appends its whole size.
fn cut(mut error: String) -> String {
    let bytes = error.len();
    if bytes > ERROR_BYTES_MAX {
        error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
        // Writing to a string cannot fail.
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
