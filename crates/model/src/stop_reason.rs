//! Why a worker is stopped.

use alloc::string::String;
use core::fmt;

/// Why the server stops a worker. Shown as a phrase that begins with a small letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The worker ran no job for the endpoint's `idleTimeout`, and the load needs fewer workers.
    Idle,
    /// The endpoint has more workers than its `workersMax`.
    WorkersMax,
    /// The worker is of an older version of the endpoint.
    NewVersion,
    /// The server is being drained.
    ServerDraining,
    /// An operator stopped the worker.
    Operator,
    /// The worker requested its replacement, for example with `refresh_worker`.
    WorkerRequest,
    /// The worker is replaced, for the reason given.
    Replaced(String),
    /// The endpoint of the worker was deleted.
    EndpointDeleted,
    /// The endpoint of the worker has another provider.
    ProviderChanged,
    /// The server that `longshore dev` ran has ended.
    DevEnded,
    /// The server was away for longer than the workers may live without it: the time in s.
    ServerAway(u64),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle for longer than idleTimeout"),
            Self::WorkersMax => f.write_str("more workers than workersMax"),
            Self::NewVersion => f.write_str("replaced by the endpoint's new version"),
            Self::ServerDraining => f.write_str("the server is being drained"),
            Self::Operator => f.write_str("by an operator"),
            Self::WorkerRequest => f.write_str("the worker asked to be replaced"),
            Self::Replaced(reason) => f.write_str(reason),
            Self::EndpointDeleted => f.write_str("its endpoint was deleted"),
            Self::ProviderChanged => f.write_str("its endpoint has another provider"),
            Self::DevEnded => f.write_str("longshore dev has ended"),
            Self::ServerAway(seconds) => write!(f, "the server was away for {seconds} s"),
        }
    }
}
