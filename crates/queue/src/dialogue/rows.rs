//! A store made of maps, and what must be true of every row that is written.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use longshore_model::{Counters, JobId, JobKey, JobRow, JobState};

use super::command::Command;
use crate::Change;
use crate::transitions::DELETED;

/// What is kept of a job's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reported,
    Error(String),
}

/// Something worth printing about a job.
pub(super) struct Note {
    pub(super) job: JobId,
    pub(super) text: String,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) jobs: BTreeMap<JobKey, JobRow>,
    pub(super) counters: Counters,
    pub(super) inputs: BTreeSet<JobKey>,
    pub(super) outcomes: BTreeMap<JobKey, Outcome>,
    /// How many chunks are kept; present once there was one.
    pub(super) streams: BTreeMap<JobKey, u32>,
    pub(super) hooks: BTreeSet<JobKey>,
    /// Counted here from the rows alone, to compare the counters with.
    pub(super) ended: BTreeMap<JobState, u64>,
    pub(super) retried: u64,
    last_seq: u64,
}

impl Rows {
    pub(super) fn write(&mut self, cause: &Command, change: &Change, notes: &mut Vec<Note>) {
        let mut note = |job, text| notes.push(Note { job, text });
        match change {
            Change::PutJob(row) => {
                let old = self.jobs.insert(row.key, JobRow::clone(row));
                self.assert_allowed(cause, old.as_ref(), row);
                if let Some(text) = old.and_then(|old| what_changed(&old, row)) {
                    note(row.id, text);
                }
            }
            Change::DeleteJob(key) => {
                self.jobs.remove(key).expect("a job that is deleted exists");
                self.inputs.remove(key);
                self.outcomes.remove(key);
                self.streams.remove(key);
                self.hooks.remove(key);
            }
            Change::PutInput(key) => assert!(self.inputs.insert(*key), "an input is kept once"),
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
            Change::PutWebhook(key) => assert!(self.hooks.insert(*key), "a hook is owed once"),
            Change::DeleteWebhook(key) => assert!(self.hooks.remove(key), "only what is owed is forgotten"),
        }
    }

    /// The arrows of the job's life, written down a second time.
    fn assert_allowed(&mut self, cause: &Command, old: Option<&JobRow>, new: &JobRow) {
        use JobState::{Cancelled, Completed, Failed, InProgress, InQueue, TimedOut};
        let Some(old) = old else {
            assert!(matches!(cause, Command::Submit(_)), "only a submit makes a job, not {cause:?}");
            assert!(new.state == InQueue && new.never_taken, "{new:?}");
            assert!(new.key.seq > self.last_seq, "a number is given out once: {new:?}");
            self.last_seq = new.key.seq;
            return;
        };
        assert_eq!((old.id, old.created_at, old.ttl_ms), (new.id, new.created_at, new.ttl_ms));
        assert_eq!((old.submitter, &old.carried), (new.submitter, &new.carried));
        let takes = u32::from((old.state, new.state) == (InQueue, InProgress));
        assert_eq!(old.attempt.0 + takes, new.attempt.0, "attempts count the takes");
        if old.state != new.state && new.state.is_terminal() {
            *self.ended.entry(new.state).or_default() += 1;
            assert_eq!(new.webhook_pending, new.webhook);
        }
        let by_hand = old.state.is_terminal() && new.state == InQueue;
        self.retried += u64::from(by_hand || old.retries < new.retries);
        let allowed = match (old.state, new.state) {
            (InQueue, InProgress) => matches!(cause, Command::Take(_)),
            (InQueue, Completed) => matches!(cause, Command::Report { .. }) && !old.never_taken,
            // The output of a lost worker can be too large.
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
            (one, other) if one == other => is_touched_only(old, new, cause),
            _ => false,
        };
        assert!(allowed, "{cause:?} must not lead from {old:?} to {new:?}");
    }
}

/// Within a state only the time of deletion changes, and whether the webhook is owed.
fn is_touched_only(old: &JobRow, new: &JobRow, cause: &Command) -> bool {
    let may_owe_again = matches!(cause, Command::RedeliverWebhook { .. });
    let same = JobRow {
        delete_at: new.delete_at,
        ttl_pinned: new.ttl_pinned,
        webhook_pending: (old.webhook_pending || may_owe_again) && new.webhook_pending,
        ..old.clone()
    };
    same == *new
}

fn what_changed(old: &JobRow, new: &JobRow) -> Option<String> {
    if old.state == new.state {
        let settled = (old.webhook_pending && !new.webhook_pending).then(|| "webhook settled".to_string());
        let is_gone = new.delete_at == DELETED && old.delete_at != DELETED;
        return settled.or(is_gone.then(|| "gone".to_string()));
    }
    match (old.state, new.state) {
        (JobState::InProgress, JobState::InQueue) if old.retries != new.retries => {
            Some(format!("back in line, retry {}", new.retries))
        }
        (JobState::InProgress, JobState::InQueue) if old.redeliveries != new.redeliveries => {
            Some(format!("back in line, redelivery {}", new.redeliveries))
        }
        (JobState::InProgress, JobState::InQueue) => Some("back in line".to_string()),
        // The reply says it.
        (_, JobState::InQueue | JobState::InProgress) => None,
        (_, ended) => Some(ended.to_string()),
    }
}
