//! A worker that serves HTTP, with its open connections.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use longshore_fleet::NO_CHECK;
use longshore_model::{Millis, WorkerId};

use super::address::WorkerAddress;
use super::links::Links;

/// A worker that serves HTTP.
pub struct BalancedServer {
    id: WorkerId,
    address: WorkerAddress,
    /// The value of `Host` in its requests.
    host: HeaderValue,
    links: Links,
    last_check: Mutex<LastCheck>,
}

/// What is known of the last health check of a worker.
#[derive(Clone, Debug)]
pub(super) struct LastCheck {
    /// The result, as text.
    pub(super) result: Arc<str>,
    /// Since when each check was rejected: it had an answer that says neither "healthy" nor "not yet".
    pub(super) rejecting_since: Option<Millis>,
}

impl BalancedServer {
    pub(super) fn new(id: WorkerId, address: WorkerAddress) -> Self {
        let host = HeaderValue::try_from(address.requests.to_string());
        Self {
            id,
            address,
            host: host.unwrap_or_else(|_| HeaderValue::from_static("worker")),
            links: Links::to(address.requests),
            last_check: Mutex::new(LastCheck { result: NO_CHECK.into(), rejecting_since: None }),
        }
    }

    /// The id of the worker.
    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// The value of `Host` for its requests: its address and port.
    pub fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// The connections to it.
    pub fn links(&self) -> &Links {
        &self.links
    }

    pub(super) fn health_address(&self) -> SocketAddr {
        self.address.health
    }

    /// The result of the last health check, or of a request that could not reach the worker.
    pub(super) fn last_check(&self) -> LastCheck {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the result of a check. `rejected_at`: the time of the check, if it was rejected.
    pub(super) fn note_check(&self, result: &str, rejected_at: Option<Millis>) {
        let mut last = self.last_check.lock().unwrap_or_else(PoisonError::into_inner);
        last.result = result.into();
        last.rejecting_since = rejected_at.map(|now| last.rejecting_since.unwrap_or(now));
    }
}
