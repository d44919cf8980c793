//! A store in maps, and the conditions of every change of a row.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use longshore_model::{Attempt, Counters, EndedAttempt, JobId, JobKey, JobRow, JobState, Millis};

use super::command::Command;
use crate::Change;
use crate::transitions::DELETED;

/// The stored outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The outcome or progress value that a worker reported.
    Reported,
    /// An error that the queue wrote.
    Error(String),
}

/// A text about a job that a dialogue prints.
pub(super) struct Note {
    pub(super) job: JobId,
    pub(super) text: String,
}

/// The stored rows of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) jobs: BTreeMap<JobKey, JobRow>,
    pub(super) counters: Counters,
    pub(super) inputs: BTreeSet<JobKey>,
    pub(super) outcomes: BTreeMap<JobKey, Outcome>,
    /// The attempts that ended without the job's result.
    pub(super) attempts: BTreeMap<(JobKey, Attempt), EndedAttempt>,
    /// The number of chunks of each stream that has had one.
    pub(super) streams: BTreeMap<JobKey, u32>,
    /// The jobs with a pending webhook call.
    pub(super) webhooks: BTreeSet<JobKey>,
    /// The number of ends by state, counted from the rows. The counters are compared with it.
    pub(super) ended: BTreeMap<JobState, u64>,
    /// The number of retries, counted from the rows.
    pub(super) retried: u64,
    /// The highest sequence number of all jobs so far.
    last_seq: u64,
}

impl Rows {
    /// Applies a change that `cause` made, and asserts that it may. Adds notes for the dialogue.
    pub(super) fn write(&mut self, cause: &Command, change: &Change, notes: &mut Vec<Note>) {
        let mut note = |job, text| notes.push(Note { job, text });
        match change {
            Change::PutJob(row) => {
                let old = self.jobs.insert(row.key, JobRow::clone(row));
                self.assert_allowed(cause, old.as_ref(), row);
                if let Some(text) = old.and_then(|old| change_text(&old, row)) {
                    note(row.id, text);
                }
            }
            Change::DeleteJob(key) => {
                self.jobs.remove(key).expect("a job that is deleted exists");
                self.inputs.remove(key);
                self.outcomes.remove(key);
                self.attempts.retain(|(job, _), _| job != key);
                self.streams.remove(key);
                self.webhooks.remove(key);
            }
            Change::PutInput(key) => assert!(self.inputs.insert(*key), "an input is stored once"),
            Change::PutOutcome(key) => {
                self.outcomes.insert(*key, Outcome::Reported);
                note(self.jobs[key].id, "outcome kept".to_string());
            }
            Change::PutError(key, error) => {
                self.outcomes.insert(*key, Outcome::Error(error.clone()));
                note(self.jobs[key].id, format!("error {error:?}"));
            }
            Change::ClearOutcome(key) => {
                if self.outcomes.remove(key).is_some() {
                    note(self.jobs[key].id, "outcome cleared".to_string());
                }
            }
            Change::PutAttempt(key, attempt) => {
                let row = &self.jobs[key];
                assert_eq!(row.state, JobState::InProgress, "a running attempt ends");
                assert_eq!((attempt.n, &attempt.worker), (row.attempt, &row.worker), "{row:?}");
                assert_eq!(attempt.taken_at, row.started_at, "{row:?}");
                let before = self.attempts.insert((*key, attempt.n), EndedAttempt::clone(attempt));
                assert_eq!(before, None, "an attempt ends once");
            }
            Change::DropChunks(key) => {
                if let Some(chunks) = self.streams.get_mut(key).filter(|chunks| **chunks > 0) {
                    note(self.jobs[key].id, format!("chunks dropped: {chunks}"));
                    *chunks = 0;
                }
            }
            Change::ResetStream(key) => {
                if self.streams.remove(key).is_some() {
                    note(self.jobs[key].id, "stream reset".to_string());
                }
            }
            Change::PutWebhook(key) => {
                assert!(self.webhooks.insert(*key), "a webhook call becomes pending once");
            }
            Change::DeleteWebhook(key) => {
                assert!(self.webhooks.remove(key), "only a pending webhook call is deleted");
            }
        }
    }

    /// Asserts that a command may change a job from `old` to `new`: the transitions, written a second time.
    fn assert_allowed(&mut self, cause: &Command, old: Option<&JobRow>, new: &JobRow) {
        use JobState::{Cancelled, Completed, Failed, InProgress, InQueue, TimedOut};
        let Some(old) = old else {
            assert!(matches!(cause, Command::Submit(_)), "only a submit adds a job, not {cause:?}");
            assert!(new.state == InQueue && new.never_taken, "{new:?}");
            assert!(new.key.seq > self.last_seq, "a sequence number is assigned once: {new:?}");
            self.last_seq = new.key.seq;
            return;
        };
        assert_eq!((old.id, old.created_at, old.ttl_ms), (new.id, new.created_at, new.ttl_ms));
        assert_eq!((old.submitter, &old.trace, &old.carried), (new.submitter, &new.trace, &new.carried));
        let takes = u32::from((old.state, new.state) == (InQueue, InProgress));
        assert_eq!(old.attempt.0 + takes, new.attempt.0, "attempts count the takes");
        if old.state != new.state && new.state.is_terminal() {
            *self.ended.entry(new.state).or_default() += 1;
            assert_eq!(new.webhook_pending, new.webhook);
        }
        let is_client_retry = old.state.is_terminal() && new.state == InQueue;
        assert!(is_client_retry || old.retried_at == new.retried_at, "only a client retry has its time");
        self.retried += u64::from(is_client_retry || old.retries < new.retries);
        let has_chunk = new.first_chunk_at != Millis(0);
        assert!(!(has_chunk && new.state == InQueue), "a queued job has no chunk: {new:?}");
        let allowed = match (old.state, new.state) {
            (InQueue, InProgress) => matches!(cause, Command::Take(_)),
            (InQueue, Completed) => matches!(cause, Command::Report { .. }) && !old.never_taken,
            (InQueue, Failed) => matches!(cause, Command::Report { .. }) && !old.never_taken,
            (InQueue, Cancelled) => matches!(cause, Command::Cancel(_) | Command::Tick),
            (InProgress, Cancelled) => matches!(cause, Command::Cancel(_)),
            (InProgress, Completed) => matches!(cause, Command::Report { .. }),
            (InProgress, TimedOut) => matches!(cause, Command::Tick),
            (InProgress, InQueue | Failed) => matches!(
                cause,
                Command::Report { .. }
                    | Command::Ping { .. }
                    | Command::Take(_)
                    | Command::LoseWorker { .. }
                    | Command::Undelivered { .. }
                    | Command::Tick
            ),
            (Failed | TimedOut, InQueue) => matches!(cause, Command::Retry(_)),
            (one, other) if one == other => keeps_other_fields(old, new, cause),
            _ => false,
        };
        assert!(allowed, "{cause:?} must not lead from {old:?} to {new:?}");
    }
}

/// Whether only the time of deletion or of the first chunk changed, and whether a webhook call is pending.
fn keeps_other_fields(old: &JobRow, new: &JobRow, cause: &Command) -> bool {
    let may_redeliver = matches!(cause, Command::RedeliverWebhook { .. });
    let is_first_chunk = matches!(cause, Command::Append { .. }) && old.first_chunk_at == Millis(0);
    let same = JobRow {
        first_chunk_at: if is_first_chunk { new.first_chunk_at } else { old.first_chunk_at },
        delete_at: new.delete_at,
        ttl_pinned: new.ttl_pinned,
        webhook_pending: (old.webhook_pending || may_redeliver) && new.webhook_pending,
        ..old.clone()
    };
    same == *new
}

/// The text of a change of a job; `None` for one that is not printed.
fn change_text(old: &JobRow, new: &JobRow) -> Option<String> {
    if old.state == new.state {
        let settled = (old.webhook_pending && !new.webhook_pending).then(|| "webhook settled".to_string());
        let is_expired = new.delete_at == DELETED && old.delete_at != DELETED;
        return settled.or(is_expired.then(|| "gone".to_string()));
    }
    match (old.state, new.state) {
        (JobState::InProgress, JobState::InQueue) if old.retries != new.retries => {
            Some(format!("back in line, retry {}", new.retries))
        }
        (JobState::InProgress, JobState::InQueue) if old.redeliveries != new.redeliveries => {
            Some(format!("back in line, redelivery {}", new.redeliveries))
        }
        (JobState::InProgress, JobState::InQueue) => Some("back in line".to_string()),
        // The printed reply shows these.
        (_, JobState::InQueue | JobState::InProgress) => None,
        (_, ended) => Some(ended.to_string()),
    }
}
