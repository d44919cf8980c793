//! Rows and their payloads, put together.

use bytes::Bytes;
use longshore_model::{JobRow, JobState};
use longshore_queue::{Queue, Refusal};
use longshore_store::{OutcomeRow, Payload};

use super::EndpointHandle;
use crate::actor::ask::unavailable;
use crate::{AskError, JobSnapshot};

/// Outputs and errors over this size are left out of lists, in bytes.
const LISTED_BYTES_MAX: usize = 4096;

impl EndpointHandle {
    /// The job with its output and error; as it is now where it went on since its row was read.
    pub(super) async fn snapshot(&self, row: JobRow) -> Result<JobSnapshot, AskError> {
        if row.state == JobState::InQueue {
            // Nothing came out of it yet; most answers to a submit are this.
            return Ok(JobSnapshot { row, now: self.now(), output: None, error: None });
        }
        let (row, outcome) = self.with_outcome(row).await?;
        let output = match outcome.output {
            Some(payload) => Some(self.shared.fetch(payload).await?),
            None => None,
        };
        let error = outcome.error.map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error })
    }

    /// The job with its output and error as far as they are small.
    pub(super) async fn small_snapshot(&self, row: JobRow) -> Result<JobSnapshot, AskError> {
        let (row, outcome) = self.with_outcome(row).await?;
        let output = match outcome.output {
            Some(Payload::Inline(bytes)) if bytes.len() <= LISTED_BYTES_MAX => Some(bytes),
            _ => None,
        };
        let error = outcome.error.filter(|error| error.len() <= LISTED_BYTES_MAX).map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error })
    }

    /// The outcome is read after the row, and is that of a later time if the job went on between the two: then
    /// both are read again.
    async fn with_outcome(&self, mut row: JobRow) -> Result<(JobRow, OutcomeRow), AskError> {
        loop {
            let outcome = self.outcome(&row).await?;
            let may_be_later = match row.state {
                JobState::InQueue | JobState::Cancelled => false,
                JobState::InProgress => outcome.is_some(),
                // Each of these was written with its outcome.
                JobState::Completed | JobState::Failed | JobState::TimedOut => outcome.is_none(),
            };
            if !may_be_later {
                return Ok((row, outcome.unwrap_or_default()));
            }
            let id = row.id;
            let seen = move |queue: &Queue, now| queue.visible(id, now).or_else(|| queue.stored(id));
            let present = self.inspect(seen).await?.ok_or(AskError::Refused(Refusal::NoSuchJob))?;
            if (present.state, present.attempt) == (row.state, row.attempt) {
                return Ok((row, outcome.unwrap_or_default()));
            }
            row = present;
        }
    }

    async fn outcome(&self, row: &JobRow) -> Result<Option<OutcomeRow>, AskError> {
        if matches!(row.state, JobState::InQueue | JobState::Cancelled) {
            return Ok(None);
        }
        let ground = &self.shared.ground;
        // Of a job that runs, the result may be known already but not be on disk yet: only the store tells.
        if row.state.is_terminal()
            && let Some(outcome) = ground.recent.outcome(row.key)
        {
            return Ok(Some(outcome));
        }
        ground.store.outcome(row.key).await.map_err(|error| unavailable(&error))
    }

    /// The members of the job's submitted JSON object.
    pub(super) async fn input(&self, row: &JobRow) -> Result<Bytes, AskError> {
        match self.shared.ground.recent.input(row.key) {
            Some(Payload::Inline(bytes)) => Ok(bytes),
            // Boxed: every take would carry around what few of them need.
            recent => Box::pin(self.fetched_input(row, recent)).await,
        }
    }

    async fn fetched_input(&self, row: &JobRow, recent: Option<Payload>) -> Result<Bytes, AskError> {
        let payload = match recent {
            Some(payload) => Some(payload),
            None => self.shared.ground.store.input(row.key).await.map_err(|error| unavailable(&error))?,
        };
        match payload {
            Some(payload) => self.shared.fetch(payload).await,
            None => Err(AskError::Unavailable(format!("the input of job {} is missing", row.id))),
        }
    }
}
