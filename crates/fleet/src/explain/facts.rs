//! The facts from which [`explain`](super::explain) decides. Each one is what another part published last.

use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{Endpoint, JobState, Millis, Provider, StartStage, WorkerId, WorkerPhase};

use super::work::Work;
use super::{FinishRate, StartTimes};
use crate::WorkerHealth;

/// What is known about an endpoint, and about one of its jobs.
#[derive(Clone, Debug)]
pub struct WaitFacts<'a> {
    /// The time of the question.
    pub now: Millis,
    /// When the server started: it does not know what was before.
    pub server_started_at: Millis,
    /// The present settings of the endpoint.
    pub endpoint: &'a Endpoint,
    /// The change that set `workersMax` to 0, or the creation with it; `None` if it is not 0 or the change is not kept.
    pub pause: Option<PauseFacts>,
    /// Why the store cannot write; `None` if its last commit succeeded.
    pub store_fault: Option<StoreFault>,
    /// Since when the server drains; `None` if it does not.
    pub draining_since: Option<Millis>,
    /// The endpoint's queue; `None` if it does not answer, because the store is failing.
    pub queue: Option<WaitingQueue>,
    /// The status of the supervisor; the default if no launcher runs the endpoint's workers.
    pub fleet: FleetFacts,
    /// Why the server cannot start workers of the endpoint's provider; `None` if it can.
    pub provider_fault: Option<ProviderFault>,
    /// Why a worker gets no GPUs; `None` if none is held back.
    pub gpus: Option<GpuShortage>,
    /// Why there is no room for a worker, its GPUs left aside; `None` if no worker is held back for that.
    pub no_room: Option<String>,
    /// What the oldest starting worker does; `None` if none starts or it does not say.
    pub stage: Option<StartStage>,
    /// How many jobs ended lately.
    pub finishes: FinishRate,
    /// The workers of a load-balancing endpoint that are not drained; empty for one with a queue.
    pub servers: Vec<ServerHealth>,
    /// How long jobs run at the present version and ran at the one before; `None` without enough jobs of both.
    pub runs: Option<VersionRunTimes>,
}

impl WaitFacts<'_> {
    /// What the endpoint's clients send.
    pub(super) fn work(&self) -> Work {
        if self.endpoint.balances().is_some() { Work::Requests } else { Work::Jobs }
    }

    /// The job that is asked about.
    pub(super) fn job(&self) -> Option<&WaitingJob> {
        self.queue.as_ref()?.job.as_ref()
    }

    /// Whether the job is queued; without a job, whether any job is. True if the queue does not answer.
    pub(super) fn waits(&self) -> bool {
        self.queue.as_ref().is_none_or(|queue| match &queue.job {
            Some(job) => job.state == JobState::InQueue,
            None => queue.queued > 0,
        })
    }

    /// [`Explanation::waiting_ms`](super::Explanation::waiting_ms).
    pub(super) fn waiting_ms(&self) -> Option<u64> {
        let since = match self.job() {
            Some(job) => Some(job.enqueued_at).filter(|_| job.state == JobState::InQueue),
            None => self.queue.as_ref()?.oldest_normal_since,
        };
        since.map(|since| self.now.since(since))
    }

    /// The number of queued jobs before the job; 0 without a job.
    pub(super) fn ahead(&self) -> u64 {
        self.queue.as_ref().and_then(|queue| queue.position).map_or(0, |position| position.saturating_sub(1))
    }

    /// Whether external workers alone run the endpoint's jobs.
    pub(super) fn is_external(&self) -> bool {
        self.endpoint.provider == Provider::External
    }

    /// The workers in this phase, as the queue knows them.
    pub(super) fn in_phase(&self, phase: WorkerPhase) -> impl Iterator<Item = &WorkerContact> {
        let workers = self.queue.as_ref().map_or(&[][..], |queue| &queue.workers);
        workers.iter().filter(move |worker| worker.phase == phase)
    }

    /// The number of workers that have sent a take and get jobs.
    pub(super) fn up(&self) -> u32 {
        (self.in_phase(WorkerPhase::Idle).count() + self.in_phase(WorkerPhase::Running).count()) as u32
    }

    /// Whether a worker is ready and asks for a job at this moment: it takes the job within milliseconds.
    pub(super) fn is_asked_for(&self) -> bool {
        self.in_phase(WorkerPhase::Idle).any(|worker| worker.silent_ms.is_none())
    }

    /// The managed workers that have sent no take and are not being ended.
    pub(super) fn starting(&self) -> impl Iterator<Item = &ManagedWorker> {
        self.fleet.workers.iter().filter(|worker| !worker.is_ready && !worker.is_leaving)
    }

    /// How many more managed workers `workersMax` allows. Workers that are being ended count until their exit.
    pub(super) fn room(&self) -> u32 {
        self.endpoint.workers_max.saturating_sub(self.fleet.workers.len() as u32)
    }
}

/// How long the jobs of two versions ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRunTimes {
    /// When the first job of the present version ended.
    pub since: Millis,
    /// The version of the endpoint at present.
    pub present: RunTimes,
    /// The version before it.
    pub before: RunTimes,
}

/// How long the last jobs of one version ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// The version at which they ran.
    pub version: u32,
    /// The number of jobs that the time is of.
    pub jobs: u32,
    /// The median, in ms.
    pub p50_ms: u64,
}

/// Why the server cannot start workers of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderFault {
    /// What the provider said.
    pub reason: String,
    /// When the first try failed.
    pub since: Millis,
}

/// The failure of the store's last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFault {
    /// Why the commit failed.
    pub error: String,
    /// When the first commit of the failure failed.
    pub since: Millis,
}

/// What the queue of the endpoint says.
#[derive(Clone, Debug, Default)]
pub struct WaitingQueue {
    /// The job; `None` if the question is about the endpoint.
    pub job: Option<WaitingJob>,
    /// The job's position, 1 is next; `None` without a queued job.
    pub position: Option<u64>,
    /// The number of queued jobs.
    pub queued: u64,
    /// The number of queued jobs that are not of low priority.
    pub queued_normal: u64,
    /// The number of running jobs.
    pub running: u64,
    /// When the job that waits longest entered the queue, of those that are not of low priority.
    pub oldest_normal_since: Option<Millis>,
    /// The largest number of queued jobs.
    pub jobs_max: u64,
    /// Every worker that the queue knows.
    pub workers: Vec<WorkerContact>,
    /// When a worker last asked for a job; `None` if none did since the server started.
    pub last_take_at: Option<Millis>,
}

/// A job, as its queue knows it.
#[derive(Clone, Debug)]
pub struct WaitingJob {
    /// The state of the job.
    pub state: JobState,
    /// Whether the job causes no worker to start.
    pub low_priority: bool,
    /// When the job last entered the queue.
    pub enqueued_at: Millis,
    /// When its present or last worker took the job; 0 before.
    pub started_at: Millis,
    /// When the job ended; 0 before.
    pub finished_at: Millis,
    /// When the job is deleted.
    pub delete_at: Millis,
    /// Its automatic retries so far.
    pub retries: u8,
    /// Why the job was put back into the queue; `None` if it was not, or that is no longer known.
    pub requeue: Option<Requeue>,
    /// Until when it is given to no worker, because its input could not be read, in the engine's time. `None`: to the next one.
    pub deferred_until: Option<Millis>,
}

/// Why a job was put back into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// When the job was put back, in the engine's time.
    pub at: Millis,
    /// The reason: how the worker ended, or what its handler reported. At most some hundred bytes.
    pub reason: String,
}

/// One worker, as the queue knows it.
#[derive(Clone, Debug)]
pub struct WorkerContact {
    /// The phase of the worker.
    pub phase: WorkerPhase,
    /// For how long the worker has not asked for a job, in ms; `None` if a request of it is open.
    pub silent_ms: Option<u64>,
}

/// A worker that serves HTTP, by its health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// The health by the last checks.
    pub health: WorkerHealth,
    /// The result of the last check, such as `GET /ping: 200 OK`. At most some hundred bytes.
    pub last_check: String,
    /// Since when each check has had an answer that says neither "healthy" nor "not yet", such as 404; `None` if the last
    /// one had another answer or none.
    pub rejecting_since: Option<Millis>,
}

/// What the supervisor of the endpoint published last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetFacts {
    /// The managed workers, also those that are being started or ended. A worker whose machine is away is not among them.
    pub workers: Vec<ManagedWorker>,
    /// The last crash; `None` once a worker has shown that the command works.
    pub crash: Option<CrashFacts>,
    /// Since when a worker waits for GPUs; `None` if none does.
    pub throttled_since: Option<Millis>,
    /// How long starts took.
    pub starts: StartTimes,
}

impl FleetFacts {
    /// A managed worker; `None` also if its machine is away.
    pub fn worker(&self, id: &WorkerId) -> Option<&ManagedWorker> {
        self.workers.iter().find(|worker| worker.id == *id)
    }
}

/// A worker that a launcher runs, as the supervisor knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedWorker {
    /// The worker's id, as in [`WorkerId`].
    pub id: WorkerId,
    /// The endpoint's version that the worker was started for.
    pub version: u32,
    /// When the worker was started; 0 if unknown.
    pub started_at: Millis,
    /// The worker has sent a take.
    pub is_ready: bool,
    /// The worker gets no more jobs, and ends after its last one.
    pub is_leaving: bool,
    /// The worker ran a job when the supervisor last looked.
    pub is_busy: bool,
    /// When the idle worker ends if it gets no job before; `None` if it is busy or is to stay.
    pub idle_end_at: Option<Millis>,
}

/// Consecutive crashes, and the last one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashFacts {
    /// How the last one happened.
    pub kind: CrashKind,
    /// The worker of the last one; `None` if it got no id.
    pub worker: Option<WorkerId>,
    /// How long that worker ran, in ms.
    pub lived_ms: u64,
    /// The number of consecutive crashes, at least 1.
    pub count: u32,
    /// When the first of them happened.
    pub first_at: Millis,
    /// When the last one happened.
    pub last_at: Millis,
    /// The earliest time of the next start.
    pub next_try_at: Millis,
    /// The last lines of the worker's log; empty if there are none.
    pub log_tail: String,
}

/// How a worker crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The launcher could not start the worker, for this reason.
    NotStarted(String),
    /// The worker exited while it made its Python environment.
    NoEnvironment,
    /// The worker asked for no job within `startPatienceMs`, this number of ms, and was ended.
    NeverReady(u64),
    /// The worker exited by itself or was killed.
    Exited {
        /// Its exit code; `None` after a signal.
        code: Option<i32>,
        /// The signal that ended it; `None` if none did.
        signal: Option<i32>,
        /// A further cause, such as `killed: out of memory`; `None` if unknown.
        because: Option<String>,
        /// Whether the worker had asked for a job before.
        was_ready: bool,
    },
}

/// Why a worker gets no GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuShortage {
    /// There are enough of the GPUs, and too few of them can be used now.
    Sick {
        /// What a worker needs, such as `4 × H100`.
        need: String,
        /// What there is, such as `4 × H100 (4 sick)`.
        stock: String,
        /// Why one of them cannot be used.
        reason: String,
    },
    /// No machine has such GPUs.
    Impossible {
        /// What a worker needs, such as `4 × H100`.
        need: String,
        /// What there is, such as `2 × H100, 1 × L4`.
        stock: String,
    },
    /// Too few GPUs are free.
    Busy {
        /// What a worker needs.
        need: String,
        /// The number of free GPUs of the accepted types.
        free: u32,
        /// The number of GPUs of the accepted types.
        total: u32,
        /// The endpoints whose workers have these GPUs.
        holders: Vec<GpuHolder>,
        /// The endpoints that wait before this one, by name; `None` for one that the reader may not see.
        before: Vec<Option<String>>,
    },
    /// Enough GPUs are free, and kept for an endpoint that waits longer.
    Kept {
        /// What a worker needs.
        need: String,
        /// The name of that endpoint; `None` if the reader may not see it.
        keeper: Option<String>,
        /// How many GPUs a worker of that endpoint needs.
        keeper_needs: u32,
        /// When the GPUs are no longer kept; `None` if that is not decided.
        until: Option<Millis>,
    },
}

/// An endpoint whose workers have GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuHolder {
    /// The endpoint's name; `None` if the reader may not see it.
    pub name: Option<String>,
    /// The number of its workers with such GPUs.
    pub workers: u32,
    /// The number of these that run a job.
    pub busy: u32,
    /// When the first idle one of them ends if it gets no job before; `None` if none is to end.
    pub idle_end_at: Option<Millis>,
}

/// The change that paused an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseFacts {
    /// When it was made.
    pub at: Millis,
    /// The name of the key that made it, or the id of a key that is deleted; `None` if it is unknown or the reader may not
    /// see it.
    pub by: Option<String>,
}
