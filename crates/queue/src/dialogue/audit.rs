//! What must be true after every command, whatever it was.

use std::collections::BTreeSet;
use std::vec::Vec;

use longshore_model::{JobRow, JobState};

use super::rows::{Outcome, Rows};
use crate::transitions::deadline;
use crate::{Effects, Queue, Signal};

/// The machine's memory is the rows, and its indexes follow from it.
pub(super) fn audit(queue: &Queue, rows: &Rows) {
    assert_eq!(queue.jobs.len(), rows.jobs.len() as u64, "memory and rows hold the same jobs");
    for (slot, _) in queue.jobs.iter() {
        let row = queue.jobs.row(slot);
        assert_eq!(Some(&row), rows.jobs.get(&row.key), "memory equals rows");
        assert!(row.key.seq <= queue.counters.reserved_seq, "its number is reserved: {row:?}");
        audit_belongings(&row, rows);
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
    audit_lines(queue);
    audit_keys(queue);
    audit_workers(queue);
}

/// Exactly what belongs to a job in its state is kept for it.
fn audit_belongings(row: &JobRow, rows: &Rows) {
    assert!(rows.inputs.contains(&row.key), "its input is kept: {row:?}");
    assert_eq!(rows.hooks.contains(&row.key), row.webhook_pending, "{row:?}");
    let outcome = rows.outcomes.get(&row.key);
    let chunks = rows.streams.get(&row.key).copied().unwrap_or_default();
    match row.state {
        JobState::InQueue => {
            assert!(outcome.is_none() && chunks == 0, "a job that waits has nothing to show: {row:?}");
        }
        JobState::InProgress => assert!(!matches!(outcome, Some(Outcome::Error(_))), "{row:?}"),
        JobState::Completed => assert_eq!(outcome, Some(&Outcome::Reported), "{row:?}"),
        JobState::Failed => assert!(outcome.is_some(), "{row:?}"),
        JobState::Cancelled => assert!(outcome.is_none(), "{row:?}"),
        JobState::TimedOut => assert!(matches!(outcome, Some(Outcome::Error(_))), "{row:?}"),
    }
}

fn audit_lines(queue: &Queue) {
    let (mut ready, mut purging, mut deadlines) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut running = 0;
    for (slot, row) in queue.jobs.iter() {
        if row.state() == JobState::InQueue {
            let line = if queue.is_purged(row) { &mut purging } else { &mut ready };
            line.insert((row.low_priority(), row.order, slot));
        }
        running += u64::from(row.state() == JobState::InProgress);
        match deadline(row) {
            Some(at) => _ = deadlines.insert((at, slot)),
            None => assert!(row.webhook_pending(), "only an owed webhook keeps a row for ever"),
        }
    }
    let mut waiting = queue.ready.all();
    let aside = queue.aside.lanes.all();
    assert!(waiting.is_disjoint(&aside), "who is set aside is not handed out");
    waiting.extend(aside);
    assert_eq!(waiting, ready, "who waits is in line, or set aside");
    assert_eq!(queue.purging.all(), purging, "who is purged is in the other line");
    assert!(queue.deadlines.iter().eq(deadlines), "one deadline per job, until only its webhook keeps it");
    assert_eq!(queue.running, running);
}

fn audit_keys(queue: &Queue) {
    for (promise, slot) in queue.idempotent.iter() {
        let row = queue.jobs.row(slot);
        let named = row.idempotency.map(|idempotency| (row.submitter.key, idempotency.key));
        assert_eq!(named.as_ref(), Some(promise), "a key leads to a job that has it");
    }
    for (slot, row) in queue.jobs.iter() {
        let Some(promise) = queue.jobs.promise(slot) else { continue };
        let newest = queue.idempotent.find(&promise);
        let newer = newest.is_some_and(|other| queue.jobs[other].key() > row.key());
        assert!(newest == Some(slot) || newer || newest.is_none(), "{row:?}");
    }
}

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
    assert_eq!(queue.running, held, "every running job is in one worker's hands");
    assert_eq!(queue.running_workers(), busy);
    queue.workers.assert_checks(queue.settings.lease_ms);
}

/// Who waits for a job hears of its end, and of nothing else.
pub(super) fn audit_signals(rows: &Rows, ended: &[JobRow], effects: &Effects) {
    let told: Vec<_> = effects
        .signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Ended { job, key, .. } => Some((*job, *key)),
            _ => None,
        })
        .collect();
    let ended: Vec<_> = ended.iter().map(|row| (row.id, row.key)).collect();
    assert_eq!(told, ended, "exactly the jobs that ended are announced");
    for signal in &effects.signals {
        if let Signal::Deleted(_, key) = signal {
            assert!(!rows.jobs.contains_key(key), "what is announced as deleted is deleted");
        }
    }
}
