//! GPUs, and where workers run.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// One GPU of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// What the driver knows it by: its number or its UUID. No two GPUs of a machine share one.
    pub device: String,
    /// The name that endpoints ask for in `gpuTypeIds`.
    pub type_id: String,
    /// Its memory, in units of 2^20 bytes; 0 where nobody said.
    pub memory_mib: u64,
}

/// Where a worker runs, and since when. Kept with the worker, so that a server that adopts it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// When its launcher was told to start it.
    #[serde(default)]
    pub started_at: Millis,
    /// The GPUs that are its own until it ends.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// Which of its endpoint's limits do not hold for it, and why; none where all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unenforced_limits: Option<String>,
}
