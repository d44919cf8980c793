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
mod attempt;
mod body;
mod breaker;
mod connector;
mod dispatch;
mod limiter;
pub(crate) mod log;
mod progress;
mod proxy;
mod schedule;
pub(crate) mod signing;
#[cfg(test)]
mod tests;
mod transport;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use longshore_model::{Endpoint, JobEnd, JobId, JobKey, Millis};
use tokio::sync::mpsc;

pub use breaker::BreakerSettings;
pub use log::WebhookLog;
pub use schedule::WebhookRetries;
pub use transport::{HttpTransport, TransportError, TransportFuture, TransportResponse, WebhookTransport};

use self::attempt::AttemptSender;
use self::limiter::CallLimiter;
use crate::runtime::Runtime;
use crate::{EndpointError, JobSnapshot};

/// Words of progress that may wait to be looked at.
const PROGRESS_QUEUE: usize = 1_000;

/// How webhooks are delivered.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether private, loopback and link-local addresses may be called.
    pub allow_private: bool,
    /// Whether the proxies that the environment names are used.
    pub proxy_from_environment: bool,
    /// How often, and when again.
    pub retries: WebhookRetries,
    /// When a receiver that does not answer is left in peace.
    pub breaker: BreakerSettings,
    /// The longest that one attempt may take.
    pub timeout: Duration,
    /// The longest that it may take to connect to one of the receiver's addresses.
    pub connect_timeout: Duration,
    /// The longest body; over it the output is left out, and a link to it takes its place.
    pub body_bytes_max: usize,
    /// Where clients reach the server, for that link. Empty: the link is a path.
    pub public_url: String,
    /// The shortest time between two calls that tell how far the same job is.
    pub progress_pause: Duration,
    /// Calls being made at a time.
    pub calls_max: usize,
    /// Calls being made at a time to one receiver: a host and a port.
    pub calls_per_host_max: usize,
    /// Bytes of all bodies being sent; a single larger one is sent alone.
    pub bytes_max: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            allow_private: false,
            proxy_from_environment: false,
            retries: WebhookRetries::default(),
            breaker: BreakerSettings::default(),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(4),
            body_bytes_max: 10_000_000,
            public_url: String::new(),
            progress_pause: Duration::from_secs(1),
            calls_max: 64,
            calls_per_host_max: 4,
            bytes_max: 64 << 20,
        }
    }
}

/// What a delivery needs of the endpoint that owes it.
pub(crate) trait WebhookSource: Clone + Send + Sync + 'static {
    /// The job as it is.
    fn status(&self, job: JobId) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send;
    /// The members of the job's JSON object, as submitted.
    fn members(&self, job: JobId) -> impl Future<Output = Result<Bytes, EndpointError>> + Send;
    /// So many attempts to report this end were made and the next is due then. Changes nothing if it is not owed
    /// any more.
    fn webhook_attempted(
        &self,
        job: JobId,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// The receiver was told of this end, or the attempts are used up. Changes nothing if it is another end that is
    /// owed.
    fn settle_webhook(
        &self,
        job: JobId,
        end: JobEnd,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// The endpoint's record as it is now.
    fn endpoint(&self) -> Arc<Endpoint>;
    /// The signature of a body, if the endpoint has a secret.
    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String>;
    /// The engine's clock.
    fn now(&self) -> Millis;
}

/// A call that is owed.
#[derive(Clone)]
pub(crate) struct PendingCall<H> {
    /// The endpoint that owes it.
    pub handle: H,
    /// The job it reports.
    pub job: JobId,
    /// The job's row. A later `PendingCall` of the same row replaces an earlier one.
    pub key: JobKey,
    /// The end that it reports: the call for an earlier one can still be on its way when the job has ended again.
    pub end: JobEnd,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the next one is due.
    pub due_at: Millis,
}

/// The chore: give it what is due. It ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct WebhookHandle<H> {
    due: mpsc::UnboundedSender<PendingCall<H>>,
    progress: mpsc::Sender<(H, JobId)>,
    allow_private: bool,
}

impl<H: WebhookSource> WebhookHandle<H> {
    /// Starts the chore.
    pub fn spawn(
        settings: WebhookSettings,
        host: &dyn Runtime,
        post: Arc<dyn WebhookTransport>,
        log: Arc<dyn WebhookLog>,
    ) -> Self {
        // Unbounded, because an actor must not wait here. What is in it is smaller than the job's own row in
        // memory, and there is at most one per job that ended.
        let (due, owed) = mpsc::unbounded_channel();
        let limiter =
            CallLimiter::new(settings.calls_per_host_max, settings.bytes_max, settings.breaker.clone());
        let sender = AttemptSender::new(&settings, limiter.clone(), post);
        let allow_private = settings.allow_private;
        let (progress, told) = mpsc::channel(PROGRESS_QUEUE);
        host.spawn(Box::pin(progress::run(settings.progress_pause, sender.clone(), told)));
        host.spawn(Box::pin(dispatch::run(settings, limiter, sender, log, owed)));
        Self { due, progress, allow_private }
    }

    /// Whether a call to this address may be made, as far as that is known before its name is looked up.
    pub fn may_call(&self, target: &Uri) -> bool {
        self.allow_private || !address::is_never_public(target)
    }

    /// Makes the call when its time comes. Returns at once.
    pub fn enqueue(&self, due: PendingCall<H>) {
        // The chore is gone only while the server stops; the row keeps the debt until the next start.
        let _ = self.due.send(due);
    }

    /// Tells how far a running job is, some time, if there is room. Returns at once.
    pub fn progressed(&self, handle: H, job: JobId) {
        // What comes too fast is dropped: a later value takes its place.
        let _ = self.progress.try_send((handle, job));
    }
}
