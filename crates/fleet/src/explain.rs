//! Why a job waits: the facts about an endpoint go in, the causes come out.
//!
//! Pure. The engine collects [`WaitFacts`] from what other parts publish, and [`explain`] decides. The console, metrics
//! and alerts use the same decision. [`decide`] has the order of the causes, [`sentences`] every text for people.

mod attention;
mod decide;
mod estimate;
mod facts;
mod sentences;
#[cfg(test)]
mod tests;
mod words;
mod work;

use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{JobState, Millis};

pub use attention::{Severity, problem};
pub use estimate::{FinishRate, StartTimes, finish_ms};
pub use facts::{
    CrashFacts, CrashKind, FleetFacts, GpuHolder, GpuShortage, ManagedWorker, PauseFacts, ProviderFault,
    Requeue, RunTimes, ServerHealth, StoreFault, VersionRunTimes, WaitFacts, WaitingJob, WaitingQueue,
    WorkerContact,
};

/// Why a job or an endpoint waits, worst cause first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The state of the job; `None` without a job, and if its queue does not answer.
    pub state: Option<JobState>,
    /// How long the job waits, in ms; without a job, the oldest one that is not of low priority. `None` if none waits.
    pub waiting_ms: Option<u64>,
    /// The job's position, 1 is next; `None` without a queued job.
    pub position: Option<u64>,
    /// The number of queued jobs of the endpoint; `None` if its queue does not answer.
    pub queued: Option<u64>,
    /// When the job starts, probably. `None` while a cause is blocking, and without enough measurements.
    pub estimate: Option<WaitEstimate>,
    /// The first cause that holds.
    pub cause: WaitCause,
    /// The other causes that hold, in their order, and what else is worth knowing.
    pub also: Vec<WaitCause>,
}

/// The time until a job starts, in ms from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEstimate {
    /// The job hardly starts earlier.
    pub min_ms: u64,
    /// The job hardly starts later. At least `min_ms`.
    pub max_ms: u64,
}

/// One reason for which a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitCause {
    /// The reason as a word.
    pub code: CauseCode,
    /// Since when it holds; `None` if that is unknown.
    pub since: Option<Millis>,
    /// The reason in a few words, without a full stop.
    pub title: String,
    /// The reason in sentences, with its numbers.
    pub text: String,
    /// The numbers and names of the text, under the names of the API.
    pub details: Vec<(&'static str, CauseDetail)>,
    /// The last lines of a worker's log, if they show the reason.
    pub log_tail: Vec<String>,
    /// What a person can do, the best first.
    pub actions: Vec<WaitAction>,
}

/// A value of [`WaitCause::details`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseDetail {
    /// A whole number, such as a count or milliseconds.
    Number(i64),
    /// A name or a text.
    Text(String),
    /// A point in time.
    Time(Millis),
    /// There is no value.
    Absent,
}

/// The reasons for which a job waits, in the order in which they are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseCode {
    /// The job runs or has ended, or no job of the endpoint is queued.
    NotWaiting,
    /// The server cannot write to its disk.
    StoreFailing,
    /// The server drains: it hands out no job.
    Draining,
    /// The endpoint's `workersMax` is 0.
    Paused,
    /// The server cannot start workers of the endpoint's provider, for example because no Docker daemon answers.
    ProviderUnavailable,
    /// No machine has the GPUs that a worker needs.
    GpuImpossible,
    /// A worker cannot be started, or does not ask for a job after its start.
    StartFailed,
    /// Workers exit before they are ready, or while they run jobs.
    WorkersCrash,
    /// Workers of a load-balancing endpoint run, and their health checks fail.
    WorkersUnhealthy,
    /// The endpoint has external workers, and none asks for jobs.
    NoExternalWorker,
    /// The GPUs that a worker needs are in use.
    GpuBusy,
    /// GPUs are free, and kept for another endpoint.
    GpuKept,
    /// The memory or the processors that a worker needs are promised to others, or there may be no more workers.
    MachineFull,
    /// A worker is starting.
    WorkerStarting,
    /// Workers are ready and do not ask for jobs.
    WorkerSilent,
    /// Every worker is busy, and there can be no more.
    AllBusy,
    /// Only jobs of low priority wait.
    LowPriority,
    /// The scaler adds a worker later.
    ScalerWaits,
    /// Workers of an older version have to end first.
    VersionChange,
    /// The job is tried again.
    Retrying,
    /// Other jobs are before this one.
    InLine,
    /// The job's ttl ends before the job is likely to start.
    TtlNear,
    /// The queue accepts no more jobs.
    QueueFull,
    /// Jobs run longer than at the version before.
    SlowSinceVersion,
}

impl CauseCode {
    /// The code in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotWaiting => "not_waiting",
            Self::StoreFailing => "store_failing",
            Self::Draining => "draining",
            Self::Paused => "paused",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::GpuImpossible => "gpu_impossible",
            Self::StartFailed => "start_failed",
            Self::WorkersCrash => "workers_crash",
            Self::WorkersUnhealthy => "workers_unhealthy",
            Self::NoExternalWorker => "no_external_worker",
            Self::GpuBusy => "gpu_busy",
            Self::GpuKept => "gpu_kept",
            Self::MachineFull => "machine_full",
            Self::WorkerStarting => "worker_starting",
            Self::WorkerSilent => "worker_silent",
            Self::AllBusy => "all_busy",
            Self::LowPriority => "low_priority",
            Self::ScalerWaits => "scaler_waits",
            Self::VersionChange => "version_change",
            Self::Retrying => "retrying",
            Self::InLine => "in_line",
            Self::TtlNear => "ttl_near",
            Self::QueueFull => "queue_full",
            Self::SlowSinceVersion => "slow_since_version",
        }
    }

    fn is_crash(self) -> bool {
        matches!(self, Self::StartFailed | Self::WorkersCrash)
    }

    /// Whether no job starts before a cause with this code is removed, unless [`WaitCause::is_blocking`] knows of others.
    fn is_blocking(self) -> bool {
        (Self::StoreFailing..=Self::NoExternalWorker).contains(&self)
    }
}

/// Something that a person can do about a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitAction {
    /// Set `workersMax` to its value before the pause.
    Resume,
    /// Change `gpuTypeIds` or `gpuCount`.
    ChangeGpus,
    /// Start a worker now instead of after the wait that follows a crash.
    TryNow,
    /// Read the log of the worker in `details`.
    OpenLog,
    /// Read how to start an external worker.
    ShowCommand,
    /// Increase `workersMax` of the endpoint.
    RaiseWorkersMax,
}

impl WaitAction {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::ChangeGpus => "changeGpus",
            Self::TryNow => "tryNow",
            Self::OpenLog => "openLog",
            Self::ShowCommand => "showCommand",
            Self::RaiseWorkersMax => "raiseWorkersMax",
        }
    }

    /// The text of a button.
    pub fn title(self) -> &'static str {
        sentences::action(self)
    }
}

/// The detail of what keeps only further workers from starting: the number of those that are ready.
const WORKERS_UP: &str = "workersUp";
/// The detail of a start that failed because it took too long, and of one that may.
const START_PATIENCE_MS: &str = "startPatienceMs";

impl WaitCause {
    /// Whether no job starts before the cause is removed.
    pub fn is_blocking(&self) -> bool {
        self.code.is_blocking() && !self.is_beside_others()
    }

    /// Whether this is a start that may hang: it lasts unusually long.
    fn is_late_start(&self) -> bool {
        self.code == CauseCode::WorkerStarting && self.has(START_PATIENCE_MS)
    }

    /// Whether the cause keeps only further workers from starting, while others run jobs.
    fn is_beside_others(&self) -> bool {
        self.has(WORKERS_UP)
    }

    fn has(&self, detail: &str) -> bool {
        let is_there =
            |(name, value): &(&str, CauseDetail)| *name == detail && !matches!(value, CauseDetail::Absent);
        self.details.iter().any(is_there)
    }
}

/// The text of [`CauseCode::GpuImpossible`]: what a worker needs, such as `4 × H100`, and what there is.
pub fn impossible_gpus(need: &str, stock: &str) -> String {
    sentences::gpu_impossible(need, stock).text
}

/// Decides why a job or an endpoint waits.
pub fn explain(facts: &WaitFacts<'_>) -> Explanation {
    let mut causes = decide::causes(facts);
    let is_blocked = causes.iter().any(WaitCause::is_blocking);
    let estimate = if is_blocked { None } else { estimate::estimate(facts) };
    let cause = causes.remove(0);
    if cause.code == CauseCode::NotWaiting {
        // Of an endpoint without queued jobs it is still worth knowing what would block or delay the next one.
        let matters = |other: &WaitCause| other.is_blocking() || other.is_late_start();
        causes.retain(|other| facts.job().is_none() && matters(other));
    } else {
        causes.extend(decide::remarks(facts, estimate));
    }
    let queue = facts.queue.as_ref();
    Explanation {
        state: facts.job().map(|job| job.state),
        waiting_ms: facts.waiting_ms(),
        position: queue.and_then(|queue| queue.position),
        queued: queue.map(|queue| queue.queued),
        estimate,
        cause,
        also: causes,
    }
}
