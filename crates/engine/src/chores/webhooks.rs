//! Delivers webhooks: one call per job that ended, until the receiver accepts or the attempts are used up.
//!
//! The row of a job says that a call is owed; this chore only carries it out. It forgets everything when the
//! server stops, and the engine hands every owed call in again at the next start. A call can therefore be made
//! twice (the server died between the receiver's 200 and our commit), but none is forgotten.
//!
//! While a call waits, for its time or for room at its host, only ids are kept. Bodies are built for the calls
//! that are being made, within a budget of bytes, and no host gets more than a few of them: a receiver that is
//! slow or dead delays its own calls alone.

mod address;
mod body;
mod call;
mod dial;
mod dispatch;
mod lanes;
mod post;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{End, JobId, JobKey, Millis};
use tokio::sync::mpsc;

pub use post::{HttpPost, Post, PostFuture};

use crate::host::Host;
use crate::{AskError, JobSnapshot};

/// How webhooks are delivered.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether private, loopback and link-local addresses may be called.
    pub allow_private: bool,
    /// The most attempts for one call.
    pub attempts_max: u32,
    /// From the end of one attempt to the next.
    pub retry_delay: Duration,
    /// The longest that one attempt may take.
    pub timeout: Duration,
    /// Calls being made at a time.
    pub calls_max: usize,
    /// Calls being made at a time to one host.
    pub calls_per_host_max: usize,
    /// Bytes of all bodies being sent; a single larger one is sent alone.
    pub bytes_max: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            allow_private: false,
            attempts_max: 3,
            retry_delay: Duration::from_secs(10),
            timeout: Duration::from_secs(10),
            calls_max: 64,
            calls_per_host_max: 4,
            bytes_max: 64 << 20,
        }
    }
}

/// What a delivery needs of the endpoint that owes it.
pub(crate) trait HookOwner: Clone + Send + Sync + 'static {
    /// The job as it is.
    fn status(&self, job: JobId) -> impl Future<Output = Result<JobSnapshot, AskError>> + Send;
    /// The members of the job's JSON object, as submitted.
    fn members(&self, job: JobId) -> impl Future<Output = Result<Bytes, AskError>> + Send;
    /// So many attempts to report this end were made and the next is due then. Changes nothing if it is not owed
    /// any more.
    fn hook_attempted(
        &self,
        job: JobId,
        end: End,
        attempts: u32,
        due_at: Millis,
    ) -> impl Future<Output = Result<(), AskError>> + Send;
    /// The receiver was told of this end, or the attempts are used up. Changes nothing if it is another end that is
    /// owed.
    fn hook_settled(&self, job: JobId, end: End) -> impl Future<Output = Result<(), AskError>> + Send;
    /// The engine's clock.
    fn now(&self) -> Millis;
}

/// A call that is owed.
#[derive(Clone)]
pub(crate) struct HookDue<H> {
    /// The endpoint that owes it.
    pub handle: H,
    /// The job it reports.
    pub job: JobId,
    /// The job's row. A later `HookDue` of the same row replaces an earlier one.
    pub key: JobKey,
    /// The end that it reports: the call for an earlier one can still be on its way when the job has ended again.
    pub end: End,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the next one is due.
    pub due_at: Millis,
}

/// The chore: give it what is due. It ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Webhooks<H> {
    due: mpsc::UnboundedSender<HookDue<H>>,
}

impl<H: HookOwner> Webhooks<H> {
    /// Starts the chore.
    pub fn spawn(settings: WebhookSettings, host: &dyn Host, post: Arc<dyn Post>) -> Self {
        // Unbounded, because an actor must not wait here. What is in it is smaller than the job's own row in
        // memory, and there is at most one per job that ended.
        let (due, owed) = mpsc::unbounded_channel();
        host.spawn(Box::pin(dispatch::run(settings, post, owed)));
        Self { due }
    }

    /// Makes the call when its time comes. Returns at once.
    pub fn owe(&self, due: HookDue<H>) {
        // The chore is gone only while the server stops; the row keeps the debt until the next start.
        let _ = self.due.send(due);
    }
}
