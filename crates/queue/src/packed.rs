//! A job's row as it is kept in memory.

use alloc::boxed::Box;

use longshore_model::{
    Attempt, Idempotency, JobEnd, JobId, JobKey, JobRow, JobState, Millis, WorkerId, limits,
};

use crate::Submit;
use crate::jobs::Beside;
use crate::submitters::SubmitterNo;

/// A row, packed: there may be millions, and nearly all that wait are as their submit left them. Those take 64
/// bytes, where a [`JobRow`] takes 168; the others have what changed in a box.
#[derive(Debug)]
pub(crate) struct PackedRow {
    /// As [`JobKey::to_row`] makes it.
    key: i64,
    pub(crate) id: JobId,
    marks: Marks,
    created_at: PackedMillis,
    pub(crate) ttl_ms: u32,
    pub(crate) execution_timeout_ms: u32,
    input_bytes: u32,
    pub(crate) submitter: SubmitterNo,
    pub(crate) order: i64,
    /// None while everything in it follows from the submit.
    extras: Option<Box<RowExtras>>,
}

/// A job's state (three bits) and two of its flags.
#[derive(Clone, Copy, Debug)]
struct Marks(u8);

impl Marks {
    const STATE: u8 = 7;
    const LOW_PRIORITY: u8 = 1 << 3;
    const WEBHOOK: u8 = 1 << 4;

    fn new(state: JobState, low_priority: bool, webhook: bool) -> Self {
        let flag = |set, flag| if set { flag } else { 0 };
        Self(state as u8 | flag(low_priority, Self::LOW_PRIORITY) | flag(webhook, Self::WEBHOOK))
    }

    fn state(self) -> JobState {
        JobState::from_number(self.0 & Self::STATE).unwrap_or(JobState::InQueue)
    }

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// A time in 48 bits of milliseconds, until the year 10889. A later one, which only a damaged row has, is that year's.
#[derive(Clone, Copy, Debug)]
struct PackedMillis([u8; 6]);

impl PackedMillis {
    const MAX: u64 = (1 << 48) - 1;

    fn new(at: Millis) -> Self {
        let mut bytes = [0; 6];
        bytes.copy_from_slice(&at.0.min(Self::MAX).to_le_bytes()[..6]);
        Self(bytes)
    }

    fn get(self) -> Millis {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0);
        Millis(u64::from_le_bytes(bytes))
    }
}

/// What a row says besides; the fields are described at [`JobRow`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowExtras {
    pub(crate) never_taken: bool,
    pub(crate) ttl_pinned: bool,
    pub(crate) webhook_pending: bool,
    pub(crate) retries: u8,
    pub(crate) redeliveries: u8,
    pub(crate) attempt: Attempt,
    pub(crate) enqueued_at: Millis,
    pub(crate) started_at: Millis,
    pub(crate) finished_at: Millis,
    pub(crate) delete_at: Millis,
    pub(crate) worker: Option<WorkerId>,
    idempotency: Option<Box<Idempotency>>,
}

impl RowExtras {
    /// Nothing has changed yet.
    fn nothing(created_at: Millis, ttl_ms: u32) -> Self {
        Self {
            never_taken: true,
            ttl_pinned: false,
            webhook_pending: false,
            retries: 0,
            redeliveries: 0,
            attempt: Attempt(0),
            enqueued_at: created_at,
            started_at: Millis(0),
            finished_at: Millis(0),
            delete_at: created_at + u64::from(ttl_ms),
            worker: None,
            idempotency: None,
        }
    }
}

impl PackedRow {
    /// A stored row, without what is kept beside it.
    pub(crate) fn new(row: JobRow, submitter: SubmitterNo) -> Self {
        let created_at = PackedMillis::new(row.created_at);
        let changed = RowExtras {
            never_taken: row.never_taken,
            ttl_pinned: row.ttl_pinned,
            webhook_pending: row.webhook_pending,
            retries: row.retries,
            redeliveries: row.redeliveries,
            attempt: row.attempt,
            enqueued_at: row.enqueued_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            delete_at: row.delete_at,
            worker: row.worker,
            idempotency: row.idempotency,
        };
        let as_submitted = changed == RowExtras::nothing(created_at.get(), row.ttl_ms);
        Self {
            key: row.key.to_row(),
            id: row.id,
            marks: Marks::new(row.state, row.low_priority, row.webhook),
            created_at,
            ttl_ms: row.ttl_ms,
            execution_timeout_ms: row.execution_timeout_ms,
            input_bytes: row.input_bytes,
            submitter,
            order: row.order,
            extras: (!as_submitted).then(|| Box::new(changed)),
        }
    }

    /// A job that comes in now, before it has its place in the line.
    pub(crate) fn submitted(
        key: JobKey,
        now: Millis,
        submit: Submit,
        submitter: SubmitterNo,
        execution_timeout_ms: u32,
    ) -> Self {
        let ttl_ms = submit.ttl_ms.unwrap_or(limits::TTL_MS_DEFAULT as u32);
        let with_key =
            |key| Box::new(RowExtras { idempotency: Some(key), ..RowExtras::nothing(now, ttl_ms) });
        Self {
            key: key.to_row(),
            id: submit.id,
            marks: Marks::new(JobState::InQueue, submit.low_priority, submit.webhook),
            created_at: PackedMillis::new(now),
            ttl_ms,
            execution_timeout_ms: submit.execution_timeout_ms.unwrap_or(execution_timeout_ms),
            input_bytes: submit.input_bytes,
            submitter,
            order: 0,
            extras: submit.idempotency.map(with_key),
        }
    }

    /// The row as the rest of the world knows it.
    pub(crate) fn unpacked(&self, beside: Beside<'_>) -> JobRow {
        let created_at = self.created_at.get();
        let nothing;
        let changed = if let Some(changed) = &self.extras {
            changed
        } else {
            nothing = RowExtras::nothing(created_at, self.ttl_ms);
            &nothing
        };
        JobRow {
            key: self.key(),
            id: self.id,
            state: self.state(),
            low_priority: self.low_priority(),
            never_taken: changed.never_taken,
            ttl_pinned: changed.ttl_pinned,
            webhook: self.webhook(),
            webhook_pending: changed.webhook_pending,
            retries: changed.retries,
            redeliveries: changed.redeliveries,
            attempt: changed.attempt,
            order: self.order,
            created_at,
            enqueued_at: changed.enqueued_at,
            started_at: changed.started_at,
            finished_at: changed.finished_at,
            delete_at: changed.delete_at,
            ttl_ms: self.ttl_ms,
            execution_timeout_ms: self.execution_timeout_ms,
            input_bytes: self.input_bytes,
            worker: changed.worker.clone(),
            idempotency: changed.idempotency.clone(),
            submitter: beside.submitter,
            carried: beside.carried.map(Into::into),
        }
    }

    pub(crate) fn state(&self) -> JobState {
        self.marks.state()
    }

    pub(crate) fn set_state(&mut self, state: JobState) {
        self.marks.0 = self.marks.0 & !Marks::STATE | state as u8;
    }

    pub(crate) fn low_priority(&self) -> bool {
        self.marks.has(Marks::LOW_PRIORITY)
    }

    pub(crate) fn webhook(&self) -> bool {
        self.marks.has(Marks::WEBHOOK)
    }

    pub(crate) fn key(&self) -> JobKey {
        JobKey::from_row(self.key)
    }

    /// What can change, to be changed.
    pub(crate) fn extras_mut(&mut self) -> &mut RowExtras {
        let (created_at, ttl_ms) = (self.created_at.get(), self.ttl_ms);
        self.extras.get_or_insert_with(|| Box::new(RowExtras::nothing(created_at, ttl_ms)))
    }

    /// The job is in the queue from now on, and did not run since.
    pub(crate) fn enter_queue(&mut self, now: Millis, order: i64) {
        self.set_state(JobState::InQueue);
        self.order = order;
        if self.extras.is_some() || now != self.created_at.get() {
            let changed = self.extras_mut();
            changed.enqueued_at = now;
            changed.started_at = Millis(0);
            changed.finished_at = Millis(0);
        }
    }

    pub(crate) fn never_taken(&self) -> bool {
        self.extras.as_ref().is_none_or(|changed| changed.never_taken)
    }

    pub(crate) fn webhook_pending(&self) -> bool {
        self.extras.as_ref().is_some_and(|changed| changed.webhook_pending)
    }

    pub(crate) fn retries(&self) -> u8 {
        self.extras.as_ref().map_or(0, |changed| changed.retries)
    }

    pub(crate) fn input_bytes(&self) -> u32 {
        self.input_bytes
    }

    pub(crate) fn redeliveries(&self) -> u8 {
        self.extras.as_ref().map_or(0, |changed| changed.redeliveries)
    }

    pub(crate) fn attempt(&self) -> Attempt {
        self.extras.as_ref().map_or(Attempt(0), |changed| changed.attempt)
    }

    pub(crate) fn enqueued_at(&self) -> Millis {
        self.extras.as_ref().map_or(self.created_at.get(), |changed| changed.enqueued_at)
    }

    pub(crate) fn started_at(&self) -> Millis {
        self.extras.as_ref().map_or(Millis(0), |changed| changed.started_at)
    }

    pub(crate) fn delete_at(&self) -> Millis {
        let by_ttl = self.created_at.get() + u64::from(self.ttl_ms);
        self.extras.as_ref().map_or(by_ttl, |changed| changed.delete_at)
    }

    /// As [`JobRow::pending_end`].
    pub(crate) fn pending_end(&self) -> Option<JobEnd> {
        if self.webhook_pending() { self.unpacked(Beside::default()).pending_end() } else { None }
    }

    pub(crate) fn worker(&self) -> Option<&WorkerId> {
        self.extras.as_ref()?.worker.as_ref()
    }

    pub(crate) fn idempotency(&self) -> Option<&Idempotency> {
        self.extras.as_ref()?.idempotency.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::{EndpointNo, Submitter};

    use super::*;
    use crate::submitters::Submitters;

    fn packed(row: JobRow) -> PackedRow {
        PackedRow::new(row, Submitters::default().enter(Submitter::default()))
    }

    fn unpacked(row: &PackedRow) -> JobRow {
        row.unpacked(Beside::default())
    }

    fn submitted() -> JobRow {
        JobRow {
            key: JobKey { endpoint: EndpointNo(7), seq: JobKey::SEQ_MAX },
            id: JobId::mint(Millis(1_000), 5, true),
            state: JobState::InQueue,
            low_priority: true,
            never_taken: true,
            ttl_pinned: false,
            webhook: true,
            webhook_pending: false,
            retries: 0,
            redeliveries: 0,
            attempt: Attempt(0),
            order: -3,
            created_at: Millis(1_000),
            enqueued_at: Millis(1_000),
            started_at: Millis(0),
            finished_at: Millis(0),
            delete_at: Millis(61_000),
            ttl_ms: 60_000,
            execution_timeout_ms: 9_000,
            input_bytes: 17,
            worker: None,
            idempotency: None,
            submitter: Submitter::default(),
            carried: None,
        }
    }

    #[test]
    fn a_job_as_it_was_submitted_takes_64_bytes() {
        assert_eq!(size_of::<Option<PackedRow>>(), 64);
        let mut packed = packed(submitted());
        assert!(packed.extras.is_none());
        packed.enter_queue(Millis(1_000), 4);
        assert!(packed.extras.is_none());
        assert_eq!(unpacked(&packed), JobRow { order: 4, ..submitted() });
    }

    #[test]
    fn a_row_is_the_same_when_it_is_unpacked() {
        let idempotency = Idempotency { key: "k".into(), fingerprint: [1; 16] };
        for row in [
            submitted(),
            JobRow { state: JobState::InProgress, ..submitted() },
            JobRow { low_priority: false, ..submitted() },
            JobRow { webhook: false, ..submitted() },
            JobRow { never_taken: false, ..submitted() },
            JobRow { ttl_pinned: true, ..submitted() },
            JobRow { webhook_pending: true, ..submitted() },
            JobRow { retries: 1, ..submitted() },
            JobRow { redeliveries: 1, ..submitted() },
            JobRow { attempt: Attempt(1), ..submitted() },
            JobRow { enqueued_at: Millis(1_001), ..submitted() },
            JobRow { started_at: Millis(1_002), ..submitted() },
            JobRow { finished_at: Millis(1_003), ..submitted() },
            JobRow { delete_at: Millis::MAX, ..submitted() },
            JobRow { worker: Some("w1".parse().unwrap()), ..submitted() },
            JobRow { idempotency: Some(Box::new(idempotency)), ..submitted() },
        ] {
            assert_eq!(unpacked(&packed(row.clone())), row);
        }
        for state in JobState::ALL {
            let mut row = packed(submitted());
            row.set_state(state);
            assert_eq!(unpacked(&row), JobRow { state, ..submitted() });
        }
    }

    #[test]
    fn a_time_of_creation_that_no_clock_shows_is_cut() {
        let far = JobRow { created_at: Millis::MAX, enqueued_at: Millis(5), ..submitted() };
        let row = unpacked(&packed(far.clone()));
        assert_eq!(row, JobRow { created_at: Millis((1 << 48) - 1), ..far });
        assert_eq!(unpacked(&packed(row.clone())), row);
    }

    #[test]
    fn a_job_that_enters_the_queue_again_did_not_run() {
        let ran = JobRow { started_at: Millis(2_000), attempt: Attempt(1), ..submitted() };
        let mut packed = packed(ran.clone());
        packed.enter_queue(Millis(1_000), 4);
        assert_eq!(unpacked(&packed), JobRow { order: 4, started_at: Millis(0), ..ran });
    }
}
