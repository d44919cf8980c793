//! Baselines: what this computer can do at most. Each result is compared with a baseline of the same run.

mod child;
mod disk;
mod durable;
mod echo;
mod http_worker;
mod loopback;

pub use child::{Baseline, serve};
pub use disk::{Sync, measure as measure_disk};
pub use loopback::measure as measure_loopback;
