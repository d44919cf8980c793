//! Rows and their payloads, put together.

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobRow, JobState};
use longshore_planted::{Bug, planted};
use longshore_store::{OutcomeRow, Payload};

use super::EndpointHandle;
use crate::actor::query::View;
use crate::actor::request::unread;
use crate::{BudgetPermit, EndpointError, JobSnapshot};

/// How long a look at a job waits for room in memory.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// How long somebody does who has waited for a job: longer than readers that do not read can keep theirs.
const WAIT_PATIENCE: Duration = Duration::from_mins(1);

/// Outputs and errors over this size are left out of lists, in bytes.
const LISTED_BYTES_MAX: usize = 4096;

impl EndpointHandle {
    /// The job with its output and error; as it is now where it went on since its row was read.
    pub(super) fn snapshot(
        &self,
        row: JobRow,
    ) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send {
        self.snapshot_within(row, LOOK_PATIENCE)
    }

    /// The same for somebody who has waited for the job's end, and may not come again.
    pub(super) fn awaited(
        &self,
        row: JobRow,
    ) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send {
        self.snapshot_within(row, WAIT_PATIENCE)
    }

    async fn snapshot_within(&self, row: JobRow, patience: Duration) -> Result<JobSnapshot, EndpointError> {
        let id = row.id;
        match self.read_snapshot(row, patience).await {
            // Boxed, as it is rare.
            Err(error) if error.is_of_reading() => Box::pin(self.snapshot_again(id)).await,
            snapshot => snapshot,
        }
    }

    /// What was to be read may be gone since a moment ago: because the job is, or because there is a newer value. What
    /// cannot be read now either is not there to be read.
    async fn snapshot_again(&self, id: JobId) -> Result<JobSnapshot, EndpointError> {
        let row = self.present(id).await?;
        let runs = row.state == JobState::InProgress;
        let snapshot = self.read_snapshot(row, LOOK_PATIENCE).await.map_err(|error| match error {
            // There may be yet another value.
            EndpointError::Damaged(reason) if runs => EndpointError::Unreadable(reason),
            error => error,
        });
        snapshot.inspect_err(|error| self.note_unread(id, "output", error))
    }

    async fn read_snapshot(&self, row: JobRow, patience: Duration) -> Result<JobSnapshot, EndpointError> {
        if row.state == JobState::InQueue {
            // Nothing came out of it yet; most answers to a submit are this.
            return Ok(JobSnapshot {
                row,
                now: self.now(),
                output: None,
                error: None,
                room: BudgetPermit::default(),
            });
        }
        let (row, outcome) = self.with_outcome(row).await?;
        // An error is shown as JSON text, beside what was read.
        let error_bytes = 2 * outcome.error.as_ref().map_or(0, |error| error.len());
        let output_bytes = outcome.output.as_ref().map_or(0, length);
        let room = self.shared.services.answers.hold(output_bytes + error_bytes, patience).await?;
        let output = match outcome.output {
            Some(payload) => match self.shared.fetch_output(payload, &room).await {
                Err(EndpointError::Damaged(_)) if planted(Bug::DamagedOutputOmitted) => None,
                output => Some(room.around(output?)),
            },
            None => None,
        };
        let error = outcome.error.map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error, room })
    }

    /// The job with its output and error as far as they are small. One whose outcome cannot be read says so in its
    /// place: the others of the list are shown all the same.
    pub(super) async fn small_snapshot(&self, row: JobRow) -> Result<JobSnapshot, EndpointError> {
        let seen = row.clone();
        let (row, outcome) = match self.with_outcome(row).await {
            Err(error) if error.is_of_reading() => {
                self.note_unread(seen.id, "output", &error);
                let error = match error {
                    EndpointError::Damaged(_) => "what is stored of the job is damaged on the server's disk",
                    _ => "what is stored of the job cannot be read at the moment",
                };
                (seen, OutcomeRow { output: None, error: Some(error.into()) })
            }
            read => read?,
        };
        let output = match outcome.output {
            Some(Payload::Inline(bytes)) if bytes.len() <= LISTED_BYTES_MAX => Some(bytes),
            _ => None,
        };
        let error = outcome.error.filter(|error| error.len() <= LISTED_BYTES_MAX).map(String::from);
        Ok(JobSnapshot { row, now: self.now(), output, error, room: BudgetPermit::default() })
    }

    /// The outcome is read after the row, and is that of a later time if the job went on between the two: then
    /// both are read again.
    async fn with_outcome(&self, mut row: JobRow) -> Result<(JobRow, OutcomeRow), EndpointError> {
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
            let present = self.present(row.id).await?;
            if (present.state, present.attempt) == (row.state, row.attempt) {
                return Ok((row, outcome.unwrap_or_default()));
            }
            row = present;
        }
    }

    /// The job's row as it is now.
    async fn present(&self, id: JobId) -> Result<JobRow, EndpointError> {
        self.row(id, View::VisibleOrStored).await
    }

    /// Says in the log that a part of a job could not be read, if that is what the error says.
    pub(super) fn note_unread(&self, job: JobId, part: &str, error: &EndpointError) {
        self.shared.services.read_faults.note(self.now(), self.shared.id, job, part, error);
    }

    async fn outcome(&self, row: &JobRow) -> Result<Option<OutcomeRow>, EndpointError> {
        if matches!(row.state, JobState::InQueue | JobState::Cancelled) {
            return Ok(None);
        }
        let ground = &self.shared.services;
        // Of a job that runs, the result may be known already but not be on disk yet: only the store tells.
        if row.state.is_terminal()
            && let Some(outcome) = ground.payload_cache.outcome(row.key)
        {
            return Ok(Some(outcome));
        }
        ground.store.outcome(row.key).await.map_err(|error| unread(&error))
    }

    /// Room for bytes that are on their way to a client; none is needed for few.
    pub async fn hold(&self, bytes: usize) -> Result<BudgetPermit, EndpointError> {
        self.shared.services.answers.hold(bytes, LOOK_PATIENCE).await
    }

    /// The members of the job's submitted JSON object, whose part of the budget is `room`.
    pub(super) async fn input(&self, row: &JobRow, room: &BudgetPermit) -> Result<Bytes, EndpointError> {
        match self.shared.services.payload_cache.input(row.key) {
            Some(Payload::Inline(bytes)) => Ok(bytes),
            // Boxed: every take would carry around what few of them need.
            recent => Box::pin(self.fetched_input(row, recent, room)).await,
        }
    }

    async fn fetched_input(
        &self,
        row: &JobRow,
        recent: Option<Payload>,
        room: &BudgetPermit,
    ) -> Result<Bytes, EndpointError> {
        let payload = match recent {
            Some(payload) => Some(payload),
            None => self.shared.services.store.input(row.key).await.map_err(|error| unread(&error))?,
        };
        match payload {
            Some(payload) => self.shared.fetch(payload, room).await,
            None => Err(EndpointError::Damaged("the store has no input of the job".to_owned())),
        }
    }
}

/// The length of a payload, in bytes.
fn length(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(bytes) => bytes.len(),
        Payload::Blob(reference) => usize::try_from(reference.bytes).unwrap_or(usize::MAX),
    }
}
