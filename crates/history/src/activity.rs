//! What an endpoint's actor counts: it adds, the recorder reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use longshore_model::{JobState, Millis};

use crate::{CELLS, FailureKind, Field, Histogram, LimitedOperation, Record, cell_of};

/// The fields that are counted, in the order of [`Activity::counts`].
const COUNTED: [Field; 29] = [
    Field::Submitted,
    Field::Completed,
    Field::Failed,
    Field::TimedOut,
    Field::Cancelled,
    Field::Retried,
    Field::Refused,
    Field::BytesIn,
    Field::BytesOut,
    Field::Chunks,
    Field::CallsDelivered,
    Field::CallsRetried,
    Field::CallsFailed,
    Field::FailedByHandler,
    Field::FailedByLoss,
    Field::FailedBySize,
    Field::FailedByDamage,
    Field::MetColdStart,
    Field::LimitedRunsync,
    Field::LimitedRun,
    Field::LimitedStatus,
    Field::LimitedStream,
    Field::LimitedCancel,
    Field::LimitedPurgeQueue,
    Field::LimitedOpenai,
    Field::LimitedRequests,
    Field::LimitedWebhooks,
    Field::LimitedLb,
    Field::Starts,
];

const SUBMITTED: usize = 0;
const COMPLETED: usize = 1;
const FAILED: usize = 2;
const TIMED_OUT: usize = 3;
const CANCELLED: usize = 4;
const RETRIED: usize = 5;
const REFUSED: usize = 6;
const BYTES_IN: usize = 7;
const BYTES_OUT: usize = 8;
const CHUNKS: usize = 9;
const CALLS_DELIVERED: usize = 10;
const CALLS_RETRIED: usize = 11;
const CALLS_FAILED: usize = 12;
const FAILED_BY_HANDLER: usize = 13;
const FAILED_BY_LOSS: usize = 14;
const FAILED_BY_SIZE: usize = 15;
const FAILED_BY_DAMAGE: usize = 16;
const MET_COLD_START: usize = 17;
/// The place of the first operation; the others follow in the order of [`LimitedOperation`].
const LIMITED: usize = 18;
const STARTS: usize = COUNTED.len() - 1;

/// The counts of one endpoint since the start of the server. Only the endpoint's actor counts jobs: an addition is a load and
/// a store, without a lock and an allocation. Any task may count calls of webhooks and requests
/// over a limit, and read.
#[derive(Debug)]
pub struct Activity {
    counts: [AtomicU64; COUNTED.len()],
    delay: [AtomicU32; CELLS],
    run: [AtomicU32; CELLS],
    start: [AtomicU32; CELLS],
    queued: AtomicU64,
    running: AtomicU64,
    /// The most since the recorder read them last.
    queued_max: AtomicU64,
    running_max: AtomicU64,
    /// When the job that waits longest entered the queue, in ms; 0 if none waits.
    first_queued_at: AtomicU64,
    /// The time that workers ran jobs, and that workers were there, in ms.
    busy_ms: AtomicU64,
    paid_ms: AtomicU64,
}

/// The counts of one endpoint since the start of the server, and its present load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityTotals {
    /// The number of accepted submits.
    pub submitted: u64,
    /// The number of jobs that ended as `COMPLETED`.
    pub completed: u64,
    /// The number of jobs that ended as `FAILED`.
    pub failed: u64,
    /// The number of jobs that ended as `TIMED_OUT`.
    pub timed_out: u64,
    /// The number of jobs that ended as `CANCELLED`.
    pub cancelled: u64,
    /// The number of repeated attempts.
    pub retried: u64,
    /// The number of submits that the queue refused.
    pub refused: u64,
    /// The number of chunks of streams.
    pub chunks: u64,
    /// The bytes of accepted inputs.
    pub input_bytes: u64,
    /// The bytes of outputs and chunks.
    pub output_bytes: u64,
    /// The number of jobs that wait.
    pub queued: u64,
    /// The number of jobs that run.
    pub running: u64,
    /// When the job that waits longest entered the queue; `None` if none waits.
    pub first_queued_at: Option<Millis>,
    /// Time in ms that workers ran jobs, sampled every 2 s.
    pub busy_ms: u64,
    /// Time in ms that workers ran, started or waited for jobs, sampled every 2 s.
    pub paid_ms: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; COUNTED.len()],
            delay: [const { AtomicU32::new(0) }; CELLS],
            run: [const { AtomicU32::new(0) }; CELLS],
            start: [const { AtomicU32::new(0) }; CELLS],
            queued: AtomicU64::new(0),
            running: AtomicU64::new(0),
            queued_max: AtomicU64::new(0),
            running_max: AtomicU64::new(0),
            first_queued_at: AtomicU64::new(0),
            busy_ms: AtomicU64::new(0),
            paid_ms: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// Counts an accepted submit with this many bytes of input.
    pub fn submitted(&self, input_bytes: u64) {
        self.add(SUBMITTED, 1);
        self.add(BYTES_IN, input_bytes);
    }

    /// Counts a submit that the queue refused.
    pub fn refused(&self) {
        self.add(REFUSED, 1);
    }

    /// Counts a delivery of a job that was queued for this time.
    pub fn delivered(&self, delay_ms: u64) {
        count(&self.delay, delay_ms);
    }

    /// Counts the end of a job. `ran_ms` is how long its last attempt ran; `None` if there was none.
    pub fn ended(&self, state: JobState, ran_ms: Option<u64>) {
        let counter = match state {
            JobState::Completed => COMPLETED,
            JobState::Failed => FAILED,
            JobState::TimedOut => TIMED_OUT,
            JobState::Cancelled => CANCELLED,
            JobState::InQueue | JobState::InProgress => return,
        };
        self.add(counter, 1);
        if let Some(ran_ms) = ran_ms.filter(|_| counter != CANCELLED) {
            count(&self.run, ran_ms);
        }
    }

    /// Counts what made a job fail, which [`ended`](Self::ended) has counted.
    pub fn failed_by(&self, kind: FailureKind) {
        self.add(
            match kind {
                FailureKind::Handler => FAILED_BY_HANDLER,
                FailureKind::WorkerLost => FAILED_BY_LOSS,
                FailureKind::Size => FAILED_BY_SIZE,
                FailureKind::Damaged => FAILED_BY_DAMAGE,
                // It is not counted as failed, but as timed out.
                FailureKind::TimedOut => return,
            },
            1,
        );
    }

    /// Counts a delivery to a worker that was started while the job waited.
    pub fn met_cold_start(&self) {
        self.add(MET_COLD_START, 1);
    }

    /// Counts an output of this many bytes.
    pub fn put_out(&self, bytes: u64) {
        self.add(BYTES_OUT, bytes);
    }

    /// Counts chunks of streams, with this many bytes together.
    pub fn streamed(&self, chunks: u64, bytes: u64) {
        self.add(CHUNKS, chunks);
        self.add(BYTES_OUT, bytes);
    }

    /// Adds to the number of repeated attempts.
    pub fn retried(&self, attempts: u64) {
        self.add(RETRIED, attempts);
    }

    /// Counts a call of a webhook that its receiver accepted.
    pub fn call_delivered(&self) {
        self.add_from_any_task(CALLS_DELIVERED);
    }

    /// Counts a call of a webhook that failed and is repeated.
    pub fn call_retried(&self) {
        self.add_from_any_task(CALLS_RETRIED);
    }

    /// Counts a call of a webhook that failed and was given up.
    pub fn call_failed(&self) {
        self.add_from_any_task(CALLS_FAILED);
    }

    /// Counts a request that was over a limit of its operation.
    pub fn limited(&self, operation: LimitedOperation) {
        self.add_from_any_task(LIMITED + operation as usize);
    }

    /// Counts a worker that became ready this time after its start. Only the endpoint's supervisor does.
    pub fn started(&self, start_ms: u64) {
        self.add_from_any_task(STARTS);
        count(&self.start, start_ms);
    }

    /// Publishes how many jobs wait and run, and since when the first of those that wait does.
    pub fn publish_load(&self, queued: u64, running: u64, first_queued_at: Option<Millis>) {
        self.queued.store(queued, Relaxed);
        self.running.store(running, Relaxed);
        if queued > self.queued_max.load(Relaxed) {
            self.queued_max.store(queued, Relaxed);
        }
        if running > self.running_max.load(Relaxed) {
            self.running_max.store(running, Relaxed);
        }
        self.first_queued_at.store(first_queued_at.map_or(0, |at| at.0), Relaxed);
    }

    /// The counts so far, and the load that was published last. Each number is read by itself.
    pub fn totals(&self) -> ActivityTotals {
        let count = |counter: usize| self.counts[counter].load(Relaxed);
        ActivityTotals {
            submitted: count(SUBMITTED),
            completed: count(COMPLETED),
            failed: count(FAILED),
            timed_out: count(TIMED_OUT),
            cancelled: count(CANCELLED),
            retried: count(RETRIED),
            refused: count(REFUSED),
            chunks: count(CHUNKS),
            input_bytes: count(BYTES_IN),
            output_bytes: count(BYTES_OUT),
            queued: self.queued.load(Relaxed),
            running: self.running.load(Relaxed),
            first_queued_at: Some(self.first_queued_at.load(Relaxed)).filter(|at| *at > 0).map(Millis),
            busy_ms: self.busy_ms.load(Relaxed),
            paid_ms: self.paid_ms.load(Relaxed),
        }
    }

    /// A number that changes with each delivery and each end of a job, and with each worker that becomes ready.
    pub fn changes(&self) -> u64 {
        let counts = [COMPLETED, FAILED, TIMED_OUT, STARTS].map(|counter| self.counts[counter].load(Relaxed));
        let delivered = self.delay.iter().map(|cell| u64::from(cell.load(Relaxed)));
        counts.into_iter().chain(delivered).fold(0, u64::wrapping_add)
    }

    /// Adds to the time of the workers. Only the recorder does.
    pub(crate) fn worked(&self, busy_ms: u64, paid_ms: u64) {
        self.busy_ms.fetch_add(busy_ms, Relaxed);
        self.paid_ms.fetch_add(paid_ms, Relaxed);
    }

    fn add(&self, counter: usize, more: u64) {
        let counter = &self.counts[counter];
        counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
    }

    fn add_from_any_task(&self, counter: usize) {
        self.counts[counter].fetch_add(1, Relaxed);
    }

    /// What happened since `totals`, which are then those of now. Takes the maxima.
    pub(crate) fn since(&self, totals: &mut Totals, now: Millis) -> Record {
        let mut record = Record::default();
        for ((field, count), total) in COUNTED.into_iter().zip(&self.counts).zip(&mut totals.counts) {
            record.set(field, count_since(count, total));
        }
        record.delay = cells_since(&self.delay, &mut totals.delay);
        record.run = cells_since(&self.run, &mut totals.run);
        record.start = cells_since(&self.start, &mut totals.start);
        let (queued, running) = (self.queued.load(Relaxed), self.running.load(Relaxed));
        record.set(Field::Queued, queued);
        record.set(Field::Running, running);
        record.set(Field::QueuedMax, self.queued_max.swap(queued, Relaxed).max(queued));
        record.set(Field::RunningMax, self.running_max.swap(running, Relaxed).max(running));
        let first = Some(self.first_queued_at.load(Relaxed)).filter(|at| *at > 0);
        record.set(Field::OldestMs, first.map_or(0, |at| now.since(Millis(at))));
        record
    }
}

/// Counts a time in its cell.
fn count(cells: &[AtomicU32; CELLS], ms: u64) {
    let cell = &cells[cell_of(ms)];
    cell.store(cell.load(Relaxed).wrapping_add(1), Relaxed);
}

/// The number that was counted since `total`, which is then that of now.
pub(crate) fn count_since(count: &AtomicU64, total: &mut u64) -> u64 {
    let count = count.load(Relaxed);
    // A lower count is of a new actor, which began at 0.
    count.checked_sub(std::mem::replace(total, count)).unwrap_or(count)
}

/// The same for times, by their cells.
pub(crate) fn cells_since(cells: &[AtomicU32; CELLS], totals: &mut [u32; CELLS]) -> Histogram {
    Histogram::of_counts(cells.iter().zip(totals).map(|(cell, total)| {
        let count = cell.load(Relaxed);
        u64::from(count.checked_sub(std::mem::replace(total, count)).unwrap_or(count))
    }))
}

/// The counts that were read last.
#[derive(Debug)]
pub(crate) struct Totals {
    counts: [u64; COUNTED.len()],
    delay: [u32; CELLS],
    run: [u32; CELLS],
    start: [u32; CELLS],
}

impl Default for Totals {
    fn default() -> Self {
        Self { counts: [0; COUNTED.len()], delay: [0; CELLS], run: [0; CELLS], start: [0; CELLS] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_cold_starts_and_limits_have_their_own_fields() {
        let (activity, mut totals) = (Activity::default(), Totals::default());
        for kind in FailureKind::ALL {
            activity.failed_by(kind);
        }
        activity.met_cold_start();
        for (at, operation) in LimitedOperation::ALL.into_iter().enumerate() {
            (0..=at).for_each(|_| activity.limited(operation));
        }
        let record = activity.since(&mut totals, Millis(2_000));
        let kinds = [Field::FailedByHandler, Field::FailedByLoss, Field::FailedBySize, Field::FailedByDamage];
        assert_eq!(kinds.map(|field| record.get(field)), [1; 4]);
        assert_eq!((record.get(Field::MetColdStart), record.get(Field::Failed)), (1, 0));
        for (at, operation) in LimitedOperation::ALL.into_iter().enumerate() {
            assert_eq!(record.get(operation.field()), at as u64 + 1, "{operation:?}");
        }
    }

    #[test]
    fn each_reading_has_what_happened_since_the_one_before() {
        let activity = Activity::default();
        let mut totals = Totals::default();
        activity.submitted(100);
        activity.submitted(50);
        activity.publish_load(2, 0, Some(Millis(1_000)));
        activity.delivered(40);
        activity.publish_load(1, 1, Some(Millis(1_500)));
        let first = activity.since(&mut totals, Millis(2_000));
        assert_eq!((first.get(Field::Submitted), first.get(Field::BytesIn)), (2, 150));
        assert_eq!((first.get(Field::Queued), first.get(Field::QueuedMax)), (1, 2));
        assert_eq!((first.get(Field::OldestMs), first.delay.count()), (500, 1));
        activity.ended(JobState::Completed, Some(7));
        activity.ended(JobState::Cancelled, Some(9));
        activity.call_retried();
        activity.call_failed();
        activity.call_delivered();
        activity.call_delivered();
        activity.publish_load(0, 0, None);
        let second = activity.since(&mut totals, Millis(4_000));
        let counts = [Field::Submitted, Field::Completed, Field::Cancelled, Field::Failed];
        assert_eq!(counts.map(|field| second.get(field)), [0, 1, 1, 0]);
        let calls = [Field::CallsDelivered, Field::CallsRetried, Field::CallsFailed];
        assert_eq!(calls.map(|field| second.get(field)), [2, 1, 1]);
        // The maximum is at least that of the moment before.
        assert_eq!((second.get(Field::QueuedMax), second.get(Field::OldestMs)), (1, 0));
        assert_eq!((second.run.count(), second.delay.count()), (1, 0));
        assert!(activity.since(&mut totals, Millis(6_000)).is_idle());
    }
}
