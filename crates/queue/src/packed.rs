//! The row of a job as a queue stores it in memory.

use alloc::boxed::Box;

use longshore_model::{
    Attempt, Idempotency, JobEnd, JobId, JobKey, JobRow, JobState, Millis, WorkerId, limits,
};

use crate::Submit;
use crate::jobs::UnpackedFields;
use crate::submitters::SubmitterNo;

/// The row of a job, packed: a queue may have millions. A job as its submit left it needs 64 bytes. A job that
/// was taken or changed since, or has an idempotency key, has its [`RowExtras`] in a separate allocation.
///
/// The submitter is a number in a table, and first chunks, traces and carried fields are in tables of their own ([`UnpackedFields`]).
#[derive(Debug)]
pub(crate) struct PackedRow {
    /// The key as [`JobKey::to_row`] encodes it.
    key: i64,
    pub(crate) id: JobId,
    flags: Flags,
    created_at: PackedMillis,
    pub(crate) ttl_ms: u32,
    pub(crate) execution_timeout_ms: u32,
    input_bytes: u32,
    /// The number of the submitter in [`crate::jobs::Jobs::submitters`].
    pub(crate) submitter: SubmitterNo,
    pub(crate) order: i64,
    /// `None` while it would equal [`RowExtras::as_submitted`].
    extras: Option<Box<RowExtras>>,
}

/// The state of a job (three bits) and two of its flags.
#[derive(Clone, Copy, Debug)]
struct Flags(u8);

impl Flags {
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

/// A time as 48 bits of milliseconds since the epoch: up to the year 10889. Later times, which only a damaged row has,
/// become the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The fields of a row that a submit without an idempotency key does not set. [`JobRow`] describes them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowExtras {
    pub(crate) never_taken: bool,
    pub(crate) ttl_pinned: bool,
    pub(crate) webhook_pending: bool,
    pub(crate) retries: u8,
    pub(crate) redeliveries: u8,
    pub(crate) attempt: Attempt,
    /// Packed, so that it takes no more memory: it is where the other fields left a gap.
    retried_at: PackedMillis,
    pub(crate) enqueued_at: Millis,
    pub(crate) started_at: Millis,
    pub(crate) finished_at: Millis,
    pub(crate) delete_at: Millis,
    pub(crate) worker: Option<WorkerId>,
    idempotency: Option<Box<Idempotency>>,
}

impl RowExtras {
    /// Notes a client retry.
    pub(crate) fn set_retried(&mut self, now: Millis) {
        self.retried_at = PackedMillis::new(now);
    }

    /// The extras of a job that was submitted without an idempotency key and not taken yet.
    fn as_submitted(created_at: Millis, ttl_ms: u32) -> Self {
        Self {
            never_taken: true,
            ttl_pinned: false,
            webhook_pending: false,
            retries: 0,
            redeliveries: 0,
            attempt: Attempt(0),
            retried_at: PackedMillis::new(Millis(0)),
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
    /// Packs a stored row. `submitter` is the number of the row's submitter. The caller stores the row's first
    /// chunk, GPU, progress, trace and carried fields.
    pub(crate) fn new(row: JobRow, submitter: SubmitterNo) -> Self {
        // Without `..`, so that a new field of `JobRow` does not compile until it is packed.
        let JobRow {
            key,
            id,
            state,
            low_priority,
            never_taken,
            ttl_pinned,
            webhook,
            webhook_pending,
            retries,
            redeliveries,
            attempt,
            order,
            created_at,
            enqueued_at,
            started_at,
            finished_at,
            first_chunk_at: _,
            retried_at,
            delete_at,
            ttl_ms,
            execution_timeout_ms,
            input_bytes,
            worker,
            gpu: _,
            progress: _,
            idempotency,
            submitter: _,
            trace: _,
            carried: _,
        } = row;
        let created_at = PackedMillis::new(created_at);
        let extras = RowExtras {
            never_taken,
            ttl_pinned,
            webhook_pending,
            retries,
            redeliveries,
            attempt,
            retried_at: PackedMillis::new(retried_at),
            enqueued_at,
            started_at,
            finished_at,
            delete_at,
            worker,
            idempotency,
        };
        let is_as_submitted = extras == RowExtras::as_submitted(created_at.get(), ttl_ms);
        Self {
            key: key.to_row(),
            id,
            flags: Flags::new(state, low_priority, webhook),
            created_at,
            ttl_ms,
            execution_timeout_ms,
            input_bytes,
            submitter,
            order,
            extras: (!is_as_submitted).then(|| Box::new(extras)),
        }
    }

    /// Returns the packed row of a submit, before the job gets its position in the queue. `execution_timeout_ms` is the
    /// endpoint's, for a submit that names none.
    pub(crate) fn submitted(
        key: JobKey,
        now: Millis,
        submit: Submit,
        submitter: SubmitterNo,
        execution_timeout_ms: u32,
    ) -> Self {
        let ttl_ms = submit.ttl_ms.unwrap_or(limits::TTL_MS_DEFAULT as u32);
        let with_key =
            |key| Box::new(RowExtras { idempotency: Some(key), ..RowExtras::as_submitted(now, ttl_ms) });
        Self {
            key: key.to_row(),
            id: submit.id,
            flags: Flags::new(JobState::InQueue, submit.low_priority, submit.webhook),
            created_at: PackedMillis::new(now),
            ttl_ms,
            execution_timeout_ms: submit.execution_timeout_ms.unwrap_or(execution_timeout_ms),
            input_bytes: submit.input_bytes,
            submitter,
            order: 0,
            extras: submit.idempotency.map(with_key),
        }
    }

    /// Returns the whole row, the inverse of [`PackedRow::new`].
    pub(crate) fn unpacked(&self, fields: UnpackedFields<'_>) -> JobRow {
        let created_at = self.created_at.get();
        let as_submitted;
        let extras = if let Some(extras) = &self.extras {
            extras
        } else {
            as_submitted = RowExtras::as_submitted(created_at, self.ttl_ms);
            &as_submitted
        };
        JobRow {
            key: self.key(),
            id: self.id,
            state: self.state(),
            low_priority: self.low_priority(),
            never_taken: extras.never_taken,
            ttl_pinned: extras.ttl_pinned,
            webhook: self.webhook(),
            webhook_pending: extras.webhook_pending,
            retries: extras.retries,
            redeliveries: extras.redeliveries,
            attempt: extras.attempt,
            order: self.order,
            created_at,
            enqueued_at: extras.enqueued_at,
            started_at: extras.started_at,
            finished_at: extras.finished_at,
            first_chunk_at: fields.first_chunk_at,
            retried_at: extras.retried_at.get(),
            delete_at: extras.delete_at,
            ttl_ms: self.ttl_ms,
            execution_timeout_ms: self.execution_timeout_ms,
            input_bytes: self.input_bytes,
            worker: extras.worker.clone(),
            gpu: fields.gpu.cloned(),
            progress: fields.progress.map(Into::into),
            idempotency: extras.idempotency.clone(),
            submitter: fields.submitter,
            trace: fields.trace.map(|trace| Box::new(*trace)),
            carried: fields.carried.map(Into::into),
        }
    }

    /// As [`JobRow::state`]; so are the following functions with the name of a field.
    pub(crate) fn state(&self) -> JobState {
        self.flags.state()
    }

    /// Sets the state alone. The caller updates the indexes.
    pub(crate) fn set_state(&mut self, state: JobState) {
        self.flags.0 = self.flags.0 & !Flags::STATE | state as u8;
    }

    pub(crate) fn low_priority(&self) -> bool {
        self.flags.has(Flags::LOW_PRIORITY)
    }

    pub(crate) fn webhook(&self) -> bool {
        self.flags.has(Flags::WEBHOOK)
    }

    /// The key of the job, unpacked from its bytes.
    pub(crate) fn key(&self) -> JobKey {
        JobKey::from_row(self.key)
    }

    /// The extras, to be changed. Allocates them if the row has none.
    pub(crate) fn extras_mut(&mut self) -> &mut RowExtras {
        let (created_at, ttl_ms) = (self.created_at.get(), self.ttl_ms);
        self.extras.get_or_insert_with(|| Box::new(RowExtras::as_submitted(created_at, ttl_ms)))
    }

    /// Makes the job queued at this position since `now`, and resets its start and end. Allocates nothing for a job that
    /// was submitted at `now`.
    pub(crate) fn enter_queue(&mut self, now: Millis, order: i64) {
        self.set_state(JobState::InQueue);
        self.order = order;
        if self.extras.is_some() || now != self.created_at.get() {
            let extras = self.extras_mut();
            extras.enqueued_at = now;
            extras.started_at = Millis(0);
            extras.finished_at = Millis(0);
        }
    }

    pub(crate) fn never_taken(&self) -> bool {
        self.extras.as_ref().is_none_or(|extras| extras.never_taken)
    }

    pub(crate) fn webhook_pending(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.webhook_pending)
    }

    pub(crate) fn retries(&self) -> u8 {
        self.extras.as_ref().map_or(0, |extras| extras.retries)
    }

    pub(crate) fn input_bytes(&self) -> u32 {
        self.input_bytes
    }

    pub(crate) fn redeliveries(&self) -> u8 {
        self.extras.as_ref().map_or(0, |extras| extras.redeliveries)
    }

    pub(crate) fn attempt(&self) -> Attempt {
        self.extras.as_ref().map_or(Attempt(0), |extras| extras.attempt)
    }

    pub(crate) fn enqueued_at(&self) -> Millis {
        self.extras.as_ref().map_or(self.created_at.get(), |extras| extras.enqueued_at)
    }

    pub(crate) fn started_at(&self) -> Millis {
        self.extras.as_ref().map_or(Millis(0), |extras| extras.started_at)
    }

    pub(crate) fn delete_at(&self) -> Millis {
        let by_ttl = self.created_at.get() + u64::from(self.ttl_ms);
        self.extras.as_ref().map_or(by_ttl, |extras| extras.delete_at)
    }

    /// The end whose webhook call is pending; `None` if no call is pending. As [`JobRow::pending_end`].
    pub(crate) fn pending_end(&self) -> Option<JobEnd> {
        if self.webhook_pending() { self.unpacked(UnpackedFields::default()).pending_end() } else { None }
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
        PackedRow::new(row, Submitters::default().add_job(Submitter::default()))
    }

    fn unpacked(row: &PackedRow) -> JobRow {
        row.unpacked(UnpackedFields::default())
    }

    /// A row as its submit left it, with the longest key and both flags set.
    fn submitted() -> JobRow {
        let key = JobKey { endpoint: EndpointNo(7), seq: JobKey::SEQ_MAX };
        let row = JobRow::queued(key, JobId::mint(Millis(1_000), 5, true), Millis(1_000));
        JobRow { low_priority: true, webhook: true, order: -3, input_bytes: 17, ..row }
    }

    #[test]
    fn a_client_retry_needs_no_more_memory() {
        assert_eq!(size_of::<RowExtras>(), size_of::<(Option<WorkerId>, Option<Box<Idempotency>>)>() + 48);
    }

    #[test]
    fn a_submitted_job_takes_64_bytes() {
        assert_eq!(size_of::<Option<PackedRow>>(), 64);
        let mut packed = packed(submitted());
        assert!(packed.extras.is_none());
        packed.enter_queue(Millis(1_000), 4);
        assert!(packed.extras.is_none());
        assert_eq!(unpacked(&packed), JobRow { order: 4, ..submitted() });
    }

    #[test]
    fn unpacking_returns_the_packed_row() {
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
            JobRow { retried_at: Millis(1_004), ..submitted() },
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
    fn a_creation_time_of_more_than_48_bits_is_limited() {
        let far = JobRow { created_at: Millis::MAX, enqueued_at: Millis(5), ..submitted() };
        let row = unpacked(&packed(far.clone()));
        assert_eq!(row, JobRow { created_at: Millis((1 << 48) - 1), ..far });
        assert_eq!(unpacked(&packed(row.clone())), row);
    }

    #[test]
    fn a_requeue_resets_the_start() {
        let ran = JobRow { started_at: Millis(2_000), attempt: Attempt(1), ..submitted() };
        let mut packed = packed(ran.clone());
        packed.enter_queue(Millis(1_000), 4);
        assert_eq!(unpacked(&packed), JobRow { order: 4, started_at: Millis(0), ..ran });
    }
}
