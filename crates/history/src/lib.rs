//! The history of endpoints: what each did, in steps of 2 s and 10 s in memory, by minute and by hour in files.
//!
//! ```text
//!   actor ─────► Activity ───────────2 s──► Recorder ──► rings of 2 s and 10 s, in memory
//!   balancer ──► ForwardedActivity ──2 s─────┤
//!                (counters)                  └─1 min─► Folder ──► minutes/{day}.log ──► {day}.day, hours/{month}.log
//!   failed jobs ──2 s──► Failures ──1 min──► failures/{endpoint}.json
//! ```
//!
//! [`History`] puts the parts together. Nothing depends on it: a server without its files serves jobs as well, and what
//! cannot be read is left out. A killed server loses the present minute.

mod activity;
mod buckets;
mod copies;
mod failures;
mod fields;
mod files;
mod forwarded;
mod histogram;
mod history;
mod operation;
mod record;
mod recorder;
mod ring;
mod share;
mod varint;

pub use activity::{Activity, ActivityTotals};
pub use buckets::{Buckets, Span};
pub use copies::MinuteCopy;
pub use failures::{Failure, FailureGroup, FailureKind, Failures};
pub use fields::Field;
pub use forwarded::{ForwardedActivity, ObservedForwards};
pub use histogram::{CELLS, Histogram, cell_of};
pub use history::{History, Plan, Timeline};
pub use operation::LimitedOperation;
pub use record::Record;
pub use recorder::{GpuUse, Observed, ObservedWorkers};
pub use share::Share;

/// How long one step is in memory while it is recent, in ms.
pub const FAST_STEP_MS: u64 = 2_000;
/// How long one step is in memory while it is older, in ms.
pub const SLOW_STEP_MS: u64 = 10_000;
/// The length of a minute, in ms.
pub const MINUTE_MS: u64 = 60_000;
/// The length of an hour, in ms.
pub const HOUR_MS: u64 = 3_600_000;
/// The length of a day, in ms.
pub(crate) const DAY_MS: u64 = 86_400_000;
