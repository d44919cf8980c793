//! Restores a queue from the stored rows.

use longshore_model::{JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::Queue;
use crate::jobs::Slot;
use crate::packed::PackedRow;

impl Queue {
    /// Adds a stored job. To be called for every row of the endpoint, in any order, before the first verb. Each worker that
    /// a running job's row names becomes known, with a new lease.
    pub fn restore(&mut self, mut row: JobRow, now: Millis) {
        self.last_seq = self.last_seq.max(row.key.seq);
        self.counters.reserved_seq = self.counters.reserved_seq.max(row.key.seq);
        self.taken_counters = self.counters;
        self.order_first = self.order_first.min(row.order);
        self.order_last = self.order_last.max(row.order);
        self.enqueued_last = self.enqueued_last.max(row.enqueued_at);
        let (state, low_priority, order) = (row.state, row.low_priority, row.order);
        if let Some(worker) = &row.worker {
            self.workers.add_restored(worker);
        }
        let by = self.jobs.submitters.add_job(row.submitter);
        let (trace, carried) = (row.trace.take(), row.carried.take());
        let first_chunk_at = Some(row.first_chunk_at).filter(|at| *at != Millis(0));
        let (gpu, progress) = (row.gpu.take(), row.progress.take());
        let slot = self.jobs.insert(PackedRow::new(row, by));
        self.jobs.set_first_chunk_at(slot, first_chunk_at);
        self.jobs.set_gpu(slot, gpu.as_ref());
        self.jobs.set_progress(slot, progress);
        if let Some(trace) = trace {
            self.jobs.set_trace(slot, *trace);
        }
        if let Some(carried) = carried {
            self.jobs.set_carried(slot, carried);
        }
        let purged = self.is_purged(&self.jobs[slot]);
        if !planted(Bug::KeysNotLoaded) {
            self.restore_idempotency(slot);
        }
        match state {
            JobState::InQueue if purged => self.purging.insert(low_priority, order, slot),
            JobState::InQueue => self.ready.insert(low_priority, order, slot),
            JobState::InProgress => {
                self.running += 1;
                if !planted(Bug::LeaseNotLoaded) {
                    self.renew_lease(slot, now);
                }
            }
            ended => self.ended.insert(ended, self.jobs[slot].id, slot),
        }
        if state != JobState::InProgress || !planted(Bug::TimeoutNotLoaded) {
            self.schedule(slot);
        }
    }

    /// Copies the workers of the dropped queue that this one replaces, without their jobs, each with a new lease. After a
    /// restart of the server there is no dropped queue, and workers become known by their next request.
    pub fn adopt_workers(&mut self, dropped: &Self, now: Millis) {
        self.workers.adopt(&dropped.workers, now, self.settings.lease_ms);
    }

    /// Maps the job's idempotency key to it, unless a newer job has the key: then this job has expired, and is stored for
    /// its webhook.
    fn restore_idempotency(&mut self, slot: Slot) {
        let Some(key) = self.jobs.idempotency_key(slot) else { return };
        let newer = |other: Slot| self.jobs[other].key() > self.jobs[slot].key();
        if !self.idempotency.find(&key).is_some_and(newer) {
            self.idempotency.insert(key, slot);
        }
    }

    /// Adds the running job to those of the worker that its row names, with a new lease.
    fn renew_lease(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        let (job, Some(id)) = (row.id, row.worker().cloned()) else { return };
        self.workers.touch(&id, now, self.settings.lease_ms);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.has_taken = true;
            // Whether the worker pings is not stored. Without a ping within the lease it counts as lost.
            worker.pings = true;
        }
        self.workers.hold(&id, slot, job);
        // Whether the worker had other jobs since it took this one is not stored.
        if let Some(held) = self.workers.get_mut(&id).and_then(|worker| worker.holds(slot)) {
            held.alone = false;
        }
        self.workers.schedule(&id, self.settings.lease_ms);
    }
}
