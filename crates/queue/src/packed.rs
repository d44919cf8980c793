//! A job's row as it is kept in memory.

use alloc::boxed::Box;

use longshore_model::{Attempt, End, Idempotency, JobId, JobKey, JobRow, JobState, Millis, WorkerId, limits};

use crate::Submit;

/// A row, packed: there may be millions, and nearly all that wait are as their submit left them. Those take 64
/// bytes, where a [`JobRow`] takes 136; the others have what changed in a box.
#[derive(Debug)]
pub(crate) struct PackedRow {
    /// As [`JobKey::to_row`] makes it.
    key: i64,
    pub(crate) id: JobId,
    pub(crate) state: JobState,
    pub(crate) low_priority: bool,
    pub(crate) webhook: bool,
    pub(crate) ttl_ms: u32,
    pub(crate) execution_timeout_ms: u32,
    input_bytes: u32,
    pub(crate) order: i64,
    created_at: Millis,
    /// None while everything in it follows from the submit.
    changed: Option<Box<Changed>>,
}

/// What a row says besides; the fields are described at [`JobRow`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) fresh: bool,
    pub(crate) pinned: bool,
    pub(crate) webhook_owed: bool,
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

impl Changed {
    /// Nothing has changed yet.
    fn nothing(created_at: Millis, ttl_ms: u32) -> Self {
        Self {
            fresh: true,
            pinned: false,
            webhook_owed: false,
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
    pub(crate) fn new(row: JobRow) -> Self {
        let changed = Changed {
            fresh: row.fresh,
            pinned: row.pinned,
            webhook_owed: row.webhook_owed,
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
        let as_submitted = changed == Changed::nothing(row.created_at, row.ttl_ms);
        Self {
            key: row.key.to_row(),
            id: row.id,
            state: row.state,
            low_priority: row.low_priority,
            webhook: row.webhook,
            ttl_ms: row.ttl_ms,
            execution_timeout_ms: row.execution_timeout_ms,
            input_bytes: row.input_bytes,
            order: row.order,
            created_at: row.created_at,
            changed: (!as_submitted).then(|| Box::new(changed)),
        }
    }

    /// A job that comes in now, before it has its place in the line.
    pub(crate) fn submitted(key: JobKey, now: Millis, submit: Submit, execution_timeout_ms: u32) -> Self {
        let ttl_ms = submit.ttl_ms.unwrap_or(limits::TTL_MS_DEFAULT as u32);
        let with_key = |key| Box::new(Changed { idempotency: Some(key), ..Changed::nothing(now, ttl_ms) });
        Self {
            key: key.to_row(),
            id: submit.id,
            state: JobState::InQueue,
            low_priority: submit.low_priority,
            webhook: submit.webhook,
            ttl_ms,
            execution_timeout_ms: submit.execution_timeout_ms.unwrap_or(execution_timeout_ms),
            input_bytes: submit.input_bytes,
            order: 0,
            created_at: now,
            changed: submit.idempotency.map(with_key),
        }
    }

    /// The row as the rest of the world knows it.
    pub(crate) fn unpacked(&self) -> JobRow {
        let nothing;
        let changed = if let Some(changed) = &self.changed {
            changed
        } else {
            nothing = Changed::nothing(self.created_at, self.ttl_ms);
            &nothing
        };
        JobRow {
            key: self.key(),
            id: self.id,
            state: self.state,
            low_priority: self.low_priority,
            fresh: changed.fresh,
            pinned: changed.pinned,
            webhook: self.webhook,
            webhook_owed: changed.webhook_owed,
            retries: changed.retries,
            redeliveries: changed.redeliveries,
            attempt: changed.attempt,
            order: self.order,
            created_at: self.created_at,
            enqueued_at: changed.enqueued_at,
            started_at: changed.started_at,
            finished_at: changed.finished_at,
            delete_at: changed.delete_at,
            ttl_ms: self.ttl_ms,
            execution_timeout_ms: self.execution_timeout_ms,
            input_bytes: self.input_bytes,
            worker: changed.worker.clone(),
            idempotency: changed.idempotency.clone(),
        }
    }

    pub(crate) fn key(&self) -> JobKey {
        JobKey::from_row(self.key)
    }

    /// What can change, to be changed.
    pub(crate) fn changed(&mut self) -> &mut Changed {
        let (created_at, ttl_ms) = (self.created_at, self.ttl_ms);
        self.changed.get_or_insert_with(|| Box::new(Changed::nothing(created_at, ttl_ms)))
    }

    /// The job is in the queue from now on, and did not run since.
    pub(crate) fn enter_queue(&mut self, now: Millis, order: i64) {
        self.state = JobState::InQueue;
        self.order = order;
        if self.changed.is_some() || now != self.created_at {
            let changed = self.changed();
            changed.enqueued_at = now;
            changed.started_at = Millis(0);
            changed.finished_at = Millis(0);
        }
    }

    pub(crate) fn fresh(&self) -> bool {
        self.changed.as_ref().is_none_or(|changed| changed.fresh)
    }

    pub(crate) fn webhook_owed(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.webhook_owed)
    }

    pub(crate) fn retries(&self) -> u8 {
        self.changed.as_ref().map_or(0, |changed| changed.retries)
    }

    pub(crate) fn redeliveries(&self) -> u8 {
        self.changed.as_ref().map_or(0, |changed| changed.redeliveries)
    }

    pub(crate) fn attempt(&self) -> Attempt {
        self.changed.as_ref().map_or(Attempt(0), |changed| changed.attempt)
    }

    pub(crate) fn enqueued_at(&self) -> Millis {
        self.changed.as_ref().map_or(self.created_at, |changed| changed.enqueued_at)
    }

    pub(crate) fn started_at(&self) -> Millis {
        self.changed.as_ref().map_or(Millis(0), |changed| changed.started_at)
    }

    pub(crate) fn delete_at(&self) -> Millis {
        let by_ttl = self.created_at + u64::from(self.ttl_ms);
        self.changed.as_ref().map_or(by_ttl, |changed| changed.delete_at)
    }

    /// As [`JobRow::owed_end`].
    pub(crate) fn owed_end(&self) -> Option<End> {
        if self.webhook_owed() { self.unpacked().owed_end() } else { None }
    }

    pub(crate) fn worker(&self) -> Option<&WorkerId> {
        self.changed.as_ref()?.worker.as_ref()
    }

    pub(crate) fn idempotency(&self) -> Option<&Idempotency> {
        self.changed.as_ref()?.idempotency.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::EndpointNo;

    use super::*;

    fn submitted() -> JobRow {
        JobRow {
            key: JobKey { endpoint: EndpointNo(7), seq: JobKey::SEQ_MAX },
            id: JobId::mint(Millis(1_000), 5, true),
            state: JobState::InQueue,
            low_priority: true,
            fresh: true,
            pinned: false,
            webhook: true,
            webhook_owed: false,
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
        }
    }

    #[test]
    fn a_job_as_it_was_submitted_takes_64_bytes() {
        assert_eq!(size_of::<Option<PackedRow>>(), 64);
        let mut packed = PackedRow::new(submitted());
        assert!(packed.changed.is_none());
        packed.enter_queue(Millis(1_000), 4);
        assert!(packed.changed.is_none());
        assert_eq!(packed.unpacked(), JobRow { order: 4, ..submitted() });
    }

    #[test]
    fn a_row_is_the_same_when_it_is_unpacked() {
        let idempotency = Idempotency { key: "k".into(), fingerprint: [1; 16] };
        for row in [
            submitted(),
            JobRow { state: JobState::InProgress, ..submitted() },
            JobRow { fresh: false, ..submitted() },
            JobRow { pinned: true, ..submitted() },
            JobRow { webhook_owed: true, ..submitted() },
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
            assert_eq!(PackedRow::new(row.clone()).unpacked(), row);
        }
    }

    #[test]
    fn a_job_that_enters_the_queue_again_did_not_run() {
        let ran = JobRow { started_at: Millis(2_000), attempt: Attempt(1), ..submitted() };
        let mut packed = PackedRow::new(ran.clone());
        packed.enter_queue(Millis(1_000), 4);
        assert_eq!(packed.unpacked(), JobRow { order: 4, started_at: Millis(0), ..ran });
    }
}
