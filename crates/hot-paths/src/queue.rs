//! The verbs of a queue that every job goes through.

use std::hint::black_box;
use std::process::exit;

use longshore_model::{Counters, EndpointNo, JobId, JobRow, KeyId, Millis, OwnerNo, Submitter, WorkerId};
use longshore_queue::{Effects, Queue, QueueSettings, Report, Submit, Submitted, Take};

/// Jobs that wait from the beginning to the end, so that each path is gone at the usual depth of the indexes.
const WAITING: u64 = 4096;
/// Workers, known to the queue from the beginning. A path is gone once for each at most.
const WORKERS: u64 = 256;
/// How often a path can be gone.
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

/// Jobs come in.
pub fn submit(times: u64) {
    let mut scene = HotQueue::new();
    for _ in 0..times {
        assert!(matches!(scene.submit(), Submitted::New(_)), "a new id makes a new job");
    }
    scene.end();
}

/// Each worker asks for a job and gets one.
pub fn take(times: u64) {
    let mut scene = HotQueue::new();
    for worker in 0..times {
        assert_eq!(scene.take(worker).len(), 1, "worker {worker} gets a job");
    }
    scene.end();
}

/// Each worker hands in its result.
pub fn done(times: u64) {
    let mut scene = HotQueue::new();
    let taken: Vec<JobId> = (0..WORKERS).map(|worker| scene.take(worker)[0].id).collect();
    for (worker, job) in (0..times).zip(taken) {
        let (worker, verdict) = (scene.worker(worker), Report::Completed { output_bytes: 100 });
        let counted = scene.apply(|queue, now, out| queue.report(now, &worker, job, verdict, out));
        assert!(counted.is_some(), "the report of a job's holder counts");
    }
    scene.end();
}

/// A queue with waiting jobs and idle workers.
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
        let workers = (0..WORKERS).map(|number| format!("worker-{:016x}", scattered(number)));
        let workers = workers.map(|id| id.parse().expect("a worker's id")).collect();
        let (effects, now) = (Effects::default(), Millis(1_700_000_000_000));
        let mut scene = Self { queue, workers, effects, now, submitted: 0 };
        for worker in 0..WORKERS {
            scene.take(worker);
        }
        for _ in 0..WAITING + WORKERS {
            scene.submit();
        }
        scene
    }

    fn worker(&self, number: u64) -> WorkerId {
        self.workers[number as usize].clone()
    }

    fn submit(&mut self) -> Submitted {
        self.submitted += 1;
        let submit = Submit {
            id: JobId::mint(self.now, u128::from(scattered(self.submitted)), false),
            input_bytes: 100,
            low_priority: false,
            webhook: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter: Submitter { owner: OwnerNo::SERVER, key: KeyId::from_number(0x0123_4567_89ab_cdef) },
        };
        self.apply(|queue, now, out| queue.submit(now, black_box(submit), out)).expect("the queue has room")
    }

    fn take(&mut self, worker: u64) -> Vec<JobRow> {
        let worker = self.worker(worker);
        let (says_busy, overlapping, input_bytes_max) = (Some(false), false, u64::MAX);
        let take = Take { worker, slots: 1, says_busy, overlapping, input_bytes_max };
        self.apply(|queue, now, out| queue.take(now, black_box(&take), out))
    }

    /// A verb every millisecond; of what it causes, the rows and signals are dropped here, as by a store that keeps
    /// nothing.
    fn apply<T>(&mut self, verb: impl FnOnce(&mut Queue, Millis, &mut Effects) -> T) -> T {
        self.now = self.now + 1;
        let result = verb(&mut self.queue, self.now, &mut self.effects);
        black_box(self.queue.take_counters());
        black_box(&mut self.effects).changes.clear();
        self.effects.signals.clear();
        black_box(result)
    }

    /// Ends the program. To tear the queue down would take as many steps as there are jobs left in it.
    fn end(self) -> ! {
        exit(i32::from(black_box(self).queue.is_empty()))
    }
}

/// Numbers that look random, the same in every run (the finalizer of `SplitMix64`).
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
