//! What goes wrong, how often, and how often it did.
//!
//! Every world draws its own rates (swarm testing): about half of the kinds never strike in it, so that the
//! others meet long stretches of otherwise healthy life.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;

/// Defines the kinds of faults with the largest rate at which each may strike where it could.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $rate_max:expr,)*) => {
        /// A kind of thing that goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            const RATES_MAX: &[f64] = &[$($rate_max,)*];
        }
    };
}

faults! {
    /// A request never reaches the server.
    RequestLost = 0.05,
    /// The server answers, and the answer is lost.
    AnswerLost = 0.05,
    /// A request or an answer is long under way.
    NetworkSlow = 0.1,
    /// The caller hangs up before the answer.
    HangUp = 0.05,
    /// The server is killed between two steps of any of its tasks. Per step.
    ServerKilled = 0.000_5,
    /// The server is stopped in order, and started again.
    ServerRestarted = 0.2,
    /// A batch could not be written.
    CommitFailed = 0.05,
    /// A batch is written, but its writer is told that it failed.
    CommitUnsure = 0.02,
    /// A batch takes long.
    CommitSlow = 0.1,
    /// The disk is full for a while.
    DiskFull = 0.005,
    /// Rows or files could not be read.
    ReadFailed = 0.01,
    /// A payload file could not be written, or deleted.
    BlobFailed = 0.05,
    /// What was not synced is lost with the server.
    TailLost = 0.9,
    /// A part of what was not synced is lost with the server.
    TailTorn = 0.9,
    /// The wall clock jumps forward.
    ClockForward = 0.3,
    /// The wall clock jumps back.
    ClockBack = 0.3,
    /// A worker could not be started.
    LaunchFailed = 0.2,
    /// A worker process dies.
    WorkerDies = 0.05,
    /// A worker hangs: it neither asks, pings nor answers any more.
    WorkerHangs = 0.03,
    /// A worker is cut off for a while and then goes on as if nothing had happened.
    WorkerPaused = 0.08,
    /// A handler fails.
    HandlerFails = 0.3,
    /// A handler does not heed the word to stop.
    HandlerDeaf = 0.3,
    /// A worker posts a result twice.
    ResultTwice = 0.1,
    /// A worker posts a result for a job that it let go, or never had.
    ResultForeign = 0.4,
    /// A ping names jobs that are long over, or none of those that run.
    PingStale = 0.05,
    /// A receiver answers a webhook call with an error.
    ReceiverFails = 0.5,
    /// A receiver takes longer than a call may.
    ReceiverSlow = 0.2,
    /// A receiver cannot be reached for a while.
    ReceiverDown = 0.2,
    /// A handler never ends by itself, although its worker is not known for that. Only where somebody asks for it.
    HandlerStuck = 0.0,
    /// A job is handed in that no worker can read, nor anything that came with it.
    JobUnreadable = 0.0,
    /// Nothing can be read from the disk for a while.
    DiskUnreadable = 0.0,
    /// A job's input is changed, or lost.
    InputDamaged = 0.0,
    /// What came out of a job is changed, or lost: its output, its error, or a progress value.
    OutputDamaged = 0.0,
    /// A chunk of a job's stream is changed.
    ChunkDamaged = 0.0,
}

/// How often a fault that lasts strikes in one world: most jobs stay what they are, for everything else to be checked.
const LASTING_MAX: u64 = 20;

impl Fault {
    /// Whether what it does to a job is never undone.
    fn lasts(self) -> bool {
        matches!(self, Self::OutputDamaged | Self::ChunkDamaged)
    }
}

/// Decides when something goes wrong. Cheap to clone.
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
            // From a hundredth of the largest to the largest.
            let strength = 10_f64.powf(-2.0 * rng.range(0..=1_000) as f64 / 1_000.0);
            if rng.chance(0.5) { rate_max * strength } else { 0.0 }
        });
        let mut rates: Vec<f64> = rates.collect();
        let counts = vec![0; Fault::ALL.len()];
        let rng = rng.fork();
        // From a copy: the worlds in which they do not strike stay what they were before they were thought of.
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

    /// Only these go wrong, as often as is said.
    pub fn only(rng: &mut Rng, chosen: &[(Fault, f64)]) -> Self {
        let rate = |fault| chosen.iter().find(|(kind, _)| *kind == fault).map_or(0.0, |(_, rate)| *rate);
        let rates = Fault::ALL.iter().map(|fault| rate(*fault)).collect();
        let counts = vec![0; Fault::ALL.len()];
        Self { shared: Arc::new(Mutex::new(FaultState { rng: rng.fork(), rates, counts, over: false })) }
    }

    /// From now on these go wrong as often as is said.
    pub fn set(&self, rates: &[(Fault, f64)]) {
        let mut state = self.state();
        for (fault, rate) in rates {
            state.rates[*fault as usize] = *rate;
        }
    }

    /// Whether it goes wrong now. Counted if it does.
    pub fn inject(&self, fault: Fault) -> bool {
        let mut state = self.state();
        let rate = state.rates[fault as usize];
        let is_spent = fault.lasts() && state.counts[fault as usize] >= LASTING_MAX;
        let strikes = !state.over && !is_spent && rate > 0.0 && state.rng.chance(rate);
        state.counts[fault as usize] += u64::from(strikes);
        strikes
    }

    /// From now on nothing goes wrong any more.
    pub fn end(&self) {
        self.state().over = true;
    }

    /// Whether nothing goes wrong any more.
    pub fn are_over(&self) -> bool {
        self.state().over
    }

    /// How often each kind struck.
    pub fn counts(&self) -> Vec<(Fault, u64)> {
        Fault::ALL.iter().copied().zip(self.state().counts.iter().copied()).collect()
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
