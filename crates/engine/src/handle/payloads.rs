//! Rows and their payloads, put together.

use bytes::Bytes;
use longshore_model::{JobRow, JobState};
use longshore_store::{OutcomeRow, Payload};

use super::EndpointHandle;
use crate::actor::ask::unavailable;
use crate::{AskError, JobSnapshot};

/// Outputs and errors over this size are left out of lists, in bytes.
const LISTED_BYTES_MAX: usize = 4096;

impl EndpointHandle {
    /// The job with its output and error.
    pub(super) async fn snapshot(&self, row: JobRow) -> Result<JobSnapshot, AskError> {
        let outcome = self.outcome(&row).await?;
        let output = match outcome.output {
            Some(payload) => Some(self.shared.fetch(payload).await?),
            None => None,
        };
        let error = outcome.error.map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error })
    }

    /// The job with its output and error as far as they are small.
    pub(super) async fn small_snapshot(&self, row: JobRow) -> Result<JobSnapshot, AskError> {
        let outcome = self.outcome(&row).await?;
        let output = match outcome.output {
            Some(Payload::Inline(bytes)) if bytes.len() <= LISTED_BYTES_MAX => Some(bytes),
            _ => None,
        };
        let error = outcome.error.filter(|error| error.len() <= LISTED_BYTES_MAX).map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error })
    }

    async fn outcome(&self, row: &JobRow) -> Result<OutcomeRow, AskError> {
        if matches!(row.state, JobState::InQueue | JobState::Cancelled) {
            return Ok(OutcomeRow::default());
        }
        let ground = &self.shared.ground;
        // Of a job that runs, the result may be known already but not be on disk yet: only the store tells.
        if row.state.is_terminal()
            && let Some(outcome) = ground.recent.outcome(row.key)
        {
            return Ok(outcome);
        }
        let stored = ground.store.outcome(row.key).await.map_err(|error| unavailable(&error))?;
        Ok(stored.unwrap_or_default())
    }

    /// The members of the job's submitted JSON object.
    pub(super) async fn input(&self, row: &JobRow) -> Result<Bytes, AskError> {
        let ground = &self.shared.ground;
        let payload = match ground.recent.input(row.key) {
            Some(payload) => Some(payload),
            None => ground.store.input(row.key).await.map_err(|error| unavailable(&error))?,
        };
        match payload {
            Some(payload) => self.shared.fetch(payload).await,
            None => Err(AskError::Unavailable(format!("the input of job {} is missing", row.id))),
        }
    }
}
