//! A log of deliveries whose requests wait in a channel for one writer, so that no caller waits for a disk or a database.

use std::io;

use longshore_model::EndpointId;
use tokio::sync::{mpsc, oneshot};

use super::{LogFuture, WebhookLog};

/// Length of the channel to the writer; a request that finds it full is dropped.
const REQUESTS_MAX: usize = 10_000;

/// The requests of all callers. The writer ends when this value is dropped.
pub struct QueuedWebhookLog {
    requests: mpsc::Sender<WebhookLogRequest>,
}

/// A request to the writer. Requests of one endpoint are served in order.
pub enum WebhookLogRequest {
    /// Append a line to the endpoint's log.
    Append(EndpointId, Vec<u8>),
    /// Reply with the endpoint's lines.
    Read(EndpointId, oneshot::Sender<io::Result<Vec<u8>>>),
    /// Remove the endpoint's log.
    Forget(EndpointId),
}

impl QueuedWebhookLog {
    /// The most requests that a writer should take together; their lines are written together.
    pub const BATCH_MAX: usize = 1_000;

    /// Returns a log, and the requests for its writer.
    pub fn new() -> (Self, mpsc::Receiver<WebhookLogRequest>) {
        let (requests, receiver) = mpsc::channel(REQUESTS_MAX);
        (Self { requests }, receiver)
    }
}

impl WebhookLog for QueuedWebhookLog {
    fn append(&self, endpoint: EndpointId, line: Vec<u8>) {
        if self.requests.try_send(WebhookLogRequest::Append(endpoint, line)).is_err() {
            tracing::warn!(%endpoint, "webhook log line dropped, disk or database too slow");
        }
    }

    fn read(&self, endpoint: EndpointId) -> LogFuture<'_> {
        let (reply, content) = oneshot::channel();
        let sent = self.requests.try_send(WebhookLogRequest::Read(endpoint, reply));
        Box::pin(async move {
            let busy = || io::Error::other("the webhook log is busy; retry later");
            sent.map_err(|_| busy())?;
            content.await.map_err(|_| busy())?
        })
    }

    fn forget(&self, endpoint: EndpointId) {
        if self.requests.try_send(WebhookLogRequest::Forget(endpoint)).is_err() {
            tracing::warn!(%endpoint, "webhook log of deleted endpoint not removed");
        }
    }
}
