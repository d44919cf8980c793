//! The kinds of faults, their rates, and how often each was injected.
//!
//! Every world draws its own rates (swarm testing): about half of the kinds never occur in a world, so that the
//! others meet long stretches of otherwise healthy operation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;

/// Defines the kinds of faults, each with its largest rate per opportunity.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $rate_max:expr,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// Every kind, in the order of definition.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            const RATES_MAX: &[f64] = &[$($rate_max,)*];
        }
    };
}

faults! {
    /// A request never reaches the server.
    RequestLost = 0.05,
    /// The server sends a response that is lost.
    AnswerLost = 0.05,
    /// A request or response is delayed by up to 20 s.
    NetworkSlow = 0.1,
    /// The client or worker disconnects before the response.
    HangUp = 0.05,
    /// The server is killed between two steps of any of its tasks. Rate per step.
    ServerKilled = 0.000_5,
    /// The server is stopped in order and started again.
    ServerRestarted = 0.2,
    /// A batch is not written.
    CommitFailed = 0.05,
    /// A batch is written, but its writer gets an error.
    CommitUnsure = 0.02,
    /// A batch is slow.
    CommitSlow = 0.1,
    /// The disk is full for up to 60 s.
    DiskFull = 0.005,
    /// A read of rows or files fails.
    ReadFailed = 0.01,
    /// A payload file is not written, or not deleted.
    BlobFailed = 0.05,
    /// Unsynced data is lost when the server dies.
    TailLost = 0.9,
    /// A part of the unsynced data is lost when the server dies.
    TailTorn = 0.9,
    /// The wall clock jumps forward.
    ClockForward = 0.3,
    /// The wall clock jumps back.
    ClockBack = 0.3,
    /// A worker is not started.
    LaunchFailed = 0.2,
    /// A worker process dies.
    WorkerDies = 0.05,
    /// A worker hangs: it sends no take, ping or report.
    WorkerHangs = 0.03,
    /// A worker is suspended for up to 90 s and then continues.
    WorkerPaused = 0.08,
    /// A handler reports an error.
    HandlerFails = 0.3,
    /// A handler ignores the stop signal.
    HandlerDeaf = 0.3,
    /// A worker posts a result twice.
    ResultTwice = 0.1,
    /// A worker posts a result for a job that it has released or never had.
    ResultForeign = 0.4,
    /// A ping lists jobs that ended long ago, or omits the running ones.
    PingStale = 0.05,
    /// A receiver answers a webhook call with an error.
    ReceiverFails = 0.5,
    /// A receiver takes longer than the call's timeout.
    ReceiverSlow = 0.2,
    /// A receiver is unreachable for up to 2 min.
    ReceiverDown = 0.2,
    /// A handler never ends although its worker is healthy. Only in worlds that set its rate.
    HandlerStuck = 0.0,
    /// A submitted job makes the whole take response unreadable for workers.
    JobUnreadable = 0.0,
    /// Nothing can be read from the disk for up to 60 s.
    DiskUnreadable = 0.0,
    /// A job's input is damaged or lost.
    InputDamaged = 0.0,
    /// A job's output, error or progress value is damaged or lost.
    OutputDamaged = 0.0,
    /// A chunk of a job's stream is damaged.
    ChunkDamaged = 0.0,
    /// A node is suspended for up to 3 min and then continues. This and the following only in worlds with several nodes.
    NodePaused = 0.0,
    /// Two nodes do not reach each other for up to a minute, or one does not reach the other.
    NodesApart = 0.0,
    /// A node and the database do not reach each other for up to a minute, or one does not reach the other.
    DatabaseApart = 0.0,
    /// The database is killed, and is down for up to 20 s.
    DatabaseKilled = 0.0,
    /// A crash of the database loses some of what is not on its disk.
    DatabaseTailLost = 0.0,
    /// After a crash, the database refuses writes for up to 10 s.
    DatabaseReadOnly = 0.0,
    /// A connection to the database breaks, with a statement in flight that may arrive up to 6 s later.
    DatabaseCut = 0.0,
    /// The database ends a session after a statement; its node notices up to 5 s later.
    DatabaseSessionEnded = 0.0,
    /// A statement or a sync takes up to 6 s.
    DatabaseSlow = 0.0,
    /// The database ends any of its sessions, as an administrator does; its node notices up to 5 s later.
    DatabaseSessionKilled = 0.0,
    /// The connection between two nodes breaks after the owner has answered, and before the other node has the response.
    PeerAnswerLost = 0.0,
}

/// Most permanent faults of one kind in a world, so that most jobs can still be checked.
const LASTING_MAX: u64 = 20;

impl Fault {
    /// Whether the fault's effect on a job is permanent.
    fn lasts(self) -> bool {
        matches!(self, Self::OutputDamaged | Self::ChunkDamaged)
    }
}

/// Decides when faults occur. Cheap to clone.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Mutex<FaultState>>,
}

struct FaultState {
    rng: Rng,
    rates: Vec<f64>,
    counts: Vec<u64>,
    over: bool,
}

impl Faults {
    /// Draws the rates of one world.
    pub fn draw(rng: &mut Rng) -> Self {
        let rates = Fault::RATES_MAX.iter().map(|rate_max| {
            if *rate_max == 0.0 {
                return 0.0;
            }
            // Between a hundredth of the largest rate and the largest.
            let strength = 10_f64.powf(-2.0 * rng.range(0..=1_000) as f64 / 1_000.0);
            if rng.chance(0.5) { rate_max * strength } else { 0.0 }
        });
        let mut rates: Vec<f64> = rates.collect();
        let counts = vec![0; Fault::ALL.len()];
        let rng = rng.fork();
        // Drawn from a copy, so that worlds without these later kinds repeat unchanged.
        let mut late = rng.clone();
        if late.chance(0.3) {
            rates[Fault::JobUnreadable as usize] = late.skewed(1..=50) as f64 / 1_000.0;
        }
        if late.chance(0.2) {
            rates[Fault::DiskUnreadable as usize] = late.skewed(1..=50) as f64 / 10_000.0;
        }
        if late.chance(0.3) {
            rates[Fault::InputDamaged as usize] = late.skewed(5..=50) as f64 / 1_000.0;
        }
        if late.chance(0.2) {
            rates[Fault::OutputDamaged as usize] = late.skewed(2..=50) as f64 / 1_000.0;
        }
        if late.chance(0.2) {
            rates[Fault::ChunkDamaged as usize] = late.skewed(2..=50) as f64 / 1_000.0;
        }
        Self { shared: Arc::new(Mutex::new(FaultState { rng, rates, counts, over: false })) }
    }

    /// Enables only the chosen faults, at these rates.
    pub fn only(rng: &mut Rng, chosen: &[(Fault, f64)]) -> Self {
        let rate = |fault| chosen.iter().find(|(kind, _)| *kind == fault).map_or(0.0, |(_, rate)| *rate);
        let rates = Fault::ALL.iter().map(|fault| rate(*fault)).collect();
        let counts = vec![0; Fault::ALL.len()];
        Self { shared: Arc::new(Mutex::new(FaultState { rng: rng.fork(), rates, counts, over: false })) }
    }

    /// Sets the rates of these faults.
    pub fn set(&self, rates: &[(Fault, f64)]) {
        let mut state = self.state();
        for (fault, rate) in rates {
            state.rates[*fault as usize] = *rate;
        }
    }

    /// Whether the fault occurs now. Counts it if so.
    pub fn inject(&self, fault: Fault) -> bool {
        let mut state = self.state();
        let rate = state.rates[fault as usize];
        let is_spent = fault.lasts() && state.counts[fault as usize] >= LASTING_MAX;
        let strikes = !state.over && !is_spent && rate > 0.0 && state.rng.chance(rate);
        state.counts[fault as usize] += u64::from(strikes);
        strikes
    }

    /// Stops all faults permanently.
    pub fn end(&self) {
        self.state().over = true;
    }

    /// Whether the faults have stopped.
    pub fn are_over(&self) -> bool {
        self.state().over
    }

    /// How often each kind was injected.
    pub fn counts(&self) -> Vec<(Fault, u64)> {
        Fault::ALL.iter().copied().zip(self.state().counts.iter().copied()).collect()
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
