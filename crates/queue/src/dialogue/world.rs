//! The world around the queue: a clock, a store made of maps, and names for jobs.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use longshore_model::{EndpointNo, JobEnd, JobId, JobRow, Millis, WorkerId};

use super::audit;
use super::command::{Command, Reply};
use super::rows::{Note, Rows};
use crate::{Change, Effects, Queue, QueueSettings, Signal};

const ENDPOINT: EndpointNo = EndpointNo(7);
pub(super) const START: Millis = Millis(1_700_000_000_000);

pub(super) struct World {
    pub(super) queue: Queue,
    pub(super) rows: Rows,
    pub(super) settings: QueueSettings,
    pub(super) now: Millis,
    pub(super) names: BTreeMap<String, JobId>,
    /// The ends of each job that a webhook was to report, the latest last.
    pub(super) ends: BTreeMap<JobId, Vec<JobEnd>>,
}

impl World {
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

    /// The job of this name; a new name gets a new id, minted now.
    pub(super) fn job(&mut self, name: &str, sync: bool) -> JobId {
        let (now, count) = (self.now, self.names.len() as u128);
        *self.names.entry(name.to_string()).or_insert_with(|| JobId::mint(now, count, sync))
    }

    /// Carries out a command, keeps its changes, and looks whether everything is as it must be.
    pub(super) fn apply(&mut self, command: Command) -> (Reply, Effects, Vec<Note>) {
        let cause = command.clone();
        let mut effects = Effects::default();
        let reply = command.apply(&mut self.queue, self.now, &mut effects);
        let mut notes = Vec::new();
        let mut ended = Vec::new();
        for change in &effects.changes {
            if let Change::PutJob(row) = change {
                let was_terminal = self.rows.jobs.get(&row.key).is_some_and(|old| old.state.is_terminal());
                if row.state.is_terminal() && !was_terminal {
                    ended.push(JobRow::clone(row));
                }
            }
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
                // Its id may come again, for a new job.
                self.ends.remove(job);
            }
            let Signal::WebhookDue(job, _, end) = signal else { continue };
            let ends = self.ends.entry(*job).or_default();
            if matches!(cause, Command::RedeliverWebhook { .. }) {
                assert_eq!(ends.last(), Some(end), "the last end alone is told again");
                continue;
            }
            assert!(!ends.contains(end), "no two ends of a job are equal: {end:?}");
            ends.push(*end);
        }
        audit::audit_signals(&self.rows, &ended, &effects);
        audit::audit(&self.queue, &self.rows);
        (reply, effects, notes)
    }

    /// Lets the queue handle what is due until `until`, and hands each round to `round`.
    pub(super) fn pass_time(&mut self, until: Millis, mut round: impl FnMut(&Self, &Effects, Vec<Note>)) {
        let mut standing_still = 0;
        while let Some(due) = self.queue.next_deadline().filter(|due| *due <= until) {
            standing_still = if due <= self.now { standing_still + 1 } else { 0 };
            assert!(standing_still < 100, "the clock rings at {due} for ever");
            self.now = self.now.max(due);
            let (_, effects, notes) = self.apply(Command::Tick);
            round(self, &effects, notes);
        }
        self.now = self.now.max(until);
    }

    /// Builds the queue anew from the rows, which a store may give in any order.
    /// Answers the one that was there before.
    pub(super) fn restart(&mut self, newest_first: bool) -> Queue {
        let queue = self.loaded(newest_first);
        let before = core::mem::replace(&mut self.queue, queue);
        audit::audit(&self.queue, &self.rows);
        assert_eq!(before.load(), self.queue.load(), "a restart changes no load");
        assert_eq!(line_of(&before), line_of(&self.queue), "a restart changes no line");
        for row in self.rows.jobs.values() {
            let seen = |queue: &Queue| queue.find_visible(row.id, self.now);
            assert_eq!(seen(&before), seen(&self.queue), "a restart changes nothing to see");
        }
        before
    }

    /// A queue made of the rows.
    pub(super) fn loaded(&self, newest_first: bool) -> Queue {
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

fn line_of(queue: &Queue) -> Vec<JobId> {
    let mut line: Vec<_> = queue.ready.all().into_iter().chain(queue.aside.lanes.all()).collect();
    line.sort_by_key(|(_, order, _)| *order);
    line.into_iter().map(|(_, _, slot)| queue.jobs[slot].id).collect()
}

pub(super) fn worker(name: &str) -> WorkerId {
    name.parse().expect("a worker's name")
}
