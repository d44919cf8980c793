//! The number of workers that an endpoint needs, the steps to reach it, the GPUs of each worker, and why a job waits.
//!
//! Pure: time is an argument, and the caller keeps the state between calls. The supervisor calls [`plan()`] after every
//! change and at the time that the last plan names. Further calls do no harm.
//!
//! A worker is *up* once it has sent a take, and *starting* before. While jobs wait, a starting worker that is *late*
//! counts only against the maximum, because its start may hang. Draining workers and workers of an older version are
//! neither, but count against the maximum until they exit.
#![no_std]
#![cfg_attr(test, expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them so"))]

extern crate alloc;

mod backoff;
mod balance;
mod demand;
mod explain;
mod idle_gaps;
mod placement;
mod plan;
mod scaling;

pub use backoff::{BACKOFF_MS_MAX, BACKOFF_MS_MIN, Backoff, STABLE_UPTIME_MS};
pub use balance::health::{Check, HealthState, NO_CHECK, WorkerHealth};
pub use balance::resend::may_send_again;
pub use balance::waiting::Ticket;
pub use balance::{Admission, Balance, BalanceLimits, BalancedWorker, WorkerKey};
pub use demand::{Demand, FleetLoad, demand};
pub use explain::{
    CauseCode, CauseDetail, CrashFacts, CrashKind, Explanation, FinishRate, FleetFacts, GpuHolder,
    GpuShortage, ManagedWorker, PauseFacts, ProviderFault, Requeue, RunTimes, ServerHealth, Severity,
    StartTimes, StoreFault, VersionRunTimes, WaitAction, WaitCause, WaitEstimate, WaitFacts, WaitingJob,
    WaitingQueue, WorkerContact, explain, finish_ms, impossible_gpus, problem,
};
pub use idle_gaps::IdleGaps;
pub use placement::{GpuInventory, GpuNeed, InLine, PlacementError, RESERVATION_MS, Shortage};
pub use plan::{Plan, PlannedWorker, Step, plan};
pub use scaling::{Scaler, ScalingRules};
