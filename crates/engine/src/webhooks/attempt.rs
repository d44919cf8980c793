//! Makes one attempt of a webhook call: builds the body, signs it, sends it and judges the response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use longshore_model::{EndpointId, JobId, JobState, Millis, WebhookEvent};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::body::{self, BodyContext, Message};
use super::limiter::{CallLimiter, CallPermit, NoPermit};
use super::log::{DeliveryAttempt, webhook_id};
use super::signing::seconds;
use super::transport::{TransportError, TransportResponse};
use super::{PendingCall, WebhookSettings, WebhookSource, WebhookTransport};
use crate::traces::{Traces, WebhookCallSpan};
use crate::{EndpointError, JobSnapshot};

/// Limit of bodies being built concurrently: each may need the whole input and output of a job in memory.
const BUILDS_MAX: usize = 4;

/// The error of a call to a forbidden address in the log of deliveries, which clients read. It names no address.
const FORBIDDEN: &str = "the receiver has no public address; the server's settings do not allow private ones";

/// The result of one attempt.
pub(super) enum AttemptOutcome {
    /// The receiver returned 200.
    Accepted(SentAttempt),
    /// The receiver returned another status, or there was no response.
    Failed(SentAttempt),
    /// No request was sent, because the settings forbid the receiver's address.
    Forbidden(SentAttempt),
    /// The call can never be made, for the reason given.
    Impossible(String),
    /// The call is not pending: the job is deleted, was retried, ended again, or its call is settled.
    NotPending,
    /// The endpoint's `webhookEvents` do not include this event.
    NotWanted,
    /// The job cannot be read at present, for the reason given.
    Unreadable(String),
    /// The limiter gave no permit for this receiver; the body was dropped.
    NoPermit(Arc<str>, NoPermit),
}

/// An attempt that was sent, or forbidden while connecting.
pub(super) struct SentAttempt {
    /// The permit of the call; dropping it lets the next call go.
    pub permit: CallPermit,
    /// The response closed the receiver's circuit breaker.
    pub closed_breaker: bool,
    /// Scheme, host and port of the receiver.
    pub receiver: String,
    /// The entry for the log of deliveries.
    pub attempt: DeliveryAttempt,
}

/// Makes attempts. Clones share the permits and the limit of concurrent builds.
#[derive(Clone)]
pub(super) struct AttemptSender {
    transport: Arc<dyn WebhookTransport>,
    timeout: Duration,
    body_bytes_max: usize,
    public_url: Arc<str>,
    builds: Arc<Semaphore>,
    limiter: CallLimiter,
}

impl AttemptSender {
    /// Returns a sender with these limits, which sends by `transport`.
    pub fn new(
        settings: &WebhookSettings,
        limiter: CallLimiter,
        transport: Arc<dyn WebhookTransport>,
    ) -> Self {
        Self {
            transport,
            timeout: settings.timeout,
            body_bytes_max: settings.body_bytes_max,
            public_url: settings.public_url.trim_end_matches('/').into(),
            builds: Arc::new(Semaphore::new(BUILDS_MAX)),
            limiter,
        }
    }

    /// Makes one attempt to report the end of a job.
    pub async fn attempt<H: WebhookSource>(&self, due: &PendingCall<H>) -> AttemptOutcome {
        let number = due.attempts + 1;
        let end = due.end;
        let is_pending = |job: &JobSnapshot| job.row.pending_end() == Some(end);
        let prepared = self.prepare(&due.handle, due.job, number, is_pending, || webhook_id(due.job, end));
        match prepared.await {
            Ok(call) => self.call(call, number, due.handle.now()).await,
            Err(outcome) => outcome,
        }
    }

    /// Makes the only attempt to report the present progress value of a running job.
    pub async fn send_progress<H: WebhookSource>(&self, handle: &H, job: JobId) -> AttemptOutcome {
        let now = handle.now();
        let is_running = |job: &JobSnapshot| job.row.state == JobState::InProgress;
        let prepared = self.prepare(handle, job, 1, is_running, || format!("{job}-progress-{}", now.0));
        match prepared.await {
            Ok(call) => self.call(call, 1, now).await,
            Err(outcome) => outcome,
        }
    }

    /// Sends a request and judges the response. Tells the circuit breaker of the receiver whether there was one.
    async fn call(&self, prepared: PreparedCall, attempt: u32, at: Millis) -> AttemptOutcome {
        let PreparedCall { call, mut permit, span, job, endpoint } = prepared;
        let receiver = origin_of(call.uri());
        let id = call.headers().get(WEBHOOK_ID).and_then(|id| id.to_str().ok());
        let id = id.unwrap_or_default().to_owned();
        let started = Instant::now();
        let result = tokio::time::timeout(self.timeout, self.transport.post(call)).await;
        let latency_ms = started.elapsed().as_millis() as u64;
        let result =
            result.unwrap_or_else(|_| Err(TransportError::NoResponse("no answer in time".to_owned())));
        let closed_breaker = record_response(&mut permit, &result);
        let is_accepted = matches!(&result, Ok(TransportResponse { status: StatusCode::OK, .. }));
        let is_forbidden = matches!(&result, Err(TransportError::Forbidden(_)));
        let (status, body, error) = match result {
            Ok(TransportResponse { status, body }) => (Some(status.as_u16()), Some(body), None),
            Err(TransportError::NoResponse(text)) => (None, None, Some(text)),
            Err(TransportError::Forbidden(text)) => {
                // The text names the address: internal addresses are shown to the operator alone.
                tracing::info!(%endpoint, %job, %id, %receiver, error = %text, "webhook address forbidden");
                (None, None, Some(FORBIDDEN.to_owned()))
            }
        };
        if let Some((traces, span)) = span {
            span.end(&traces, &receiver, status, latency_ms);
        }
        let error_text = error.as_deref();
        tracing::info!(
            %endpoint, %job, %id, attempt, latency_ms, %receiver, status, error = error_text, "webhook called"
        );
        let answer = body.map(|body| String::from_utf8_lossy(&body).into_owned());
        let attempt = DeliveryAttempt { attempt, at, latency_ms, status, answer, error };
        let sent = SentAttempt { permit, closed_breaker, receiver, attempt };
        match (is_accepted, is_forbidden) {
            (true, _) => AttemptOutcome::Accepted(sent),
            (_, true) => AttemptOutcome::Forbidden(sent),
            _ => AttemptOutcome::Failed(sent),
        }
    }

    /// Builds the request of a call and gets the permit to send it. A job that does not satisfy `is_wanted` gets none.
    async fn prepare<H: WebhookSource>(
        &self,
        handle: &H,
        job: JobId,
        number: u32,
        is_wanted: impl Fn(&JobSnapshot) -> bool,
        id: impl FnOnce() -> String,
    ) -> Result<PreparedCall, AttemptOutcome> {
        let Ok(_building) = self.builds.acquire().await else {
            return Err(AttemptOutcome::Unreadable("the server is stopping".to_owned()));
        };
        let snapshot = handle.status(job).await.map_err(unreadable)?;
        if !is_wanted(&snapshot) {
            return Err(AttemptOutcome::NotPending);
        }
        let endpoint = handle.endpoint();
        let event = WebhookEvent::of(snapshot.row.state);
        if !event.is_some_and(|event| endpoint.webhook_events.contains(&event)) {
            return Err(AttemptOutcome::NotWanted);
        }
        let members = handle.members(job).await.map_err(unreadable)?;
        let status_url = format!("{}/v2/{}/status/{job}", self.public_url, endpoint.id);
        let context = BodyContext {
            webhook: endpoint.webhook.as_deref(),
            bytes_max: self.body_bytes_max,
            status_url: &status_url,
        };
        // From here to the call there is no wait.
        if !handle.may_act() {
            let reason = "another node may decide about the job, because the lease of this one is over";
            return Err(AttemptOutcome::Unreadable(reason.to_owned()));
        }
        let message = body::build(&snapshot, &members, &context).map_err(AttemptOutcome::Impossible)?;
        let host = receiver_key(&message.url);
        match self.limiter.try_acquire(&host, message.body.len()) {
            Ok(permit) => {
                let id_of_endpoint = endpoint.id;
                let span = handle.traces().map(|traces| {
                    (traces, WebhookCallSpan::new(endpoint, &snapshot.row, number, handle.now()))
                });
                let mut call = request(handle, message, &id()).map_err(AttemptOutcome::Impossible)?;
                if let Some((traces, span)) = &span
                    && let Ok(context) = HeaderValue::try_from(span.context(traces).to_string())
                {
                    call.headers_mut().insert(TRACEPARENT, context);
                }
                Ok(PreparedCall { call, permit, span, job, endpoint: id_of_endpoint })
            }
            Err(reason) => Err(AttemptOutcome::NoPermit(host, reason)),
        }
    }
}

/// A call that may be sent.
struct PreparedCall {
    call: Request<Bytes>,
    permit: CallPermit,
    /// The span of the call; `None` without traces.
    span: Option<(Arc<Traces>, WebhookCallSpan)>,
    job: JobId,
    endpoint: EndpointId,
}

/// Tells the circuit breaker of the receiver whether there was a response. Returns whether the response closed it. A
/// forbidden call says nothing about the receiver.
fn record_response(permit: &mut CallPermit, result: &Result<TransportResponse, TransportError>) -> bool {
    match result {
        Ok(_) => permit.record_response(),
        Err(TransportError::NoResponse(_)) => {
            permit.record_failure();
            false
        }
        Err(TransportError::Forbidden(_)) => false,
    }
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Builds the signed request of a call. The error says which part is no valid HTTP.
fn request<H: WebhookSource>(handle: &H, message: Message, id: &str) -> Result<Request<Bytes>, String> {
    let now = handle.now();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(message.url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("longshore/", env!("CARGO_PKG_VERSION")))
        .header(WEBHOOK_ID, id)
        .header(WEBHOOK_TIMESTAMP, seconds(now));
    if let Some(signature) = handle.signature(id, now, &message.body) {
        request = request.header(WEBHOOK_SIGNATURE, signature);
    }
    request.body(Bytes::from(message.body)).map_err(|error| error.to_string())
}

/// Returns the result of an attempt whose job cannot be read.
fn unreadable(error: EndpointError) -> AttemptOutcome {
    match error {
        // The job or its endpoint is deleted, and with it the pending call.
        EndpointError::Refused(_) | EndpointError::Deleted => AttemptOutcome::NotPending,
        EndpointError::Unavailable(text)
        | EndpointError::CommitFailed(text)
        | EndpointError::Unreadable(text) => AttemptOutcome::Unreadable(text),
        EndpointError::NoRoom | EndpointError::NoSpace | EndpointError::Overloaded => {
            AttemptOutcome::Unreadable(error.to_string())
        }
        EndpointError::Damaged(_) => AttemptOutcome::Impossible(
            "stored data of the job is damaged on the server's disk; the server's log names the file"
                .to_owned(),
        ),
    }
}

/// Returns scheme, host and port of a URL, for logs: user info, path and query can hold secrets.
pub(super) fn origin_of(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default())
}

/// Returns the key of a receiver in the limiter: host in lower case, and port.
pub(super) fn receiver_key(url: &Uri) -> Arc<str> {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    format!("{host}:{}", url.port_u16().unwrap_or(default)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_scheme_host_and_port_alone() {
        let url = "https://user:hush@h.example:8443/hush?token=hush".parse().unwrap();
        assert_eq!(origin_of(&url), "https://h.example:8443");
        assert_eq!(origin_of(&"http://[::1]/a".parse().unwrap()), "http://[::1]");
    }

    #[test]
    fn receivers_are_distinguished_by_host_and_port() {
        for (url, key) in [
            ("https://H.example/a", "h.example:443"),
            ("http://h.example/b", "h.example:80"),
            ("http://u:p@h.example:8080/", "h.example:8080"),
        ] {
            assert_eq!(*receiver_key(&url.parse().unwrap()), *key);
        }
    }
}
