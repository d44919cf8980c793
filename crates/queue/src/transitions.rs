//! The transitions of a job that several verbs share. Every change of a job's state is made here, together with the
//! changes of all indexes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use longshore_model::{Attempt, AttemptEnd, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::workers::PendingStop;
use crate::{Change, Effects, Queue, Requeued, Signal};

/// The position at which a job enters the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueEnd {
    /// Before all queued jobs.
    Front,
    /// After all queued jobs.
    Back,
    /// The position that the job had when it was delivered.
    Same,
}

/// Why a running job is requeued.
pub(crate) enum RequeueCause<'a> {
    /// The attempt ended this way, for this reason.
    AttemptEnded(AttemptEnd, &'a str),
    /// The worker did not confirm the delivery and does not have the job.
    Unconfirmed,
    /// The job was not sent to the worker: its input could not be read, or the worker had disconnected.
    Unreadable,
}

impl RequeueCause<'_> {
    /// How the attempt ended, and why.
    fn end(&self) -> (AttemptEnd, &str) {
        match self {
            Self::AttemptEnded(end, reason) => (*end, reason),
            Self::Unconfirmed => (AttemptEnd::Undelivered, "its worker did not confirm the delivery"),
            Self::Unreadable => (
                AttemptEnd::Undelivered,
                "its input could not be read from the disk, or its worker had disconnected",
            ),
        }
    }
}

impl Queue {
    /// Makes the job queued and ready. The caller has set all other fields before, and then calls `schedule` and `put`.
    pub(crate) fn enqueue(&mut self, slot: Slot, end: QueueEnd, now: Millis, out: &mut Effects) {
        // Saturating: a damaged row may have the last position. Jobs then share it, and their order is by slot.
        let order = match end {
            QueueEnd::Front => {
                self.order_first = self.order_first.saturating_sub(1);
                self.order_first
            }
            QueueEnd::Back => {
                self.order_last = self.order_last.saturating_add(1);
                self.order_last
            }
            QueueEnd::Same => self.jobs[slot].order,
        };
        // Later than any purged job, so that `is_purged` is false, also after a restart.
        let after_purge = if planted(Bug::PurgeHitsNewJobs) { now } else { self.counters.purged_until + 1 };
        let enqueued_at = now.max(after_purge);
        self.enqueued_last = self.enqueued_last.max(enqueued_at);
        let row = &mut self.jobs[slot];
        row.enter_queue(enqueued_at, order);
        self.ready.insert(row.low_priority(), order, slot);
        out.signals.push(Signal::JobReady);
        out.signals.push(Signal::LoadChanged);
    }

    /// Delivers a ready job to a known worker, in a new attempt. `gpu` is the type of the worker's first GPU.
    ///
    /// # Panics
    ///
    /// If the job is not ready.
    pub(crate) fn start(
        &mut self,
        slot: Slot,
        worker: &WorkerId,
        gpu: Option<&Arc<str>>,
        now: Millis,
        out: &mut Effects,
    ) {
        self.unschedule(slot);
        let row = &mut self.jobs[slot];
        assert_eq!(row.state(), JobState::InQueue, "only a queued job is delivered");
        let was_ready = self.ready.remove(row.low_priority(), row.order, slot);
        assert!(was_ready, "a delivered job was ready");
        row.set_state(JobState::InProgress);
        let job = row.id;
        let row = row.extras_mut();
        row.never_taken = false;
        row.started_at = now.max(Millis(1));
        row.attempt = Attempt(row.attempt.0.saturating_add(1));
        row.worker = Some(worker.clone());
        self.jobs.set_gpu(slot, gpu);
        self.running += 1;
        self.workers.hold(worker, slot, job);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Ends a job that is not terminal: sets its state and deletion time, counts it, and makes its webhook call pending.
    ///
    /// # Panics
    ///
    /// If `state` is not terminal, or the job is terminal already.
    pub(crate) fn end(&mut self, slot: Slot, state: JobState, now: Millis, out: &mut Effects) {
        assert!(state.is_terminal(), "a job ends in a terminal state");
        let was_terminal = self.jobs[slot].state().is_terminal();
        assert!(!was_terminal || can_end_twice(), "a terminal job does not end again");
        let was_running = self.jobs[slot].state() == JobState::InProgress;
        self.unschedule(slot);
        self.detach(slot, now);
        self.deferred.reset_failures(slot);
        let retention_ms = if self.jobs[slot].id.is_sync() {
            self.settings.sync_retention_ms
        } else {
            self.settings.retention_ms
        };
        let row = &mut self.jobs[slot];
        let (id, before) = (row.id, row.state());
        row.set_state(state);
        // A planted mistake can end a job twice.
        self.ended.remove(before, id, slot);
        self.ended.insert(state, id, slot);
        let row = &mut self.jobs[slot];
        let webhook = row.webhook();
        let extras = row.extras_mut();
        extras.webhook_pending = webhook;
        extras.finished_at = now;
        if !extras.ttl_pinned {
            extras.delete_at = extras.delete_at.min(now + retention_ms);
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
        out.signals.push(Signal::Ended { job, key, submitter, state, ran_ms, was_running });
        out.signals.push(Signal::LoadChanged);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Requeues a running job: at the front, or at its previous position if its input was unreadable. Ends the job as failed
    /// instead if the requeue `counts` as a retry and no retry is left. Stores how the attempt ended, and drops its outcome and
    /// chunks.
    ///
    /// # Panics
    ///
    /// If the job is not running.
    pub(crate) fn requeue(
        &mut self,
        slot: Slot,
        counts: bool,
        cause: &RequeueCause<'_>,
        now: Millis,
        out: &mut Effects,
    ) {
        let max_retries = self.settings.max_retries;
        let row = &self.jobs[slot];
        assert_eq!(row.state(), JobState::InProgress, "only a running job is requeued");
        let (end, reason) = cause.end();
        self.put_attempt(slot, end, reason, now, out);
        if counts && row.retries() >= max_retries + u8::from(planted(Bug::OneRunTooMany)) {
            let error = no_retries_left(row, cause);
            out.changes.push(Change::PutError(row.key(), error));
            self.end(slot, JobState::Failed, now, out);
            return;
        }
        let ended = self.jobs.row(slot);
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
        let requeued = Requeued { row: ended, at: now, end, counts, reason: reason.into() };
        out.signals.push(Signal::Requeued(Box::new(requeued)));
        let place = match cause {
            _ if planted(Bug::RequeuedAtBack) => QueueEnd::Back,
            // At the front the job would overtake jobs before it that were unreadable earlier.
            RequeueCause::Unreadable => QueueEnd::Same,
            RequeueCause::AttemptEnded(..) | RequeueCause::Unconfirmed => QueueEnd::Front,
        };
        self.jobs.forget_attempt(slot);
        self.enqueue(slot, place, now, out);
        self.schedule(slot);
        self.put(slot, out);
    }

    /// Deletes a job in any state, with everything that is stored for it.
    pub(crate) fn remove(&mut self, slot: Slot, now: Millis, out: &mut Effects) {
        self.unschedule(slot);
        self.detach(slot, now);
        self.deferred.reset_failures(slot);
        if let Some(key) = self.jobs.idempotency_key(slot) {
            // The key of an expired job that was stored for its webhook may belong to a newer job. It stays.
            self.idempotency.remove(&key, slot);
        }
        if !self.jobs[slot].state().is_terminal() {
            out.signals.push(Signal::Expired(Box::new(self.jobs.row(slot))));
            out.signals.push(Signal::LoadChanged);
        }
        let row = self.jobs.remove(slot);
        self.ended.remove(row.state(), row.id, slot);
        out.changes.push(Change::DeleteJob(row.key()));
        out.signals.push(Signal::Deleted(row.id, row.key()));
    }

    /// Sends a stop signal to the worker of a running job and starts the stop grace; nothing if the job is not running.
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

    /// Removes a queued job from the list that has it, or a running job from its worker. A terminal job is in neither.
    fn detach(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        match row.state() {
            JobState::InQueue => {
                let (low_priority, order) = (row.low_priority(), row.order);
                let was_listed = (!self.deferred.is_unused()
                    && self.deferred.remove(low_priority, order, slot))
                    || self.ready.remove(low_priority, order, slot)
                    || self.purging.remove(low_priority, order, slot);
                assert!(was_listed, "a queued job is ready, deferred or being purged");
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

    /// Adds a change that writes the job's present row.
    pub(crate) fn put(&self, slot: Slot, out: &mut Effects) {
        out.changes.push(Change::PutJob(Box::new(self.jobs.row(slot))));
    }

    /// Adds the job's deadline. The verb changes its state and times no further, or calls `unschedule` before.
    pub(crate) fn schedule(&mut self, slot: Slot) {
        if let Some(at) = deadline(&self.jobs[slot]) {
            assert!(self.deadlines.insert(at, slot), "a job has one deadline");
        }
    }

    /// Removes the job's deadline. To be called before its state or times change.
    pub(crate) fn unschedule(&mut self, slot: Slot) {
        if let Some(at) = deadline(&self.jobs[slot]) {
            let was_scheduled = self.deadlines.remove(at, slot);
            assert!(was_scheduled || planted(Bug::TimeoutNotLoaded), "a job's deadline is scheduled");
        }
    }
}

/// The `delete_at` of an expired job whose row is stored until its webhook call is settled. Clients do not see the job.
pub(crate) const DELETED: Millis = Millis(0);

/// When a tick has to time out or delete the job; `None` for an expired job that is stored until its webhook is settled.
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
fn can_end_twice() -> bool {
    planted(Bug::CancelAfterResult) || planted(Bug::ResultAfterCancel)
}

/// Part of the error of a job that fails because no worker confirmed its delivery.
pub const NOT_CONFIRMED: &str = "the last delivery was not confirmed";

/// The error of a job that fails because no retry is left.
fn no_retries_left(row: &PackedRow, cause: &RequeueCause<'_>) -> String {
    let retries = u32::from(row.retries());
    match cause {
        RequeueCause::AttemptEnded(_, reason) => {
            let runs = retries + 1;
            let runs = if runs == 1 { "1 run".into() } else { alloc::format!("{runs} runs") };
            alloc::format!("failed after {runs}, no retries left: {reason}")
        }
        RequeueCause::Unconfirmed | RequeueCause::Unreadable => {
            let deliveries = u32::from(row.redeliveries()) + retries + 1;
            alloc::format!(
                "failed after {deliveries} deliveries, no retries left: {NOT_CONFIRMED}; perhaps \
                 workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python"
            )
        }
    }
}
