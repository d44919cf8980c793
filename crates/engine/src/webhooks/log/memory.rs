//! The log of deliveries in memory, for tests and the simulator.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use longshore_model::EndpointId;

use super::{LogFuture, WebhookLog};

/// A log in memory that keeps every line.
#[derive(Default)]
pub struct MemoryWebhookLog {
    lines: Mutex<BTreeMap<EndpointId, Vec<u8>>>,
}

impl WebhookLog for MemoryWebhookLog {
    fn append(&self, endpoint: EndpointId, line: Vec<u8>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let log = lines.entry(endpoint).or_default();
        log.extend_from_slice(&line);
        log.push(b'\n');
    }

    fn read(&self, endpoint: EndpointId) -> LogFuture<'_> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let log = lines.get(&endpoint).cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(log)))
    }

    fn forget(&self, endpoint: EndpointId) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).remove(&endpoint);
    }
}
