//! The hot paths of a queue: the verbs that every job passes.

use std::hint::black_box;
use std::process::exit;

use longshore_model::{Counters, EndpointNo, JobId, JobRow, KeyId, Millis, OwnerNo, Submitter, WorkerId};
use longshore_queue::{Effects, Queue, QueueSettings, Report, Submit, Submitted, Take};

/// Jobs that stay queued during the run, so that the indexes have a usual depth.
const QUEUED_JOBS: u64 = 4096;
/// Workers, known to the queue from the start. `take` and `done` use each worker once.
const WORKERS: u64 = 256;
/// The largest number of repetitions of a path.
pub const TIMES_MAX: u64 = WORKERS;

const SETTINGS: QueueSettings = QueueSettings {
    paused: false,
    execution_timeout_ms: 600_000,
    max_retries: 3,
    retry_handler_errors: false,
    retention_ms: 1_800_000,
    sync_retention_ms: 60_000,
    output_bytes_max: 10_000_000,
    sync_output_bytes_max: 20_000_000,
    jobs_max: 1_000_000,
    lease_ms: 30_000,
    stop_grace_ms: 10_000,
};

/// Submits `times` jobs with new ids, and exits.
pub fn submit(times: u64) {
    let mut queue = HotQueue::new();
    for _ in 0..times {
        assert!(matches!(queue.submit(), Submitted::New(_)), "a new id makes a new job");
    }
    queue.exit();
}

/// Lets `times` workers take one job each, and exits. `times` is at most [`TIMES_MAX`].
pub fn take(times: u64) {
    let mut queue = HotQueue::new();
    for worker in 0..times {
        assert_eq!(queue.take(worker).len(), 1, "worker {worker} gets a job");
    }
    queue.exit();
}

/// Lets all workers take one job each and `times` of them report a result, and exits. `times` is at most [`TIMES_MAX`].
pub fn done(times: u64) {
    let mut queue = HotQueue::new();
    let taken: Vec<JobId> = (0..WORKERS).map(|worker| queue.take(worker)[0].id).collect();
    for (worker, job) in (0..times).zip(taken) {
        let (worker, report) = (queue.worker(worker), Report::Completed { output_bytes: 100 });
        let counted = queue.apply(|queue, now, out| queue.report(now, &worker, job, report, out));
        assert!(counted.is_some(), "the report of a job's holder counts");
    }
    queue.exit();
}

/// A queue with queued jobs and idle workers, and the number of jobs submitted so far.
struct HotQueue {
    queue: Queue,
    workers: Vec<WorkerId>,
    effects: Effects,
    now: Millis,
    submitted: u64,
}

impl HotQueue {
    fn new() -> Self {
        let queue = Queue::new(EndpointNo(1), SETTINGS, Counters::default());
        let workers = (0..WORKERS).map(|number| format!("worker-{:016x}", mix(number)));
        let workers = workers.map(|id| id.parse().expect("a worker's id")).collect();
        let (effects, now) = (Effects::default(), Millis(1_700_000_000_000));
        let mut hot = Self { queue, workers, effects, now, submitted: 0 };
        for worker in 0..WORKERS {
            hot.take(worker);
        }
        for _ in 0..QUEUED_JOBS + WORKERS {
            hot.submit();
        }
        hot
    }

    fn worker(&self, number: u64) -> WorkerId {
        self.workers[number as usize].clone()
    }

    fn submit(&mut self) -> Submitted {
        self.submitted += 1;
        let submit = Submit {
            id: JobId::mint(self.now, u128::from(mix(self.submitted)), false),
            input_bytes: 100,
            low_priority: false,
            webhook: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter: Submitter { owner: OwnerNo::SERVER, key: KeyId::from_number(0x0123_4567_89ab_cdef) },
            trace: None,
        };
        self.apply(|queue, now, out| queue.submit(now, black_box(submit), out)).expect("the queue has room")
    }

    fn take(&mut self, worker: u64) -> Vec<JobRow> {
        let worker = self.worker(worker);
        let (says_busy, overlapping, input_bytes_max) = (Some(false), false, u64::MAX);
        let take =
            Take { worker, slots: 1, says_busy, overlapping, address: None, gpu: None, input_bytes_max };
        self.apply(|queue, now, out| queue.take(now, black_box(&take), out))
    }

    /// Runs a verb one millisecond after the previous one, takes the counters and drops the effects. Nothing is stored.
    fn apply<T>(&mut self, verb: impl FnOnce(&mut Queue, Millis, &mut Effects) -> T) -> T {
        self.now = self.now + 1;
        let result = verb(&mut self.queue, self.now, &mut self.effects);
        black_box(self.queue.take_counters());
        black_box(&mut self.effects).changes.clear();
        self.effects.signals.clear();
        black_box(result)
    }

    /// Exits without dropping the queue: dropping costs instructions for each job that is left.
    fn exit(self) -> ! {
        exit(i32::from(black_box(self).queue.is_empty()))
    }
}

/// Mixes the bits of a number, so that ids look random and are the same in every run (the finalizer of `SplitMix64`).
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
