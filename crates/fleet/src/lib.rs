//! How many workers an endpoint needs, and the steps from the present fleet to that one.
//!
//! Pure: time arrives as a value, and nothing is remembered but what the caller passes in again. [`plan()`] is
//! asked whenever something changed and at the time that its last answer named; asking it more often does no
//! harm.
//!
//! Words: a worker is *up* when it has asked for jobs, *starting* before. Workers of an older version and
//! draining ones are neither: they only take up room until they are gone.
#![no_std]
#![cfg_attr(test, expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them so"))]

extern crate alloc;

mod backoff;
mod demand;
mod placement;
mod plan;
mod scaling;

pub use backoff::{BACKOFF_MS_MAX, BACKOFF_MS_MIN, Backoff, STABLE_UPTIME_MS};
pub use demand::{Demand, FleetLoad, demand};
pub use placement::{GpuInventory, GpuNeed, PlacementError, RESERVATION_MS};
pub use plan::{Plan, PlannedWorker, Step, plan};
pub use scaling::{Scaler, ScalingRules};
