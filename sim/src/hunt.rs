//! Checks the simulator itself: searches for mistakes that are planted in the server.
//!
//! Each mistake has a budget of worlds, several times what was needed when it was set. The worlds are always the
//! same, so a hunt ends in the same world until the server or the simulator changes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use longshore_planted::{Bug, plant};

use crate::auditor::Violation;
use crate::faults::Fault;
use crate::run;

/// Steps of a world in a hunt until the faults stop.
pub const STEPS: u64 = 20_000;
/// Worlds of a hunt without an entry in [`BUDGETS`].
pub const WORLDS: u64 = 200;

/// Budgets of the mistakes that differ from [`WORLDS`].
const BUDGETS: &[(Bug, u64)] = &[
    (Bug::BodyNotCompared, 20),
    (Bug::KeysNotLoaded, 40),
    (Bug::RetryCountedTwice, 30),
    (Bug::ReadErrorCounted, 20),
    (Bug::TimeoutFromSubmit, 20),
    (Bug::ReplyBeforeCommit, 20),
    (Bug::FailedCommitForgotten, 40),
    (Bug::CountersNotKept, 20),
    (Bug::InputDeletedAtEnd, 20),
    (Bug::OutputSwept, 30),
    (Bug::HookNotKept, 40),
    (Bug::HookAtOnce, 20),
    (Bug::StreamNotReset, 300),
    (Bug::DrainKills, 500),
    (Bug::PurgeHitsNewJobs, 4_000),
    (Bug::UntakenResultAccepted, 500),
];

/// Kills are the server's only trouble, and some jobs survive them.
const KILLS: &[(Fault, f64)] = &[
    (Fault::ServerKilled, 0.000_2),
    (Fault::CommitFailed, 0.0),
    (Fault::CommitUnsure, 0.0),
    (Fault::DiskFull, 0.0),
    (Fault::ReadFailed, 0.0),
    (Fault::BlobFailed, 0.0),
    (Fault::ClockForward, 0.0),
    (Fault::ClockBack, 0.0),
    (Fault::HandlerStuck, 0.1),
];
/// Some jobs are unreadable for workers.
const UNREADABLE: &[(Fault, f64)] = &[(Fault::JobUnreadable, 0.05)];
/// Some reads of stored data fail.
const READ_ERRORS: &[(Fault, f64)] = &[(Fault::ReadFailed, 0.05), (Fault::DiskUnreadable, 0.002)];
/// Some outputs and chunks are damaged.
const DAMAGE: &[(Fault, f64)] = &[(Fault::OutputDamaged, 0.05), (Fault::ChunkDamaged, 0.05)];
/// Some workers hang.
const HANGS: &[(Fault, f64)] = &[(Fault::WorkerHangs, 0.03)];

/// Rates of faults for mistakes that only certain faults reveal.
const RATES: &[(Bug, &[(Fault, f64)])] = &[
    (Bug::TimeoutNotLoaded, KILLS),
    (Bug::LeaseNotLoaded, KILLS),
    (Bug::HungWorkerKept, HANGS),
    (Bug::DroppedInBatches, UNREADABLE),
    (Bug::ReadErrorCounted, READ_ERRORS),
    (Bug::ReadErrorCalledDamage, READ_ERRORS),
    (Bug::DamagedOutputServed, DAMAGE),
    (Bug::DamagedOutputOmitted, DAMAGE),
    (Bug::DamagedChunkOmitted, DAMAGE),
];

const ONE_JOB_PER_KEY: &str = "an idempotency key stands for one job";
const IN_ORDER: &str = "jobs are handed out in order";
const HANDED_OUT: &str = "only a waiting job is handed out";
const RETRIES_COUNTED: &str = "retries count lost workers, and nothing else";
const FAILS_ALONE: &str = "a job that no worker can read fails alone";
const ENDS_ONCE: &str = "a job ends once, and its outcome does not change";
const CAUSED: &str = "an outcome has a cause that came first";
const KEPT: &str = "an acknowledged job is there until its time has passed";
const GONE: &str = "a job past its time is gone, and stays so";
const PURGED: &str = "a purge cancels what waits, and nothing else";
const COUNTED: &str = "counters never go back";
const HEALTHY: &str = "health agrees with what is known";
const HOOK_MADE: &str = "a webhook is called until it is accepted or out of attempts";
const HOOK_PACED: &str = "a webhook is not called too soon, too often, or after it was accepted";
const LIMITED: &str = "no more requests pass than the limit";
const FROM_HOLDER: &str = "progress and chunks come from who holds the job";
const DRAINED_ONCE: &str = "a drained chunk does not come again";
const FOLLOWED: &str = "who follows a job gets every chunk once, in order, and then its end";
const TIMED_OUT: &str = "no job runs past its execution timeout";
const LEASE_ENDS: &str = "a job does not stay with a worker that is gone";
const WOKEN: &str = "who waits for a job's end is told soon";
const WORKERS_SPARED: &str = "the server ends no worker that does its work";
const OLD_WORKERS_LEFT: &str = "a worker of an old version gets no more jobs";
const FLEET_BOUNDED: &str = "there are no more workers than allowed";
const SILENT_ENDED: &str = "at rest no silent worker is kept";
const ALL_END: &str = "at rest every job has ended";
const DAMAGE_TOLD: &str = "what is damaged is answered as damaged, and nothing else is";
const FLEET_AT_MINIMUM: &str = "at rest the fleet is at its minimum";

/// The promises that each mistake breaks. Another broken promise does not count as a find. A missing mistake cannot
/// be observed by clients, workers or receivers: no promise covers it.
const BREAKS: &[(Bug, &[&str])] = &[
    (Bug::BodyNotCompared, &[ONE_JOB_PER_KEY]),
    (Bug::KeysNotLoaded, &[ONE_JOB_PER_KEY]),
    (Bug::DrainedWorkerTakes, &[OLD_WORKERS_LEFT]),
    (Bug::RequeuedAtBack, &[IN_ORDER]),
    (Bug::RetryCountedTwice, &[RETRIES_COUNTED]),
    (Bug::OneRunTooMany, &[RETRIES_COUNTED]),
    (Bug::LostAnswerCounted, &[RETRIES_COUNTED]),
    (Bug::DroppedInBatches, &[FAILS_ALONE]),
    (Bug::ReadErrorCounted, &[RETRIES_COUNTED, CAUSED]),
    (Bug::LeaseNotLoaded, &[LEASE_ENDS]),
    (Bug::HungWorkerKept, &[SILENT_ENDED]),
    (Bug::UntakenResultAccepted, &[CAUSED]),
    (Bug::ResultAfterCancel, &[ENDS_ONCE]),
    (Bug::CancelAfterResult, &[ENDS_ONCE]),
    (Bug::TimeoutFromSubmit, &[CAUSED]),
    (Bug::TimeoutNotLoaded, &[TIMED_OUT]),
    (Bug::TtlRestarts, &[GONE]),
    (Bug::TtlNotRenewed, &[KEPT]),
    (Bug::TtlIgnored, &[GONE]),
    (Bug::OutcomeNotCleared, &[CAUSED, FROM_HOLDER]),
    (Bug::StreamNotReset, &[FROM_HOLDER]),
    (Bug::PurgeHitsNewJobs, &[PURGED, HANDED_OUT]),
    (Bug::ChunksOfLostAttempt, &[FROM_HOLDER]),
    (Bug::DrainedTwice, &[DRAINED_ONCE]),
    (Bug::ResumeSkipsOne, &[FOLLOWED]),
    (Bug::ResumeRepeatsOne, &[FOLLOWED]),
    (Bug::EndBeforeChunks, &[FOLLOWED]),
    (Bug::ReplyBeforeCommit, &[KEPT, CAUSED, ENDS_ONCE, HANDED_OUT]),
    (Bug::FailedCommitForgotten, &[KEPT, CAUSED, ENDS_ONCE, HANDED_OUT]),
    (Bug::CountersNotKept, &[COUNTED, HEALTHY]),
    (Bug::InputDeletedAtEnd, &[HOOK_MADE, ALL_END]),
    (Bug::OutputSwept, &[HOOK_MADE, ALL_END]),
    (Bug::WaitNotWoken, &[WOKEN]),
    (Bug::HookNotKept, &[HOOK_MADE]),
    (Bug::HookNotSettled, &[HOOK_PACED]),
    (Bug::HookWithoutEnd, &[HOOK_PACED]),
    (Bug::HookAtOnce, &[HOOK_PACED]),
    (Bug::AdoptedForgotten, &[FLEET_AT_MINIMUM]),
    (Bug::OneIdleKept, &[FLEET_AT_MINIMUM]),
    (Bug::DrainKills, &[WORKERS_SPARED]),
    (Bug::TooManyWorkers, &[FLEET_BOUNDED]),
    (Bug::RateOneTooMany, &[LIMITED]),
    (Bug::DamagedOutputServed, &[DAMAGE_TOLD]),
    (Bug::DamagedOutputOmitted, &[DAMAGE_TOLD]),
    (Bug::DamagedChunkOmitted, &[DAMAGE_TOLD]),
    (Bug::ReadErrorCalledDamage, &[DAMAGE_TOLD]),
];

/// The result of a hunt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunt {
    /// The mistake that was planted.
    pub bug: Bug,
    /// Worlds that were run.
    pub worlds: u64,
    /// Most worlds that the hunt may run.
    pub budget: u64,
    /// The broken promise that revealed the mistake; `None` if none did.
    pub found: Option<Violation>,
}

/// Most worlds of a hunt for `bug`.
pub fn budget(bug: Bug) -> u64 {
    BUDGETS.iter().find(|(of, _)| *of == bug).map_or(WORLDS, |(_, worlds)| *worlds)
}

/// Rates of faults in the worlds of a hunt, independent of their seeds.
pub fn rates(bug: Bug) -> &'static [(Fault, f64)] {
    RATES.iter().find(|(of, _)| *of == bug).map_or(&[], |(_, rates)| rates)
}

/// Runs worlds with this mistake until one reveals it.
pub fn hunt(bug: Bug, first_seed: u64, budget: u64, steps: u64) -> Hunt {
    plant(Some(bug));
    let mut hunt = Hunt { bug, worlds: 0, budget, found: None };
    while hunt.found.is_none() && hunt.worlds < budget {
        let seed = first_seed.wrapping_add(hunt.worlds);
        let outcome = run::run_world_with(rates(bug), seed, steps, false);
        hunt.worlds += 1;
        let shows = |violation: &Violation| breaks(bug).contains(&violation.promise);
        hunt.found = outcome.violations.into_iter().find(shows).filter(|_| is_clean(bug, seed, steps));
        plant(Some(bug));
    }
    plant(None);
    hunt
}

/// The promises that a mistake breaks; empty if no promise covers it.
pub fn breaks(bug: Bug) -> &'static [&'static str] {
    BREAKS.iter().find(|(of, _)| *of == bug).map_or(&[], |(_, promises)| promises)
}

/// Whether the world breaks no promise without the mistake. Only then the mistake caused what the world shows.
fn is_clean(bug: Bug, seed: u64, steps: u64) -> bool {
    plant(None);
    run::run_world_with(rates(bug), seed, steps, false).violations.is_empty()
}

/// Hunts for every mistake that breaks a promise, on all cores. Returns the results in the order of the list.
pub fn hunt_all(steps: u64, ended: impl Fn(&Hunt) + Sync) -> Vec<Hunt> {
    let waiting = Mutex::new(BREAKS.iter().map(|(bug, _)| *bug));
    let hunts = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(bug) = next else { return };
            let hunt = hunt(bug, 0, budget(bug), steps);
            ended(&hunt);
            hunts.lock().unwrap_or_else(PoisonError::into_inner).push(hunt);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut hunts = hunts.into_inner().unwrap_or_else(PoisonError::into_inner);
    hunts.sort_by_key(|hunt| hunt.bug);
    hunts
}
