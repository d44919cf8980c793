//! GPUs, and where workers run.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{HttpPorts, Millis};

/// One GPU of a computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// The driver's name of the GPU: its number or its UUID, unique on a computer. A share of a GPU has `::` and its number
    /// after that name.
    pub device: String,
    /// The name by which `gpuTypeIds` of an endpoint selects the GPU.
    pub type_id: String,
    /// The GPU's memory, in units of 2^20 bytes; 0 if unknown.
    pub memory_mib: u64,
}

impl Gpu {
    /// What separates the driver's name from the number of a share.
    pub const SHARE: &'static str = "::";

    /// The driver's name of the GPU, which all its shares have in common.
    pub fn card(&self) -> &str {
        self.device.split_once(Self::SHARE).map_or(&self.device, |(card, _)| card)
    }
}

/// Where a worker runs, and since when. The launcher stores the placement with the worker, for the server that adopts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// When the launcher began to start the worker.
    #[serde(default)]
    pub started_at: Millis,
    /// The GPUs that no other worker has until this one exits.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// The limits of the endpoint that are not enforced for the worker, and why, as text; `None` if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unenforced_limits: Option<String>,
    /// Why the worker was started; `None` if an older version started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StartCause>,
    /// The ports on which the worker serves HTTP; `None` for a worker that takes jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpPorts>,
}

/// Why a worker was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StartCause {
    /// The endpoint keeps `workersMin` workers without jobs.
    WorkersMin,
    /// Jobs wait in the queue for a worker.
    QueuedJobs,
    /// The worker replaces one of an older version of the endpoint.
    NewVersion,
}

impl StartCause {
    /// Every cause, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::WorkersMin, Self::QueuedJobs, Self::NewVersion];

    /// The word for the cause in the management API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkersMin => "WORKERS_MIN",
            Self::QueuedJobs => "QUEUED_JOBS",
            Self::NewVersion => "NEW_VERSION",
        }
    }
}
