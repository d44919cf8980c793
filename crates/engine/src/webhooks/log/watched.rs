//! A log of deliveries that remembers which endpoints have new lines, for readers of events.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_model::EndpointId;

use super::{LogFuture, WebhookLog};

/// A log, and the endpoints with new lines.
pub(crate) struct WatchedLog {
    log: Arc<dyn WebhookLog>,
    changed: Mutex<BTreeSet<EndpointId>>,
}

impl WatchedLog {
    pub(crate) fn new(log: Arc<dyn WebhookLog>) -> Self {
        Self { log, changed: Mutex::default() }
    }

    /// Returns the endpoints with lines that were appended since the last call.
    pub(crate) fn take_changed(&self) -> BTreeSet<EndpointId> {
        std::mem::take(&mut *self.changed())
    }

    fn changed(&self) -> MutexGuard<'_, BTreeSet<EndpointId>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookLog for WatchedLog {
    fn append(&self, endpoint: EndpointId, line: Vec<u8>) {
        self.log.append(endpoint, line);
        self.changed().insert(endpoint);
    }

    fn read(&self, endpoint: EndpointId) -> LogFuture<'_> {
        self.log.read(endpoint)
    }

    fn forget(&self, endpoint: EndpointId) {
        self.log.forget(endpoint);
        self.changed().remove(&endpoint);
    }
}
