//! Delivers webhooks: one call per end of a job, until the receiver accepts or the attempts are used up.
//!
//! The job's row says that a call is pending. The task of this module makes the call and reports the result to the
//! queue. The task stores nothing: after a start the engine enqueues every pending call again. A call can therefore be
//! made twice (the server stopped between the receiver's 200 and the commit), but no call is lost.
//!
//! A call that waits, for its time or for a permit of its receiver, is held as ids. A body is built only for a call
//! that is being made. The bodies share a budget of bytes, and each receiver a number of concurrent calls: a receiver
//! that is slow or dead delays its own calls alone.

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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use longshore_model::{Endpoint, JobEnd, JobId, JobKey, Millis};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use breaker::BreakerSettings;
pub use log::WebhookLog;
pub use schedule::WebhookRetries;
pub use transport::{HttpTransport, TransportError, TransportFuture, TransportResponse, WebhookTransport};

use self::attempt::AttemptSender;
use self::limiter::CallLimiter;
use crate::runtime::Runtime;
use crate::traces::Traces;
use crate::{EndpointError, JobSnapshot, WebhookOutcome};

/// Length of the channel of progress notices; a notice that finds it full is dropped.
const PROGRESS_QUEUE: usize = 1_000;

/// Scheme, host and port of the address that calls for a job go to. `members` are the job's members as submitted, empty for one
/// without a webhook of its own; `of_endpoint` is the endpoint's webhook. `None` if no call can be made.
pub(crate) fn receiver_of(members: &[u8], of_endpoint: Option<&str>) -> Option<String> {
    body::receiver(members, of_endpoint).map(|url| attempt::origin_of(&url))
}

/// The settings of webhook delivery: limits, times and retries.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether addresses outside the public internet may be called: private, loopback, link-local and reserved ones.
    pub allow_private: bool,
    /// Whether calls go through the proxies that the environment names (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`,
    /// `NO_PROXY`).
    pub proxy_from_environment: bool,
    /// The number of attempts and the delays between them.
    pub retries: WebhookRetries,
    /// When the circuit breaker of a receiver opens, and for how long.
    pub breaker: BreakerSettings,
    /// Longest time from the start of an attempt to the response; later, the attempt failed.
    pub timeout: Duration,
    /// Longest time to connect to one address of a receiver; then the next address is tried.
    pub connect_timeout: Duration,
    /// Limit of a body, in bytes. Over it the output is left out, and `statusUrl` names where to read it; if that is
    /// not enough, the input is left out too.
    pub body_bytes_max: usize,
    /// Base URL under which clients reach the server, for `statusUrl`. Empty: `statusUrl` is a path.
    pub public_url: String,
    /// Shortest time between two progress calls for the same job.
    pub progress_pause: Duration,
    /// Limit of concurrent calls to all receivers, without progress calls.
    pub calls_max: usize,
    /// Limit of concurrent calls to one receiver: a host and a port.
    pub calls_per_host_max: usize,
    /// Limit of the bytes of all bodies being sent. A single larger body is sent alone.
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

/// The endpoint of a webhook call, as the delivery needs it. A trait, so that deliveries are tested without an actor.
pub(crate) trait WebhookSource: Clone + Send + Sync + 'static {
    /// Returns the job with its output or progress value.
    ///
    /// # Errors
    ///
    /// Every variant of [`EndpointError`]; `Refused` and `Deleted` mean that there is no such job.
    fn status(&self, job: JobId) -> impl Future<Output = Result<JobSnapshot, EndpointError>> + Send;
    /// Returns the members of the job's JSON object as submitted, without the outer braces.
    ///
    /// # Errors
    ///
    /// As [`WebhookSource::status`].
    fn members(&self, job: JobId) -> impl Future<Output = Result<Bytes, EndpointError>> + Send;
    /// Stores that `attempts` attempts for this end were made and that the next is due at `due_at`. Changes nothing if
    /// no call for this end is pending.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unavailable`] or [`EndpointError::CommitFailed`] if the change is not durable; call again. After
    /// any other variant there is no pending call.
    fn webhook_attempted(
        &self,
        job: JobId,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// Stores that the call for this end is settled: accepted or given up. Changes nothing if no call for this end is
    /// pending.
    ///
    /// # Errors
    ///
    /// As [`WebhookSource::webhook_attempted`].
    fn settle_webhook(
        &self,
        job: JobId,
        end: JobEnd,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// Counts an attempt.
    fn count_attempt(&self, outcome: WebhookOutcome);
    /// Returns the present resource of the endpoint.
    fn endpoint(&self) -> Arc<Endpoint>;
    /// Returns the value of the `webhook-signature` header for a body; `None` if the endpoint has no valid secret.
    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String>;
    /// Returns the time of the engine's clock.
    fn now(&self) -> Millis;
    /// Whether a call may be made now.
    fn may_act(&self) -> bool {
        true
    }
    /// Returns the traces that calls are part of; `None` without traces.
    fn traces(&self) -> Option<Arc<Traces>> {
        None
    }
}

/// A pending call: a job ended, and the webhook call for this end is not settled.
#[derive(Clone)]
pub(crate) struct PendingCall<H> {
    /// The endpoint of the job.
    pub handle: H,
    /// The public id of the job that ended.
    pub job: JobId,
    /// The key of the job's row. A later `PendingCall` with the same key replaces an earlier one.
    pub key: JobKey,
    /// The end that the call reports. The call for an earlier end can still be in flight when the job ends again.
    pub end: JobEnd,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the next attempt is due.
    pub due_at: Millis,
}

/// The sender of calls to the delivery tasks. The tasks end when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct WebhookHandle<H> {
    due: mpsc::UnboundedSender<PendingCall<H>>,
    progress: mpsc::Sender<(H, JobId)>,
    allow_private: bool,
    limiter: CallLimiter,
    /// The number of pending calls, as the delivery task last saw it.
    pending: Arc<AtomicUsize>,
}

/// A receiver with an open circuit breaker: its last calls had no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedReceiver {
    /// The receiver: host and port.
    pub receiver: String,
    /// Since when it is not called, but for single tries.
    pub since: Millis,
    /// When the next try may be made.
    pub until: Millis,
}

impl PausedReceiver {
    /// Whether calls to an origin, such as `https://h.example`, are calls to this receiver.
    pub fn is_at(&self, origin: &str) -> bool {
        origin.parse().is_ok_and(|url| *attempt::receiver_key(&url) == *self.receiver)
    }
}

impl<H: WebhookSource> WebhookHandle<H> {
    /// Starts the two tasks that make calls: for ends, and for progress.
    pub fn spawn(
        settings: WebhookSettings,
        runtime: &dyn Runtime,
        transport: Arc<dyn WebhookTransport>,
        log: Arc<dyn WebhookLog>,
    ) -> Self {
        // Unbounded, because an actor must not wait here. An entry is smaller than the job's row in memory, and each
        // end of a job adds at most one.
        let (due, pending) = mpsc::unbounded_channel();
        let limiter =
            CallLimiter::new(settings.calls_per_host_max, settings.bytes_max, settings.breaker.clone());
        let sender = AttemptSender::new(&settings, limiter.clone(), transport);
        let allow_private = settings.allow_private;
        let (progress, notices) = mpsc::channel(PROGRESS_QUEUE);
        runtime.spawn(Box::pin(progress::run(settings.progress_pause, sender.clone(), notices)));
        let number = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&number);
        runtime.spawn(Box::pin(dispatch::run(settings, limiter.clone(), sender, log, (pending, counted))));
        Self { due, progress, allow_private, limiter, pending: number }
    }

    /// The number of pending calls: not yet accepted or given up.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// Returns the receivers with an open circuit breaker, sorted by name. `now` is the time of the engine's clock.
    pub fn paused_receivers(&self, now: Millis) -> Vec<PausedReceiver> {
        let instant = Instant::now();
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let open = self.limiter.open_breakers().into_iter();
        open.map(|(receiver, since, until)| PausedReceiver {
            receiver: receiver.to_string(),
            since: Millis(now.0.saturating_sub(millis(instant.duration_since(since)))),
            until: Millis(now.0.saturating_add(millis(until.saturating_duration_since(instant)))),
        })
        .collect()
    }

    /// Returns whether a call to this URL may be made, as far as that is known before its host name is resolved.
    pub fn may_call(&self, target: &Uri) -> bool {
        self.allow_private || !address::is_never_public(target)
    }

    /// Enqueues a call, which is made when it is due. Never waits.
    pub fn enqueue(&self, due: PendingCall<H>) {
        // The task ends only while the server stops; then the call stays pending in the row until the next start.
        let _ = self.due.send(due);
    }

    /// Enqueues a progress call for a running job, or drops it if the channel is full. Never waits.
    pub fn progressed(&self, handle: H, job: JobId) {
        // A dropped notice loses no result: a later one reports the latest value.
        let _ = self.progress.try_send((handle, job));
    }
}
