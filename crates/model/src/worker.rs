//! The phases of a worker, and the numbers of workers in them.

/// The phase of a worker, as its queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerPhase {
    /// The worker has sent no take yet.
    Initializing,
    /// The worker has sent a take and runs no job.
    Idle,
    /// The worker runs at least one job.
    Running,
    /// The worker gets no new jobs, and exits after its last job.
    Draining,
}

/// What happens to a worker between the begin of its start and its first take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStage {
    /// The launcher fetches the image of the worker.
    Pulling {
        /// The bytes that have arrived.
        done_bytes: u64,
        /// The size of all parts whose size is known; 0 if none is.
        total_bytes: u64,
    },
    /// The launcher creates the container of the worker.
    Creating,
    /// The launcher starts the container. From here on, the wait for the first take counts.
    Starting,
    /// The worker creates the Python environment of deployed code, or waits for another worker that does.
    Environment,
    /// The worker installs packages into the environment.
    Packages,
    /// The worker runs its own program, which has not asked for a job yet.
    Loading,
}

impl StartStage {
    /// The variable that names the file in which the runner of deployed code writes its stage. Handlers do not get it.
    pub const FILE_VARIABLE: &str = "LONGSHORE_STAGE_FILE";

    /// The stages that a worker itself reports, in order.
    pub const REPORTED: [Self; 3] = [Self::Environment, Self::Packages, Self::Loading];

    /// The stage's name in files and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pulling { .. } => "pulling",
            Self::Creating => "creating",
            Self::Starting => "starting",
            Self::Environment => "environment",
            Self::Packages => "packages",
            Self::Loading => "loading",
        }
    }

    /// The stage with this name that a worker reported; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::REPORTED.into_iter().find(|stage| stage.as_str() == text)
    }
}

/// The numbers of workers by condition: the six fields of `/health`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Workers that run no job and send takes.
    pub idle: u32,
    /// Workers that have sent no take yet.
    pub initializing: u32,
    /// Workers that can take a job immediately: idle and not draining.
    pub ready: u32,
    /// Workers that run at least one job.
    pub running: u32,
    /// Wanted workers for which no GPUs are free.
    pub throttled: u32,
    /// Wanted workers that are not started yet because earlier ones crashed.
    pub unhealthy: u32,
}
