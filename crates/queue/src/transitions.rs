//! The steps of a job's life that several verbs share. Every change of a job's state happens here, so that the
//! indexes follow it in one place.

use alloc::boxed::Box;
use alloc::string::String;

use longshore_model::{Attempt, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::workers::PendingStop;
use crate::{Change, Effects, Queue, Signal};

/// Where in the line a job enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueEnd {
    Front,
    Back,
    /// Where it was when it was handed out.
    Kept,
}

/// What a job comes back from.
pub(crate) enum Loss<'a> {
    /// A worker that may have run it, and this happened.
    Worker(&'a str),
    /// A worker that never showed that it had it.
    Delivery,
    /// No worker: its input could not be read.
    Reading,
}

impl Queue {
    /// Puts the job into the line. The caller has set everything else and pushes the row afterwards.
    pub(crate) fn enqueue(&mut self, slot: Slot, place: QueueEnd, now: Millis, out: &mut Effects) {
        // A damaged row may have had the last number that there is: then order suffers, and nothing else.
        let order = match place {
            QueueEnd::Front => {
                self.order_first = self.order_first.saturating_sub(1);
                self.order_first
            }
            QueueEnd::Back => {
                self.order_last = self.order_last.saturating_add(1);
                self.order_last
            }
            QueueEnd::Kept => self.jobs[slot].order,
        };
        // Whatever enters the queue after a purge must be told from what was in it, also after a reload.
        let after_purge = if planted(Bug::PurgeHitsNewJobs) { now } else { self.counters.purged_until + 1 };
        let enqueued_at = now.max(after_purge);
        self.enqueued_last = self.enqueued_last.max(enqueued_at);
        let row = &mut self.jobs[slot];
        row.enter_queue(enqueued_at, order);
        self.ready.insert(row.low_priority(), order, slot);
        out.signals.push(Signal::JobReady);
        out.signals.push(Signal::LoadChanged);
    }

    /// Hands a waiting job to a worker.
    pub(crate) fn start(&mut self, slot: Slot, worker: &WorkerId, now: Millis, out: &mut Effects) {
        self.unschedule(slot);
        let row = &mut self.jobs[slot];
        assert_eq!(row.state(), JobState::InQueue, "only a queued job is handed out");
        let was_ready = self.ready.remove(row.low_priority(), row.order, slot);
        assert!(was_ready, "a job that is handed out was ready");
        row.set_state(JobState::InProgress);
        let job = row.id;
        let row = row.extras_mut();
        row.never_taken = false;
        row.started_at = now.max(Millis(1));
        row.attempt = Attempt(row.attempt.0.saturating_add(1));
        row.worker = Some(worker.clone());
        self.running += 1;
        self.workers.hold(worker, slot, job);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Ends a job that is not terminal yet.
    pub(crate) fn end(&mut self, slot: Slot, state: JobState, now: Millis, out: &mut Effects) {
        assert!(state.is_terminal(), "a job ends in a terminal state");
        let was_terminal = self.jobs[slot].state().is_terminal();
        assert!(!was_terminal || reopens(), "a job that has ended does not end again");
        self.unschedule(slot);
        self.detach(slot, now);
        self.aside.forget(slot);
        let retention_ms = if self.jobs[slot].id.is_sync() {
            self.settings.sync_retention_ms
        } else {
            self.settings.retention_ms
        };
        let row = &mut self.jobs[slot];
        row.set_state(state);
        let webhook = row.webhook();
        let changed = row.extras_mut();
        changed.webhook_pending = webhook;
        changed.finished_at = now;
        if !changed.ttl_pinned {
            changed.delete_at = changed.delete_at.min(now + retention_ms);
        }
        let counter = match state {
            JobState::Completed => &mut self.counters.completed,
            JobState::Cancelled => &mut self.counters.cancelled,
            _ => &mut self.counters.failed,
        };
        *counter = counter.saturating_add(1);
        if let Some(end) = row.pending_end() {
            out.changes.push(Change::PutWebhook(row.key()));
            out.signals.push(Signal::WebhookDue(row.id, row.key(), end));
        }
        let ran_ms = (row.started_at().0 > 0).then(|| now.since(row.started_at()));
        let (job, key, by) = (row.id, row.key(), row.submitter);
        let submitter = self.jobs.submitters.get(by);
        out.signals.push(Signal::Ended { job, key, submitter, state, ran_ms });
        out.signals.push(Signal::LoadChanged);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Takes a running job back from its worker and to the front of the line, or to its own place; or ends it as failed, when it
    /// counts as a retry and there are none left.
    pub(crate) fn requeue(
        &mut self,
        slot: Slot,
        counts: bool,
        loss: &Loss<'_>,
        now: Millis,
        out: &mut Effects,
    ) {
        let max_retries = self.settings.max_retries;
        let row = &self.jobs[slot];
        assert_eq!(row.state(), JobState::InProgress, "only a running job goes back");
        if counts && row.retries() >= max_retries + u8::from(planted(Bug::OneRunTooMany)) {
            let error = exhausted(row, loss);
            out.changes.push(Change::PutError(row.key(), error));
            self.end(slot, JobState::Failed, now, out);
            return;
        }
        self.unschedule(slot);
        self.detach(slot, now);
        let row = &mut self.jobs[slot];
        if counts {
            row.extras_mut().retries += 1 + u8::from(planted(Bug::RetryCountedTwice));
            self.counters.retried = self.counters.retried.saturating_add(1);
        }
        if planted(Bug::TtlRestarts) {
            row.extras_mut().delete_at = now + u64::from(row.ttl_ms);
        }
        out.changes.push(Change::ClearOutcome(row.key()));
        if !planted(Bug::ChunksOfLostAttempt) {
            out.changes.push(Change::DropChunks(row.key()));
        }
        let place = match loss {
            _ if planted(Bug::RequeuedAtBack) => QueueEnd::Back,
            // It never left. At the front it would overtake those that were unreadable before it.
            Loss::Reading => QueueEnd::Kept,
            Loss::Worker(_) | Loss::Delivery => QueueEnd::Front,
        };
        self.enqueue(slot, place, now, out);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Removes a job and everything that belongs to it.
    pub(crate) fn remove(&mut self, slot: Slot, now: Millis, out: &mut Effects) {
        self.unschedule(slot);
        self.detach(slot, now);
        self.aside.forget(slot);
        if let Some(promise) = self.jobs.promise(slot) {
            // A newer job has it where this one only waited for its webhook.
            self.idempotent.remove(&promise, slot);
        }
        let row = self.jobs.remove(slot);
        out.changes.push(Change::DeleteJob(row.key()));
        out.signals.push(Signal::Deleted(row.id, row.key()));
        if !row.state().is_terminal() {
            out.signals.push(Signal::LoadChanged);
        }
    }

    /// Tells the worker that holds a running job to stop it, and sets the time by which it must have let go.
    pub(crate) fn stop_holder(&mut self, slot: Slot, now: Millis, out: &mut Effects) {
        let row = &self.jobs[slot];
        let (JobState::InProgress, Some(id)) = (row.state(), row.worker().cloned()) else { return };
        let (job, started_at) = (row.id, row.started_at());
        if let Some(worker) = self.workers.get_mut(&id) {
            let alone_since = worker.holds(slot).filter(|held| held.alone).map(|_| started_at);
            let stopping = PendingStop::until(job, now + self.settings.stop_grace_ms);
            worker.stopping.push(PendingStop { alone_since, ..stopping });
            self.workers.schedule(&id, self.settings.lease_ms);
        }
        out.signals.push(Signal::StopJob(id, job));
    }

    /// Takes the job out of the line or out of its worker's hands, whichever it is in.
    fn detach(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        match row.state() {
            JobState::InQueue => {
                let (low_priority, order) = (row.low_priority(), row.order);
                let was_listed = (!self.aside.is_unused() && self.aside.remove(low_priority, order, slot))
                    || self.ready.remove(low_priority, order, slot)
                    || self.purging.remove(low_priority, order, slot);
                assert!(was_listed, "a queued job is ready, set aside or being purged");
            }
            JobState::InProgress => {
                assert!(self.running > 0, "a running job is counted");
                self.running -= 1;
                if let Some(worker) = row.worker() {
                    self.workers.release(worker, slot, now, self.settings.lease_ms);
                }
            }
            _ => {}
        }
    }

    /// Writes the row as it is now.
    pub(crate) fn put(&self, slot: Slot, out: &mut Effects) {
        out.changes.push(Change::PutJob(Box::new(self.jobs.row(slot))));
    }

    /// Enters the job's deadline; its state and times are final for now.
    pub(crate) fn schedule(&mut self, slot: Slot) {
        if let Some(at) = deadline(&self.jobs[slot]) {
            assert!(self.deadlines.insert(at, slot), "a job has one deadline");
        }
    }

    /// Withdraws the job's deadline, before its state or times change.
    pub(crate) fn unschedule(&mut self, slot: Slot) {
        if let Some(at) = deadline(&self.jobs[slot]) {
            let was_scheduled = self.deadlines.remove(at, slot);
            assert!(was_scheduled || planted(Bug::TimeoutNotLoaded), "a job's deadline is scheduled");
        }
    }
}

/// When a job is deleted whose time is over, and whose row only waits for its webhook.
pub(crate) const DELETED: Millis = Millis(0);

/// When something must happen to the job by itself; none while it only waits for its webhook.
pub(crate) fn deadline(row: &PackedRow) -> Option<Millis> {
    match row.state() {
        JobState::InProgress => {
            let since = if planted(Bug::TimeoutFromSubmit) { row.enqueued_at() } else { row.started_at() };
            Some(row.delete_at().min(since + u64::from(row.execution_timeout_ms)))
        }
        _ if row.webhook_pending() && row.delete_at() == DELETED => None,
        _ => Some(row.delete_at()),
    }
}

/// Whether a mistake is planted that ends jobs twice, for the simulator's auditor to find.
fn reopens() -> bool {
    planted(Bug::CancelAfterResult) || planted(Bug::ResultAfterCancel)
}

fn exhausted(row: &PackedRow, loss: &Loss<'_>) -> String {
    let retries = u32::from(row.retries());
    match loss {
        Loss::Worker(reason) if retries == 0 => {
            alloc::format!("the job was given up after it ran once: {reason}")
        }
        Loss::Worker(reason) => {
            alloc::format!("the job was given up after it ran {} times: {reason}", retries + 1)
        }
        Loss::Delivery | Loss::Reading => {
            let deliveries = u32::from(row.redeliveries()) + retries + 1;
            alloc::format!(
                "the job was given up after it was handed out {deliveries} times and dropped without a sign that it \
                 arrived: perhaps workers cannot read it, such as a number of more than 4300 digits, which is too long \
                 for Python"
            )
        }
    }
}
