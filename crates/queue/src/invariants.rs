//! The invariants that hold between any two verbs.
//!
//! A verb asserts what it can see itself. Invariants that span several indexes are checked here, for one job per call: a
//! check of all jobs would cost more than the verbs. A broken invariant panics. The caller then drops the queue and
//! restores it from rows, because other parts of its state may be wrong too.

use longshore_model::{JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::Queue;
use crate::jobs::Slot;
use crate::transitions::deadline;

impl Queue {
    /// Checks the counts, and the invariants of the job in the next slot; each slot has its turn. To be called between
    /// verbs. Costs a few index searches.
    ///
    /// # Panics
    ///
    /// If an invariant is broken.
    pub fn check_sample(&mut self) {
        self.assert_sums();
        if let Some(slot) = self.jobs.sample(self.next_sample) {
            self.assert_job(slot);
        }
        self.next_sample = self.next_sample.wrapping_add(1);
    }

    /// Asserts that the lengths of the indexes and the stored counts agree.
    pub(crate) fn assert_sums(&self) {
        let listed = self.ready.len() + self.deferred.jobs.len() + self.purging.len() + self.running;
        assert!(
            listed + self.ended.len() <= self.jobs.len(),
            "{listed} of {} jobs are queued or running, {} are listed as ended",
            self.jobs.len(),
            self.ended.len()
        );
        assert!(self.deadlines.len() <= self.jobs.len(), "a job has one deadline at most");
        assert!(u64::from(self.workers.busy()) <= self.running, "a busy worker holds a running job");
        assert!(self.last_seq <= self.counters.reserved_seq, "every sequence number in use is reserved");
    }

    /// Asserts that every index has this job as its row requires.
    pub(crate) fn assert_job(&self, slot: Slot) {
        let row = &self.jobs[slot];
        let (id, state) = (row.id, row.state());
        assert!(self.jobs.is_indexed(slot), "job {id} is found by its id");
        assert_eq!(row.key().endpoint, self.endpoint, "job {id} belongs to this endpoint");
        assert!(row.key().seq <= self.counters.reserved_seq, "the number of job {id} is reserved");
        if let Some(ended) = self.ended.of(state) {
            assert!(ended.contains(id, slot), "job {id} in state {state} is listed as ended");
        }
        let (low_priority, order) = (row.low_priority(), row.order);
        let (ready, purging) = (&self.ready, &self.purging);
        let lists = [
            ready.contains(low_priority, order, slot),
            self.deferred.contains(low_priority, order, slot),
            purging.contains(low_priority, order, slot),
        ];
        let expected = u8::from(state == JobState::InQueue);
        assert_eq!(
            lists.map(u8::from).iter().sum::<u8>(),
            expected,
            "job {id} in state {state} is in {lists:?}"
        );
        // A damaged counter can have the last time there is. Later jobs then look purged.
        let is_known = self.counters.purged_until < Millis::MAX && !planted(Bug::PurgeHitsNewJobs);
        let is_purged = is_known && self.is_purged(row);
        assert!(lists[2] || !is_purged, "the purged job {id} is being purged");
        // A damaged row of a running job may name no worker. The execution timeout ends such a job.
        if let (JobState::InProgress, Some(worker)) = (state, row.worker()) {
            let holder = self.workers.get(worker);
            let is_held = holder.is_some_and(|worker| worker.held.iter().any(|held| held.slot == slot));
            assert!(is_held || planted(Bug::LeaseNotLoaded), "the running job {id} is held by {worker}");
        }
        match deadline(row) {
            Some(at) => {
                let is_scheduled = self.deadlines.contains(at, slot) || planted(Bug::TimeoutNotLoaded);
                assert!(is_scheduled, "the deadline of job {id} is scheduled");
            }
            None => assert!(row.webhook_pending(), "job {id} has no deadline, and no pending webhook call"),
        }
    }
}
