//! What scaling settings would have done: the jobs of a trace, through the queue and the scaler of the server.
//!
//! The decisions are those of `longshore-queue` and `longshore-fleet`; this crate has the clock, the workers and their
//! jobs. Nothing waits: the clock jumps from event to event, so a month takes seconds. The same arguments always give the
//! same outcome.
//!
//! What is not rehearsed: crashes, starts that hang, a lack of GPUs, the time that a worker takes to stop, cancelled jobs,
//! and the milliseconds of the network.

mod outcome;
mod quantiles;
mod rehearsal;
mod trace;

pub use longshore_fleet::{Scaler, ScalingRules};
pub use outcome::Outcome;
pub use quantiles::Quantiles;
pub use rehearsal::{Conditions, rehearse};
pub use trace::{Arrival, Interval, Trace, TraceError};
