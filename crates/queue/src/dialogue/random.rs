//! Random histories: commands in random order, with restarts. The audit passes after every command, deadlines advance, and
//! in the end every job is deleted.

use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{eprintln, format};

use longshore_model::{Attempt, Idempotency, JobId, KeyId, Millis, OwnerNo, Submitter, WorkerId};

use super::command::{Command, Reply};
use super::world::{World, worker};
use crate::{Report, Submit, Take};

const SEEDS: u64 = 200;
const STEPS: u32 = 400;

#[test]
fn random_histories_keep_every_rule() {
    for seed in 0..SEEDS {
        let mut history = History::new(seed);
        for _ in 0..STEPS {
            history.step();
        }
        history.end();
    }
}

/// With more jobs than one slice, so that purges and expiries are interrupted by restarts.
#[test]
fn histories_of_many_jobs_keep_every_rule() {
    for seed in 0..SEEDS / 40 {
        let mut history = History::new(seed);
        for step in 0..STEPS / 8 {
            if step % 16 == 0 {
                for _ in 0..300 {
                    history.submit();
                }
            }
            history.step();
        }
        history.end();
    }
}

/// The random numbers of one history (splitmix64).
struct Rng(u64);

impl Rng {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    /// `true` with this probability.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the values; `None` if there is none.
    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.below(from.len().max(1) as u64) as usize;
        from.get(at).cloned()
    }
}

/// The commands of a history with their results; printed if a test fails.
struct Log(Vec<String>);

impl Drop for Log {
    #[expect(clippy::print_stderr, reason = "the history of a failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.join("\n"));
        }
    }
}

/// A queue with the jobs and workers of one history.
struct History {
    rng: Rng,
    world: World,
    jobs: Vec<JobId>,
    workers: Vec<WorkerId>,
    log: Log,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let mut world = World::new();
        world.settings.max_retries = rng.below(3) as u8;
        world.settings.retry_handler_errors = rng.chance(30);
        world.settings.jobs_max = if rng.chance(20) { 5 } else { 1_000_000 };
        world.settings.retention_ms = 1_000 * (1 + rng.below(60));
        let workers = ["w1", "w2", "w3"].map(worker).to_vec();
        let mut history =
            Self { rng, world, jobs: Vec::new(), workers, log: Log(Vec::from([format!("seed {seed}")])) };
        history.run(Command::Configure(history.world.settings));
        history
    }

    /// Runs a command and logs it.
    fn run(&mut self, command: Command) -> Reply {
        self.log.0.push(format!("{} {command:?}", self.world.now));
        let (reply, effects, _) = self.world.apply(command);
        self.log.0.push(format!("    {reply:?} {:?}", effects.signals));
        reply
    }

    fn step(&mut self) {
        if self.rng.chance(30) {
            self.advance_time();
        }
        match self.rng.below(100) {
            0..20 => self.submit(),
            20..45 => self.take(),
            45..75 => self.report(),
            75..88 => self.change_job(),
            88..96 => self.change_worker(),
            96..98 => self.restart(),
            _ => {
                self.world.settings.paused = self.rng.chance(30);
                self.run(Command::Configure(self.world.settings));
            }
        }
    }

    fn advance_time(&mut self) {
        let ms = match self.rng.below(10) {
            0..3 => self.rng.below(10),
            3..9 => self.rng.below(20_000),
            _ => self.rng.below(1_000_000),
        };
        if self.rng.chance(20) {
            // Without ticks.
            self.world.now = self.world.now + ms;
            return;
        }
        self.pass(ms);
    }

    fn pass(&mut self, ms: u64) {
        let log = &mut self.log.0;
        self.world.pass_time(self.world.now + ms, |world, effects, _| {
            log.push(format!("{} tick {:?}", world.now, effects.signals));
        });
    }

    fn restart(&mut self) {
        let newest_first = self.rng.chance(50);
        if self.rng.chance(30) {
            self.world.now = self.world.now - self.rng.below(5_000);
        }
        self.log.0.push(format!("{} restart", self.world.now));
        self.world.restart(newest_first);
    }

    fn submit(&mut self) {
        let again = self.rng.pick(&self.jobs).filter(|_| self.rng.chance(5));
        let fresh = JobId::mint(self.world.now, self.jobs.len() as u128, self.rng.chance(40));
        let idempotency = self.rng.chance(30).then(|| {
            let key = if self.rng.chance(50) { "k" } else { "l" };
            Box::new(Idempotency { key: key.into(), fingerprint: [self.rng.below(2) as u8; 16] })
        });
        let submit = Submit {
            id: again.unwrap_or(fresh),
            input_bytes: 1,
            low_priority: self.rng.chance(30),
            webhook: self.rng.chance(30),
            execution_timeout_ms: self.rng.chance(50).then(|| 5_000 + self.rng.below(30_000) as u32),
            ttl_ms: self.rng.chance(50).then(|| 10_000 + self.rng.below(60_000) as u32),
            idempotency,
            submitter: Submitter {
                owner: OwnerNo(self.rng.below(2) as u32),
                key: KeyId::from_number(self.rng.below(3)),
            },
            trace: None,
        };
        if matches!(self.run(Command::Submit(submit)), Reply::Accepted) {
            self.jobs.push(fresh);
        }
    }

    fn take(&mut self) {
        let worker = self.worker();
        let slots = 1 + self.rng.below(3) as u32;
        let says_busy = [None, Some(true), Some(false)][self.rng.below(3) as usize];
        let overlapping = self.rng.chance(2);
        // The first worker has none.
        let gpu = (worker != self.workers[0]).then(|| format!("the GPU of {worker}").into());
        let input_bytes_max = u64::MAX;
        self.run(Command::Take(Take {
            worker,
            slots,
            says_busy,
            overlapping,
            address: None,
            gpu,
            input_bytes_max,
        }));
    }

    /// One of the verbs of a worker on a job.
    fn report(&mut self) {
        let worker = self.worker();
        let Some(job) = self.job() else { return };
        let command = match self.rng.below(11) {
            10 => {
                let attempt = self.world.queue.find_stored(job).map_or(Attempt(0), |row| row.attempt);
                let damage = self.rng.chance(20).then(|| "its input is damaged".to_string());
                Command::Undelivered { job, attempt, damage }
            }
            0..3 => {
                let output_bytes = self.rng.below(2_500);
                Command::Report { worker, job, report: Report::Completed { output_bytes } }
            }
            3..5 => Command::Report { worker, job, report: Report::Failed },
            5 => Command::Progress { worker, job },
            6 => Command::Append { worker, job },
            7 if self.rng.chance(50) => Command::TouchWorker(worker),
            7 => Command::Ping { worker, holds: None },
            _ => {
                let count = self.rng.below(4);
                let holds = (0..count).filter_map(|_| self.job()).collect();
                Command::Ping { worker, holds: Some(holds) }
            }
        };
        self.run(command);
    }

    /// One of the verbs of a client, or settles a webhook call.
    fn change_job(&mut self) {
        let Some(job) = self.job() else { return };
        let command = match self.rng.below(11) {
            0..3 => Command::Cancel(job),
            3..6 => Command::Retry(job),
            6 => Command::Purge,
            7 => Command::SetTtl { job, ttl_ms: 1_000 + self.rng.below(100_000) },
            which => {
                let ends = self.world.ends.get(&job).map(Vec::as_slice).unwrap_or_default();
                let Some(end) = self.rng.pick(ends) else { return };
                if which == 10 {
                    Command::RedeliverWebhook { job, end }
                } else {
                    Command::SettleWebhook { job, end }
                }
            }
        };
        self.run(command);
    }

    /// One of the verbs of the fleet.
    fn change_worker(&mut self) {
        let worker = self.worker();
        let command = match self.rng.below(4) {
            0 => Command::RegisterWorker(worker),
            1 if self.rng.chance(30) => Command::RenewLeases,
            1 => Command::DrainWorker(worker),
            _ => {
                let counts_retry = self.rng.chance(50);
                Command::LoseWorker { worker, counts_retry, reason: "exit code 1".to_string() }
            }
        };
        self.run(command);
    }

    fn worker(&mut self) -> WorkerId {
        self.rng.pick(&self.workers).expect("there are workers")
    }

    /// One of the last eight jobs in 9 of 10 cases, else any job; `None` if there is none.
    fn job(&mut self) -> Option<JobId> {
        let oldest = if self.rng.chance(90) { self.jobs.len().saturating_sub(8) } else { 0 };
        self.rng.pick(&self.jobs[oldest..])
    }

    /// Asserts that after the longest ttl only jobs with pending webhook calls are left, and none once these are settled.
    fn end(&mut self) {
        self.pass(8 * 86_400_000);
        for (job, ends) in self.world.ends.clone() {
            for end in ends {
                self.run(Command::SettleWebhook { job, end });
            }
        }
        self.pass(1);
        assert!(self.world.queue.is_empty(), "every job is deleted in the end");
        for worker in self.workers.clone() {
            self.run(Command::LoseWorker { worker, counts_retry: false, reason: String::new() });
        }
        assert_eq!(
            self.world.queue.next_deadline(),
            None::<Millis>,
            "without jobs and workers there is no deadline"
        );
    }
}
