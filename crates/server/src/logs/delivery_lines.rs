//! The logs of webhook deliveries as lines in the database.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use longshore_engine::{QueuedWebhookLog, WebhookLogRequest};
use longshore_model::EndpointId;
use longshore_postgres::LogTable;
use longshore_store::StoreError;
use tokio::sync::mpsc;

use super::DELIVERIES;

/// Which part of its limit a log may grow before its oldest lines are removed.
const TRIM_SHARE: u64 = 8;

/// Opens the logs of all endpoints, each with about `bytes_max` bytes at most. A task does all the work, and ends when the log
/// is dropped. Must be called in a runtime.
pub(super) fn open(table: Arc<LogTable>, bytes_max: u64) -> QueuedWebhookLog {
    let (log, requests) = QueuedWebhookLog::new();
    tokio::spawn(Writer { table, bytes_max, grown: BTreeMap::new() }.run(requests));
    log
}

/// The state of the task that writes.
struct Writer {
    table: Arc<LogTable>,
    /// The length that a log is cut to, in bytes.
    bytes_max: u64,
    /// Bytes that were appended to each log since it was last cut. The first append after a start cuts it.
    grown: BTreeMap<EndpointId, u64>,
}

impl Writer {
    /// Serves requests until their sender is dropped.
    async fn run(mut self, mut requests: mpsc::Receiver<WebhookLogRequest>) {
        let mut batch = Vec::new();
        while requests.recv_many(&mut batch, QueuedWebhookLog::BATCH_MAX).await > 0 {
            let mut lines = Vec::new();
            for request in batch.drain(..) {
                match request {
                    WebhookLogRequest::Append(endpoint, line) => lines.push((endpoint, line)),
                    WebhookLogRequest::Read(endpoint, reply) => {
                        self.append(std::mem::take(&mut lines)).await;
                        // A closed channel is no error: the client disconnected.
                        let _ = reply.send(self.read(endpoint).await);
                    }
                    WebhookLogRequest::Forget(endpoint) => {
                        lines.retain(|(of, _)| *of != endpoint);
                        self.grown.remove(&endpoint);
                        warn_of(endpoint, self.table.remove(&name(endpoint)).await);
                    }
                }
            }
            self.append(lines).await;
        }
    }

    /// Appends lines. Lines that cannot be written are lost.
    async fn append(&mut self, lines: Vec<(EndpointId, Vec<u8>)>) {
        let Some((first, _)) = lines.first() else { return };
        let first = *first;
        let mut grown: BTreeMap<EndpointId, u64> = BTreeMap::new();
        for (endpoint, line) in &lines {
            *grown.entry(*endpoint).or_default() += line.len() as u64;
        }
        let named: Vec<(String, Vec<u8>)> =
            lines.into_iter().map(|(endpoint, line)| (name(endpoint), line)).collect();
        let appended = self.table.append(&named).await;
        if appended.is_err() {
            return warn_of(first, appended);
        }
        for (endpoint, bytes) in grown {
            let since = self.grown.entry(endpoint).or_insert(self.bytes_max);
            *since = since.saturating_add(bytes);
            if *since > self.bytes_max / TRIM_SHARE {
                *since = 0;
                warn_of(endpoint, self.table.trim(&name(endpoint), self.bytes_max).await);
            }
        }
    }

    async fn read(&self, endpoint: EndpointId) -> io::Result<Vec<u8>> {
        let lines = self.table.lines(&name(endpoint)).await.map_err(io::Error::other)?;
        Ok(lines.join(&b'\n'))
    }
}

fn warn_of(endpoint: EndpointId, written: Result<(), StoreError>) {
    if let Err(error) = written {
        tracing::warn!(%endpoint, %error, "webhook log lines not written");
    }
}

/// The name of an endpoint's log in the database.
fn name(endpoint: EndpointId) -> String {
    format!("{DELIVERIES}{endpoint}")
}
