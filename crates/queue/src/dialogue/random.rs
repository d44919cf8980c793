//! Random lives: whatever is said to the queue in whatever order, with restarts in between, the audit holds,
//! time never gets stuck, and in the end nothing is left.

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
fn random_lives_keep_every_rule() {
    for seed in 0..SEEDS {
        let mut life = Life::new(seed);
        for _ in 0..STEPS {
            life.step();
        }
        life.end();
    }
}

/// More jobs than one slice holds, purged, expired and restarted in the middle of it.
#[test]
fn crowded_lives_keep_every_rule() {
    for seed in 0..SEEDS / 40 {
        let mut life = Life::new(seed);
        for step in 0..STEPS / 8 {
            if step % 16 == 0 {
                for _ in 0..300 {
                    life.submit();
                }
            }
            life.step();
        }
        life.end();
    }
}

/// The numbers of one life (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.roll(from.len().max(1) as u64) as usize;
        from.get(at).cloned()
    }
}

/// What happened in a life; printed if it ends badly.
struct Log(Vec<String>);

impl Drop for Log {
    #[expect(clippy::print_stderr, reason = "it is for whoever looks into a failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.join("\n"));
        }
    }
}

struct Life {
    dice: Dice,
    world: World,
    jobs: Vec<JobId>,
    workers: Vec<WorkerId>,
    log: Log,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut world = World::new();
        world.settings.max_retries = dice.roll(3) as u8;
        world.settings.retry_handler_errors = dice.chance(30);
        world.settings.jobs_max = if dice.chance(20) { 5 } else { 1_000_000 };
        world.settings.retention_ms = 1_000 * (1 + dice.roll(60));
        let workers = ["w1", "w2", "w3"].map(worker).to_vec();
        let mut life =
            Self { dice, world, jobs: Vec::new(), workers, log: Log(Vec::from([format!("seed {seed}")])) };
        life.say(Command::Configure(life.world.settings));
        life
    }

    fn say(&mut self, command: Command) -> Reply {
        self.log.0.push(format!("{} {command:?}", self.world.now));
        let (reply, effects, _) = self.world.apply(command);
        self.log.0.push(format!("    {reply:?} {:?}", effects.signals));
        reply
    }

    fn step(&mut self) {
        if self.dice.chance(30) {
            self.time_passes();
        }
        match self.dice.roll(100) {
            0..20 => self.submit(),
            20..45 => self.a_worker_asks(),
            45..75 => self.a_worker_reports(),
            75..88 => self.a_client_asks(),
            88..96 => self.a_launcher_speaks(),
            96..98 => self.restart(),
            _ => {
                self.world.settings.paused = self.dice.chance(30);
                self.say(Command::Configure(self.world.settings));
            }
        }
    }

    fn time_passes(&mut self) {
        let ms = match self.dice.roll(10) {
            0..3 => self.dice.roll(10),
            3..9 => self.dice.roll(20_000),
            _ => self.dice.roll(1_000_000),
        };
        if self.dice.chance(20) {
            // The clock goes on, but nobody rings it.
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
        let newest_first = self.dice.chance(50);
        if self.dice.chance(30) {
            self.world.now = self.world.now - self.dice.roll(5_000);
        }
        self.log.0.push(format!("{} restart", self.world.now));
        self.world.restart(newest_first);
    }

    fn submit(&mut self) {
        let again = self.dice.pick(&self.jobs).filter(|_| self.dice.chance(5));
        let fresh = JobId::mint(self.world.now, self.jobs.len() as u128, self.dice.chance(40));
        let idempotency = self.dice.chance(30).then(|| {
            let key = if self.dice.chance(50) { "k" } else { "l" };
            Box::new(Idempotency { key: key.into(), fingerprint: [self.dice.roll(2) as u8; 16] })
        });
        let submit = Submit {
            id: again.unwrap_or(fresh),
            input_bytes: 1,
            low_priority: self.dice.chance(30),
            webhook: self.dice.chance(30),
            execution_timeout_ms: self.dice.chance(50).then(|| 5_000 + self.dice.roll(30_000) as u32),
            ttl_ms: self.dice.chance(50).then(|| 10_000 + self.dice.roll(60_000) as u32),
            idempotency,
            submitter: Submitter {
                owner: OwnerNo(self.dice.roll(2) as u32),
                key: KeyId::from_number(self.dice.roll(3)),
            },
        };
        if matches!(self.say(Command::Submit(submit)), Reply::Accepted) {
            self.jobs.push(fresh);
        }
    }

    fn a_worker_asks(&mut self) {
        let worker = self.worker();
        let slots = 1 + self.dice.roll(3) as u32;
        let says_busy = [None, Some(true), Some(false)][self.dice.roll(3) as usize];
        let overlapping = self.dice.chance(2);
        let input_bytes_max = u64::MAX;
        self.say(Command::Take(Take { worker, slots, says_busy, overlapping, input_bytes_max }));
    }

    fn a_worker_reports(&mut self) {
        let worker = self.worker();
        let Some(job) = self.job() else { return };
        let command = match self.dice.roll(11) {
            10 => {
                let attempt = self.world.queue.find_stored(job).map_or(Attempt(0), |row| row.attempt);
                let damage = self.dice.chance(20).then(|| "its input is damaged".to_string());
                Command::Undelivered { job, attempt, damage }
            }
            0..3 => {
                let output_bytes = self.dice.roll(2_500);
                Command::Report { worker, job, report: Report::Completed { output_bytes } }
            }
            3..5 => Command::Report { worker, job, report: Report::Failed },
            5 => Command::Progress { worker, job },
            6 => Command::Append { worker, job },
            7 if self.dice.chance(50) => Command::TouchWorker(worker),
            7 => Command::Ping { worker, holds: None },
            _ => {
                let count = self.dice.roll(4);
                let holds = (0..count).filter_map(|_| self.job()).collect();
                Command::Ping { worker, holds: Some(holds) }
            }
        };
        self.say(command);
    }

    fn a_client_asks(&mut self) {
        let Some(job) = self.job() else { return };
        let command = match self.dice.roll(11) {
            0..3 => Command::Cancel(job),
            3..6 => Command::Retry(job),
            6 => Command::Purge,
            7 => Command::SetTtl { job, ttl_ms: 1_000 + self.dice.roll(100_000) },
            which => {
                let ends = self.world.ends.get(&job).map(Vec::as_slice).unwrap_or_default();
                let Some(end) = self.dice.pick(ends) else { return };
                if which == 10 {
                    Command::RedeliverWebhook { job, end }
                } else {
                    Command::SettleWebhook { job, end }
                }
            }
        };
        self.say(command);
    }

    fn a_launcher_speaks(&mut self) {
        let worker = self.worker();
        let command = match self.dice.roll(4) {
            0 => Command::RegisterWorker(worker),
            1 if self.dice.chance(30) => Command::RenewLeases,
            1 => Command::DrainWorker(worker),
            _ => {
                let counts_retry = self.dice.chance(50);
                Command::LoseWorker { worker, counts_retry, reason: "exit code 1".to_string() }
            }
        };
        self.say(command);
    }

    fn worker(&mut self) -> WorkerId {
        self.dice.pick(&self.workers).expect("there are workers")
    }

    /// One of the latest jobs, mostly.
    fn job(&mut self) -> Option<JobId> {
        let oldest = if self.dice.chance(90) { self.jobs.len().saturating_sub(8) } else { 0 };
        self.dice.pick(&self.jobs[oldest..])
    }

    /// Everybody goes home: after the longest ttl nothing may be left but owed webhooks, and then nothing.
    fn end(&mut self) {
        self.pass(8 * 86_400_000);
        for (job, ends) in self.world.ends.clone() {
            for end in ends {
                self.say(Command::SettleWebhook { job, end });
            }
        }
        self.pass(1);
        assert!(self.world.queue.is_empty(), "every job is gone in the end");
        for worker in self.workers.clone() {
            self.say(Command::LoseWorker { worker, counts_retry: false, reason: String::new() });
        }
        assert_eq!(self.world.queue.next_deadline(), None::<Millis>, "nobody is left to wait for");
    }
}
