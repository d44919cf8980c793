//! A job's row with its output and error.

use std::time::Duration;

use longshore_model::{JobId, JobRow, JobState};
use longshore_planted::{Bug, planted};
use longshore_store::{OutcomeRow, Payload};

use super::{Jobs, ROOM_WAIT};
use crate::actor::query::View;
use crate::actor::request::unread;
use crate::{BudgetPermit, EndpointError, JobSnapshot};

/// How long the reply to a wait waits for memory: as long as a client that reads nothing can keep the memory of its
/// response. The client of a wait may not ask again.
const ENDED_ROOM_WAIT: Duration = Duration::from_mins(1);

/// The size limit of outputs and errors in lists, in bytes.
pub(super) const LISTED_BYTES_MAX: usize = 4096;

impl Jobs {
    /// The job with its output and error. If the job went on since its row was read, the returned row is the later one.
    pub(super) fn snapshot(
        &self,
        row: JobRow,
    ) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send {
        self.snapshot_within(row, ROOM_WAIT)
    }

    /// As [`Jobs::snapshot`], for the reply to a wait for the job's end.
    pub(super) fn ended_snapshot(
        &self,
        row: JobRow,
    ) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send {
        self.snapshot_within(row, ENDED_ROOM_WAIT)
    }

    async fn snapshot_within(&self, row: JobRow, room_wait: Duration) -> Result<JobSnapshot, EndpointError> {
        let id = row.id;
        match self.read_snapshot(row, room_wait).await {
            // Boxed: few reads fail, and every future would reserve the size.
            Err(error) if error.is_of_reading() => Box::pin(self.snapshot_again(id)).await,
            snapshot => snapshot,
        }
    }

    /// Reads the job again after its outcome could not be read, because a payload is deleted with its job or when a
    /// newer value replaces it. The second failure is the result.
    async fn snapshot_again(&self, id: JobId) -> Result<JobSnapshot, EndpointError> {
        let row = self.present(id).await?;
        let runs = row.state == JobState::InProgress;
        let snapshot = self.read_snapshot(row, ROOM_WAIT).await.map_err(|error| match error {
            // A third progress value may have replaced the second.
            EndpointError::Damaged(reason) if runs => EndpointError::Unreadable(reason),
            error => error,
        });
        snapshot.inspect_err(|error| self.shared.note_unread(id, "output", error))
    }

    async fn read_snapshot(&self, row: JobRow, room_wait: Duration) -> Result<JobSnapshot, EndpointError> {
        if row.state == JobState::InQueue {
            // A queued job has no outcome. Most replies to a wait after a submit are such jobs.
            return Ok(JobSnapshot {
                row,
                now: self.shared.now(),
                output: None,
                output_bytes: None,
                error: None,
                room: BudgetPermit::default(),
            });
        }
        let (row, outcome) = self.with_outcome(row).await?;
        // The response has the error as JSON text, in addition to the bytes that were read.
        let error_bytes = 2 * outcome.error.as_ref().map_or(0, |error| error.len());
        let output_bytes = outcome.output.as_ref().map_or(0, length);
        let room = self.shared.services.answers.hold(output_bytes + error_bytes, room_wait).await?;
        let output = match outcome.output {
            Some(payload) => match self.shared.fetch_output(payload, &room).await {
                Err(EndpointError::Damaged(_)) if planted(Bug::DamagedOutputOmitted) => None,
                output => Some(room.around(output?)),
            },
            None => None,
        };
        let error = outcome.error.map(String::from);
        let output_bytes = output.as_ref().map(|output| output.len() as u64);
        Ok(JobSnapshot { row, now: self.shared.now(), output, output_bytes, error, room })
    }

    /// The job with its output and error. An output over `LISTED_BYTES_MAX` or an error over `error_bytes_max` is left out, and
    /// so is an output that is a file. If the outcome cannot be read, the error says so, because the list has other jobs.
    pub(super) async fn small_snapshot(
        &self,
        row: JobRow,
        error_bytes_max: usize,
    ) -> Result<JobSnapshot, EndpointError> {
        let seen = row.clone();
        let (row, outcome) = match self.with_outcome(row).await {
            Err(error) if error.is_of_reading() => {
                self.shared.note_unread(seen.id, "output", &error);
                let error = match error {
                    EndpointError::Damaged(_) => "what is stored of the job is damaged on the server's disk",
                    _ => "what is stored of the job cannot be read at the moment",
                };
                (seen, OutcomeRow { output: None, error: Some(error.into()) })
            }
            read => read?,
        };
        let output_bytes = outcome.output.as_ref().map(|output| length(output) as u64);
        let output = match outcome.output {
            Some(Payload::Inline(bytes)) if bytes.len() <= LISTED_BYTES_MAX => Some(bytes),
            _ => None,
        };
        let error = outcome.error.filter(|error| error.len() <= error_bytes_max).map(String::from);
        let room = BudgetPermit::default();
        Ok(JobSnapshot { row, now: self.shared.now(), output, output_bytes, error, room })
    }

    /// The job's error as plain text; empty without one.
    pub(super) async fn error_of(&self, row: &JobRow) -> Result<Box<str>, EndpointError> {
        let (_, outcome) = self.with_outcome(row.clone()).await?;
        Ok(outcome.error.unwrap_or_default())
    }

    /// The row with its outcome. The outcome is read after the row: if the job went on between the two reads, both are
    /// read again.
    async fn with_outcome(&self, mut row: JobRow) -> Result<(JobRow, OutcomeRow), EndpointError> {
        loop {
            let outcome = self.outcome(&row).await?;
            let may_be_later = match row.state {
                JobState::InQueue | JobState::Cancelled => false,
                JobState::InProgress => outcome.is_some(),
                // These rows are written together with their outcome.
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

    async fn outcome(&self, row: &JobRow) -> Result<Option<OutcomeRow>, EndpointError> {
        if matches!(row.state, JobState::InQueue | JobState::Cancelled) {
            return Ok(None);
        }
        let services = &self.shared.services;
        // The cache may have the result of a running job before the result is durable.
        if row.state.is_terminal()
            && let Some(outcome) = services.payload_cache.outcome(row.key)
        {
            return Ok(Some(outcome));
        }
        services.store.outcome(row.key).await.map_err(|error| unread(&error))
    }
}

/// The length of a payload, in bytes.
fn length(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(bytes) => bytes.len(),
        Payload::Blob(reference) => usize::try_from(reference.bytes).unwrap_or(usize::MAX),
    }
}
