//! The environment of a queue in tests: a clock, a store in maps, and names of jobs.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use longshore_model::{EndpointNo, JobEnd, JobId, JobRow, Millis, WorkerId};

use super::audit::{self, Over};
use super::command::{Command, Reply};
use super::rows::{Note, Rows};
use crate::{Effects, Queue, QueueSettings, Signal};

const ENDPOINT: EndpointNo = EndpointNo(7);
/// The time at which every test starts; dialogues print times relative to it.
pub(super) const START: Millis = Millis(1_700_000_000_000);

/// A queue with its environment.
pub(super) struct World {
    pub(super) queue: Queue,
    pub(super) rows: Rows,
    pub(super) settings: QueueSettings,
    pub(super) now: Millis,
    /// The jobs by the names that scripts use.
    pub(super) names: BTreeMap<String, JobId>,
    /// The ends of each job that had a webhook call, the latest last.
    pub(super) ends: BTreeMap<JobId, Vec<JobEnd>>,
}

impl World {
    /// Returns an empty queue at [`START`], with short limits for tests.
    pub(super) fn new() -> Self {
        let settings = QueueSettings {
            paused: false,
            execution_timeout_ms: 600_000,
            max_retries: 2,
            retry_handler_errors: false,
            retention_ms: 1_800_000,
            sync_retention_ms: 60_000,
            output_bytes_max: 1_000,
            sync_output_bytes_max: 2_000,
            jobs_max: 1_000_000,
            lease_ms: 30_000,
            stop_grace_ms: 10_000,
        };
        let rows = Rows::default();
        let queue = Queue::new(ENDPOINT, settings, rows.counters);
        Self { queue, rows, settings, now: START, names: BTreeMap::new(), ends: BTreeMap::new() }
    }

    /// The job with this name. A new name gets a new id.
    pub(super) fn job(&mut self, name: &str, sync: bool) -> JobId {
        let (now, count) = (self.now, self.names.len() as u128);
        *self.names.entry(name.to_string()).or_insert_with(|| JobId::mint(now, count, sync))
    }

    /// Runs a command, writes its changes to the rows, and audits queue, rows and signals.
    pub(super) fn apply(&mut self, command: Command) -> (Reply, Effects, Vec<Note>) {
        let cause = command.clone();
        let mut effects = Effects::default();
        let reply = command.apply(&mut self.queue, self.now, &mut effects);
        let mut notes = Vec::new();
        let mut over = Over::default();
        for change in &effects.changes {
            over.note(&self.rows, change);
            self.rows.write(&cause, change, &mut notes);
        }
        if let Some(counters) = self.queue.take_counters() {
            self.rows.counters = counters;
        }
        if let Reply::MayAppend(key, _) = reply {
            *self.rows.streams.entry(key).or_default() += 1;
        }
        for signal in &effects.signals {
            if let Signal::Deleted(job, _) = signal {
                // A later submit may have the same id.
                self.ends.remove(job);
            }
            let Signal::WebhookDue(job, _, end) = signal else { continue };
            let ends = self.ends.entry(*job).or_default();
            if matches!(cause, Command::RedeliverWebhook { .. }) {
                assert_eq!(ends.last(), Some(end), "only the last end is redelivered");
                continue;
            }
            assert!(!ends.contains(end), "no two ends of a job are equal: {end:?}");
            ends.push(*end);
        }
        audit::audit_signals(&self.rows, &over, &effects);
        audit::audit(&self.queue, &self.rows);
        (reply, effects, notes)
    }

    /// Advances the time to `until` and ticks at each deadline. Calls `round` after each tick.
    pub(super) fn pass_time(&mut self, until: Millis, mut round: impl FnMut(&Self, &Effects, Vec<Note>)) {
        let mut ticks_without_progress = 0;
        while let Some(due) = self.queue.next_deadline().filter(|due| *due <= until) {
            ticks_without_progress = if due <= self.now { ticks_without_progress + 1 } else { 0 };
            assert!(ticks_without_progress < 100, "the deadline stays at {due}");
            self.now = self.now.max(due);
            let (_, effects, notes) = self.apply(Command::Tick);
            round(self, &effects, notes);
        }
        self.now = self.now.max(until);
    }

    /// Replaces the queue by one that is restored from the rows, in either order, and compares both. Returns the replaced
    /// one.
    pub(super) fn restart(&mut self, newest_first: bool) -> Queue {
        let queue = self.restored(newest_first);
        let before = core::mem::replace(&mut self.queue, queue);
        audit::audit(&self.queue, &self.rows);
        assert_eq!(before.load(), self.queue.load(), "a restart keeps the load");
        assert_eq!(order_of(&before), order_of(&self.queue), "a restart keeps the order of queued jobs");
        for row in self.rows.jobs.values() {
            let visible = |queue: &Queue| {
                let row = queue.find_visible(row.id, self.now)?;
                // Until the end of the job, when progress values arrived is in memory alone.
                let progress = row.progress.filter(|_| row.state.is_terminal());
                Some(JobRow { progress, ..row })
            };
            assert_eq!(visible(&before), visible(&self.queue), "a restart keeps what clients see");
        }
        before
    }

    /// Returns a queue that is restored from the rows.
    pub(super) fn restored(&self, newest_first: bool) -> Queue {
        let mut queue = Queue::new(ENDPOINT, self.settings, self.rows.counters);
        let mut rows: Vec<_> = self.rows.jobs.values().cloned().collect();
        if newest_first {
            rows.reverse();
        }
        for row in rows {
            queue.restore(row, self.now);
        }
        queue
    }
}

/// The queued jobs by position.
fn order_of(queue: &Queue) -> Vec<JobId> {
    let mut queued: Vec<_> = queue.ready.all().into_iter().chain(queue.deferred.jobs.all()).collect();
    queued.sort_by_key(|(_, order, _)| *order);
    queued.into_iter().map(|(_, _, slot)| queue.jobs[slot].id).collect()
}

/// The worker with this id.
pub(super) fn worker(name: &str) -> WorkerId {
    name.parse().expect("a worker's name")
}
