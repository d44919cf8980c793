//! Checks the simulator itself: searches for mistakes that are planted in the server.
//!
//! Each mistake has a budget of worlds, several times what was needed when it was set. The worlds are always the
//! same, so a hunt ends in the same world until the server or the simulator changes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use longshore_planted::{Bug, plant};

use crate::auditor::{Promise, Violation};
use crate::faults::Fault;
use crate::run::{self, WorldKind};

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
    (Bug::NoFence, 40),
    (Bug::LeaseNotChecked, 60),
    (Bug::AnswerBeforeFlush, 120),
    (Bug::NewIdOnRepeat, 60),
    (Bug::ChunkPostRepeated, 60),
    (Bug::TimeoutIsDeath, 150),
    (Bug::EpochReused, 150),
    (Bug::CatalogAnsweredEarly, 150),
    (Bug::ReloadUnderOldEpoch, 150),
];

/// Seeds at which hunts begin that need several worlds otherwise. The worlds before them showed nothing when this was written.
const FIRST_SEEDS: &[(Bug, u64)] = &[
    (Bug::KeysNotLoaded, 5),
    (Bug::DrainedWorkerTakes, 25),
    (Bug::OneRunTooMany, 2),
    (Bug::LostAnswerCounted, 4),
    (Bug::LeaseNotLoaded, 35),
    (Bug::UntakenResultAccepted, 26),
    (Bug::ResultAfterCancel, 2),
    (Bug::TimeoutNotLoaded, 3),
    (Bug::OutcomeNotCleared, 8),
    (Bug::StreamNotReset, 9),
    (Bug::PurgeHitsNewJobs, 171),
    (Bug::ChunksOfLostAttempt, 14),
    (Bug::DrainedTwice, 11),
    (Bug::ResumeSkipsOne, 14),
    (Bug::ResumeRepeatsOne, 3),
    (Bug::EndBeforeChunks, 3),
    (Bug::OutputSwept, 3),
    (Bug::WaitNotWoken, 2),
    (Bug::HookNotKept, 3),
    (Bug::HookNotSettled, 12),
    (Bug::HookWithoutEnd, 17),
    (Bug::DrainKills, 44),
    (Bug::RateOneTooMany, 22),
    (Bug::DamagedOutputServed, 4),
    (Bug::DamagedOutputOmitted, 3),
    (Bug::DamagedChunkOmitted, 3),
    (Bug::NoFence, 3),
    (Bug::AnswerBeforeFlush, 10),
    (Bug::TimeoutIsDeath, 6),
    (Bug::EpochReused, 6),
    (Bug::FailedCommitForgotten, 2),
    (Bug::CatalogAnsweredEarly, 4),
    (Bug::ReloadUnderOldEpoch, 79),
];

/// Kills are the server's only faults, and some jobs run until after them.
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
/// Owners of a cluster are suspended.
const PAUSES: &[(Fault, f64)] = &[(Fault::NodePaused, 0.8), (Fault::ServerKilled, 0.000_1)];
/// Owners of a cluster are killed.
const LOSSES: &[(Fault, f64)] = &[(Fault::ServerKilled, 0.000_3)];
/// The database of a cluster crashes, and is slow to have on its disk what it did.
const CRASHES: &[(Fault, f64)] =
    &[(Fault::DatabaseKilled, 0.5), (Fault::DatabaseTailLost, 0.9), (Fault::DatabaseSlow, 0.1)];
/// Connections between the nodes of a cluster break with responses on their way.
const PEER_LOSSES: &[(Fault, f64)] =
    &[(Fault::PeerAnswerLost, 0.05), (Fault::ServerKilled, 0.0), (Fault::NodePaused, 0.0)];
/// Connections to the database of a cluster break with statements on their way.
const CUTS: &[(Fault, f64)] =
    &[(Fault::DatabaseCut, 0.05), (Fault::ServerKilled, 0.0), (Fault::NodePaused, 0.0)];
/// As `CUTS`, and the database is slow.
const SLOW_CUTS: &[(Fault, f64)] = &[
    (Fault::DatabaseCut, 0.05),
    (Fault::DatabaseSlow, 0.05),
    (Fault::ServerKilled, 0.0),
    (Fault::NodePaused, 0.0),
];
/// Connections of owners break, and owners are killed.
const CUTS_AND_LOSSES: &[(Fault, f64)] = &[(Fault::DatabaseCut, 0.1), (Fault::ServerKilled, 0.000_2)];
/// Nodes of a cluster do not reach each other, and lose sessions.
const APART: &[(Fault, f64)] =
    &[(Fault::NodesApart, 0.9), (Fault::DatabaseSessionKilled, 0.9), (Fault::NodePaused, 0.0)];
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
    (Bug::NoFence, PAUSES),
    (Bug::LeaseNotChecked, PAUSES),
    (Bug::AnswerBeforeFlush, CRASHES),
    (Bug::NewIdOnRepeat, LOSSES),
    (Bug::ChunkPostRepeated, PEER_LOSSES),
    (Bug::TimeoutIsDeath, APART),
    (Bug::EpochReused, CUTS),
    (Bug::CatalogAnsweredEarly, CUTS_AND_LOSSES),
    (Bug::ReloadUnderOldEpoch, SLOW_CUTS),
    (Bug::DamagedOutputServed, DAMAGE),
    (Bug::DamagedOutputOmitted, DAMAGE),
    (Bug::DamagedChunkOmitted, DAMAGE),
];

/// The promises that a change breaks which is lost, or seen too late.
const LOST: &[Promise] = &[
    Promise::Kept,
    Promise::Caused,
    Promise::EndsOnce,
    Promise::DeliveredQueued,
    Promise::Listed,
    Promise::OneJobPerKey,
    Promise::WaitAnswered,
    Promise::AllEnd,
    Promise::RetriesCounted,
    Promise::FromHolder,
];

/// The promises that each mistake breaks. Another broken promise does not count as a find. A missing mistake cannot
/// be observed by clients, workers or receivers: no promise covers it.
const BREAKS: &[(Bug, &[Promise])] = &[
    (Bug::BodyNotCompared, &[Promise::OneJobPerKey]),
    (Bug::KeysNotLoaded, &[Promise::OneJobPerKey]),
    (Bug::DrainedWorkerTakes, &[Promise::OldWorkersLeft]),
    (Bug::RequeuedAtBack, &[Promise::InOrder]),
    (Bug::RetryCountedTwice, &[Promise::RetriesCounted]),
    (Bug::OneRunTooMany, &[Promise::RetriesCounted]),
    (Bug::LostAnswerCounted, &[Promise::RetriesCounted]),
    (Bug::DroppedInBatches, &[Promise::FailsAlone]),
    (Bug::ReadErrorCounted, &[Promise::RetriesCounted, Promise::Caused]),
    (Bug::LeaseNotLoaded, &[Promise::LeaseEnds]),
    (Bug::HungWorkerKept, &[Promise::SilentReplaced]),
    (Bug::UntakenResultAccepted, &[Promise::Caused]),
    (Bug::ResultAfterCancel, &[Promise::EndsOnce]),
    (Bug::CancelAfterResult, &[Promise::EndsOnce]),
    (Bug::TimeoutFromSubmit, &[Promise::Caused]),
    (Bug::TimeoutNotLoaded, &[Promise::TimedOut]),
    (Bug::TtlRestarts, &[Promise::Gone]),
    (Bug::TtlNotRenewed, &[Promise::Kept]),
    (Bug::TtlIgnored, &[Promise::Gone]),
    (Bug::OutcomeNotCleared, &[Promise::Caused, Promise::FromHolder]),
    (Bug::StreamNotReset, &[Promise::FromHolder]),
    (Bug::PurgeHitsNewJobs, &[Promise::Purged, Promise::DeliveredQueued]),
    (Bug::ChunksOfLostAttempt, &[Promise::FromHolder]),
    (Bug::DrainedTwice, &[Promise::ConsumedOnce]),
    (Bug::ResumeSkipsOne, &[Promise::Followed]),
    (Bug::ResumeRepeatsOne, &[Promise::Followed]),
    (Bug::EndBeforeChunks, &[Promise::Followed]),
    (Bug::ReplyBeforeCommit, &[Promise::Kept, Promise::Caused, Promise::EndsOnce, Promise::DeliveredQueued]),
    (
        Bug::FailedCommitForgotten,
        &[Promise::Kept, Promise::Caused, Promise::EndsOnce, Promise::DeliveredQueued],
    ),
    (Bug::CountersNotKept, &[Promise::Counted, Promise::Healthy]),
    (Bug::InputDeletedAtEnd, &[Promise::WebhookMade, Promise::AllEnd]),
    (Bug::OutputSwept, &[Promise::WebhookMade, Promise::AllEnd]),
    (Bug::WaitNotWoken, &[Promise::WaitAnswered]),
    (Bug::HookNotKept, &[Promise::WebhookMade]),
    (Bug::HookNotSettled, &[Promise::WebhookPaced]),
    (Bug::HookWithoutEnd, &[Promise::WebhookPaced]),
    (Bug::HookAtOnce, &[Promise::WebhookPaced]),
    (Bug::AdoptedForgotten, &[Promise::FleetAtMinimum]),
    (Bug::OneIdleKept, &[Promise::FleetAtMinimum]),
    (Bug::DrainKills, &[Promise::WorkersDrained]),
    (Bug::TooManyWorkers, &[Promise::FleetBounded]),
    (Bug::RateOneTooMany, &[Promise::Limited]),
    (Bug::DamagedOutputServed, &[Promise::DamageReported]),
    (Bug::DamagedOutputOmitted, &[Promise::DamageReported]),
    (Bug::DamagedChunkOmitted, &[Promise::DamageReported]),
    (Bug::ReadErrorCalledDamage, &[Promise::DamageReported]),
    (Bug::NoFence, LOST),
    (Bug::LeaseNotChecked, LOST),
    (Bug::AnswerBeforeFlush, LOST),
    (Bug::NewIdOnRepeat, &[Promise::DeliveredQueued, Promise::OneJobPerKey]),
    (Bug::ChunkPostRepeated, &[Promise::FromHolder, Promise::Followed, Promise::ConsumedOnce]),
    (Bug::TimeoutIsDeath, LOST),
    (Bug::EpochReused, LOST),
    (
        Bug::CatalogAnsweredEarly,
        &[Promise::Kept, Promise::Listed, Promise::EndpointGone, Promise::AllEnd, Promise::WebhookMade],
    ),
    (Bug::ReloadUnderOldEpoch, LOST),
];

/// Mistakes that only several nodes on one database can make.
const OF_CLUSTERS: &[Bug] = &[
    Bug::NoFence,
    Bug::LeaseNotChecked,
    Bug::AnswerBeforeFlush,
    Bug::NewIdOnRepeat,
    Bug::ChunkPostRepeated,
    Bug::TimeoutIsDeath,
    Bug::EpochReused,
    Bug::CatalogAnsweredEarly,
    Bug::ReloadUnderOldEpoch,
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

/// The seed of the first world of a hunt for `bug`, where the caller names none.
fn first_seed(bug: Bug) -> u64 {
    FIRST_SEEDS.iter().find(|(of, _)| *of == bug).map_or(0, |(_, seed)| *seed)
}

/// Rates of faults in the worlds of a hunt, independent of their seeds.
pub fn rates(bug: Bug) -> &'static [(Fault, f64)] {
    RATES.iter().find(|(of, _)| *of == bug).map_or(&[], |(_, rates)| rates)
}

/// The worlds in which a mistake can show.
pub fn kind(bug: Bug) -> WorldKind {
    if OF_CLUSTERS.contains(&bug) { WorldKind::Cluster } else { WorldKind::Server }
}

/// Runs worlds with this mistake until one reveals it.
pub fn hunt(bug: Bug, first_seed: u64, budget: u64, steps: u64) -> Hunt {
    plant(Some(bug));
    let mut hunt = Hunt { bug, worlds: 0, budget, found: None };
    while hunt.found.is_none() && hunt.worlds < budget {
        let seed = first_seed.wrapping_add(hunt.worlds);
        let outcome = run::run_world_of(kind(bug), rates(bug), seed, steps, false);
        hunt.worlds += 1;
        let shows =
            |violation: &Violation| breaks(bug).iter().any(|promise| promise.name() == violation.promise);
        hunt.found = outcome.violations.into_iter().find(shows).filter(|_| is_clean(bug, seed, steps));
        plant(Some(bug));
    }
    plant(None);
    hunt
}

/// The promises that a mistake breaks; empty if no promise covers it.
pub fn breaks(bug: Bug) -> &'static [Promise] {
    BREAKS.iter().find(|(of, _)| *of == bug).map_or(&[], |(_, promises)| promises)
}

/// Whether the world breaks no promise without the mistake. Only then the mistake caused what the world shows.
fn is_clean(bug: Bug, seed: u64, steps: u64) -> bool {
    plant(None);
    run::run_world_of(kind(bug), rates(bug), seed, steps, false).violations.is_empty()
}

/// Hunts for every mistake that breaks a promise, on all cores. Returns the results in the order of the list.
pub fn hunt_all(steps: u64, ended: impl Fn(&Hunt) + Sync) -> Vec<Hunt> {
    let waiting = Mutex::new(BREAKS.iter().map(|(bug, _)| *bug));
    let hunts = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(bug) = next else { return };
            let hunt = hunt(bug, first_seed(bug), budget(bug), steps);
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
