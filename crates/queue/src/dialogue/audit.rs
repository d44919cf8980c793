//! The conditions that hold after every command.

use std::collections::BTreeSet;
use std::vec::Vec;

use longshore_model::{Attempt, JobId, JobRow, JobState, Millis, WorkerId};

use super::rows::{Outcome, Rows};
use crate::transitions::deadline;
use crate::{Change, Effects, Queue, Signal};

/// Asserts that the queue's memory equals the rows, and that its indexes and counters follow from them.
pub(super) fn audit(queue: &Queue, rows: &Rows) {
    assert_eq!(queue.jobs.len(), rows.jobs.len() as u64, "memory and rows hold the same jobs");
    for (slot, _) in queue.jobs.iter() {
        let row = queue.jobs.row(slot);
        assert_eq!(Some(&row), rows.jobs.get(&row.key), "memory equals rows");
        assert!(row.key.seq <= queue.counters.reserved_seq, "the sequence number is reserved: {row:?}");
        audit_payloads(&row, rows);
        audit_attempts(&row, rows);
    }
    queue.jobs.assert_slab();
    queue.assert_sums();
    queue.jobs.iter().for_each(|(slot, _)| queue.assert_job(slot));
    assert_eq!(queue.counters, rows.counters);
    let ended = |state| rows.ended.get(&state).copied().unwrap_or_default();
    assert_eq!(queue.counters.completed, ended(JobState::Completed));
    assert_eq!(queue.counters.cancelled, ended(JobState::Cancelled));
    assert_eq!(queue.counters.failed, ended(JobState::Failed) + ended(JobState::TimedOut));
    assert_eq!(queue.counters.retried, rows.retried);
    audit_order(queue);
    audit_keys(queue);
    audit_workers(queue);
}

/// Asserts that the stored payloads of a job are those of its state.
fn audit_payloads(row: &JobRow, rows: &Rows) {
    assert!(rows.inputs.contains(&row.key), "the input is stored: {row:?}");
    assert_eq!(rows.webhooks.contains(&row.key), row.webhook_pending, "{row:?}");
    let outcome = rows.outcomes.get(&row.key);
    let chunks = rows.streams.get(&row.key).copied().unwrap_or_default();
    match row.state {
        JobState::InQueue => {
            assert!(outcome.is_none() && chunks == 0, "a queued job has no outcome and no chunks: {row:?}");
        }
        JobState::InProgress => assert!(!matches!(outcome, Some(Outcome::Error(_))), "{row:?}"),
        JobState::Completed => assert_eq!(outcome, Some(&Outcome::Reported), "{row:?}"),
        JobState::Failed => assert!(outcome.is_some(), "{row:?}"),
        JobState::Cancelled => assert!(outcome.is_none(), "{row:?}"),
        JobState::TimedOut => assert!(matches!(outcome, Some(Outcome::Error(_))), "{row:?}"),
    }
}

/// Asserts that every attempt is stored whose end the job's row does not tell.
fn audit_attempts(row: &JobRow, rows: &Rows) {
    let is_stored = |n| rows.attempts.contains_key(&(row.key, Attempt(n)));
    let last = row.attempt.0;
    assert!((1..last).all(is_stored), "every former attempt is stored: {row:?}");
    assert!(!is_stored(0) && !is_stored(last + 1), "only attempts are stored: {row:?}");
    match row.state {
        JobState::InProgress => assert!(!is_stored(last), "a running attempt has not ended: {row:?}"),
        JobState::InQueue | JobState::Failed | JobState::TimedOut => {
            assert_eq!(is_stored(last), last > 0, "{row:?}");
        }
        // Told by the row, unless the attempt had ended before.
        JobState::Completed | JobState::Cancelled => {}
    }
}

/// Asserts that queued jobs, purged jobs and deadlines are listed as the rows require.
fn audit_order(queue: &Queue) {
    let (mut ready, mut purging, mut deadlines) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut running = 0;
    for (slot, row) in queue.jobs.iter() {
        if row.state() == JobState::InQueue {
            let list = if queue.is_purged(row) { &mut purging } else { &mut ready };
            list.insert((row.low_priority(), row.order, slot));
        }
        running += u64::from(row.state() == JobState::InProgress);
        match deadline(row) {
            Some(at) => _ = deadlines.insert((at, slot)),
            None => assert!(row.webhook_pending(), "only a pending webhook call keeps a row for ever"),
        }
    }
    let mut queued = queue.ready.all();
    let deferred = queue.deferred.jobs.all();
    assert!(queued.is_disjoint(&deferred), "a deferred job is not ready");
    queued.extend(deferred);
    assert_eq!(queued, ready, "a queued job is ready or deferred");
    assert_eq!(queue.purging.all(), purging, "a purged job is being purged");
    assert!(
        queue.deadlines.iter().eq(deadlines),
        "a job has one deadline, unless it is stored for its webhook"
    );
    assert_eq!(queue.running, running);
}

/// Asserts that each idempotency key maps to a job with this key, and to no older job than the newest.
fn audit_keys(queue: &Queue) {
    for (key, slot) in queue.idempotency.iter() {
        let row = queue.jobs.row(slot);
        let named = row.idempotency.map(|idempotency| (row.submitter.key, idempotency.key));
        assert_eq!(named.as_ref(), Some(key), "a key maps to a job that has it");
    }
    for (slot, row) in queue.jobs.iter() {
        let Some(key) = queue.jobs.idempotency_key(slot) else { continue };
        let newest = queue.idempotency.find(&key);
        let newer = newest.is_some_and(|other| queue.jobs[other].key() > row.key());
        assert!(newest == Some(slot) || newer || newest.is_none(), "{row:?}");
    }
}

/// Asserts that every running job is held by the worker that its row names.
fn audit_workers(queue: &Queue) {
    let (mut held, mut busy) = (0, 0);
    for (id, worker) in queue.workers.iter() {
        busy += u32::from(!worker.held.is_empty());
        for job in &worker.held {
            let row = &queue.jobs[job.slot];
            assert_eq!((row.state(), row.worker()), (JobState::InProgress, Some(id)), "{row:?}");
            held += 1;
        }
    }
    assert_eq!(queue.running, held, "every running job is held by one worker");
    assert_eq!(queue.running_workers(), busy);
    queue.workers.assert_checks(queue.settings.lease_ms);
}

/// What was over with the changes of a verb, from the rows before and after each change.
#[derive(Default)]
pub(super) struct Over {
    /// The jobs that became terminal, and whether they ran before.
    ended: Vec<(JobId, bool)>,
    /// The attempts of running jobs that were queued again.
    requeued: Vec<EndedAttempt>,
    /// The jobs that were deleted before they became terminal.
    expired: Vec<(JobState, EndedAttempt)>,
}

/// The facts of an attempt: its job and number, when it began, and its worker.
type EndedAttempt = (JobId, Attempt, Millis, Option<WorkerId>);

fn attempt_of(row: &JobRow) -> EndedAttempt {
    (row.id, row.attempt, row.started_at, row.worker.clone())
}

impl Over {
    /// Notes a change before it is written to `rows`.
    pub(super) fn note(&mut self, rows: &Rows, change: &Change) {
        let (key, state) = match change {
            Change::PutJob(row) => (row.key, Some(row.state)),
            Change::DeleteJob(key) => (*key, None),
            _ => return,
        };
        let Some(old) = rows.jobs.get(&key).filter(|old| !old.state.is_terminal()) else { return };
        let was_running = old.state == JobState::InProgress;
        match state {
            None => self.expired.push((old.state, attempt_of(old))),
            Some(JobState::InQueue) if was_running => self.requeued.push(attempt_of(old)),
            Some(state) if state.is_terminal() => self.ended.push((old.id, was_running)),
            Some(_) => {}
        }
    }
}

/// Asserts that exactly the attempts and jobs that are over have a signal, and that deleted jobs have no row.
pub(super) fn audit_signals(rows: &Rows, over: &Over, effects: &Effects) {
    let mut signalled = Over::default();
    for signal in &effects.signals {
        match signal {
            Signal::Ended { job, was_running, .. } => signalled.ended.push((*job, *was_running)),
            Signal::Requeued(requeued) => signalled.requeued.push(attempt_of(&requeued.row)),
            Signal::Expired(row) => signalled.expired.push((row.state, attempt_of(row))),
            _ => {}
        }
    }
    assert_eq!(signalled.ended, over.ended, "exactly the jobs that ended have a signal");
    assert_eq!(
        signalled.requeued, over.requeued,
        "exactly the attempts after which a job is queued have a signal"
    );
    assert_eq!(signalled.expired, over.expired, "exactly the jobs deleted before their end have a signal");
    for signal in &effects.signals {
        if let Signal::Deleted(_, key) = signal {
            assert!(!rows.jobs.contains_key(key), "a job with the signal `Deleted` has no row");
        }
    }
}
