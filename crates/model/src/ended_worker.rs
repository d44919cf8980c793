//! What remains of a worker after its end.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Millis, Placement, WorkerId};

/// What a server saw a worker do until its end. A server knows only what came after its own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// When the worker sent its first take; `None` if it sent none, and if an earlier server received it.
    pub ready_at: Option<Millis>,
    /// The number of jobs that the worker ended.
    pub jobs_done: u64,
}

/// A worker that has ended, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedWorker {
    /// The id of the worker.
    pub worker: WorkerId,
    /// The endpoint's version that the worker was started for; 0 if unknown.
    pub version: u32,
    /// The placement of its start.
    pub placement: Placement,
    /// When the worker ended; 0 if unknown.
    pub ended_at: Millis,
    /// The exit code; `None` after a signal, and if it is unknown.
    pub code: Option<i32>,
    /// The number of the signal that ended the worker; `None` if no signal did, and if it is unknown.
    pub signal: Option<i32>,
    /// A further cause; `None` if unknown.
    pub because: Option<String>,
    /// Whether a server was stopping the worker.
    pub was_stopped: bool,
    /// Why it was stopped, as text; `None` if no server was stopping it, and if the reason is unknown.
    pub stop_reason: Option<String>,
    /// What it did; `None` if no server saw its end.
    pub served: Option<Served>,
}
