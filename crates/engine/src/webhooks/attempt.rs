//! One attempt: build the body, sign it, send it, see what the receiver says.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, Method, Request, StatusCode, Uri};
use longshore_model::{JobId, JobState, Millis, WebhookEvent};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::body::{self, BodyContext, Message};
use super::limiter::{CallLimiter, CallPermit, NoPermit};
use super::log::{DeliveryAttempt, webhook_id};
use super::signing::seconds;
use super::transport::{TransportError, TransportResponse};
use super::{PendingCall, WebhookSettings, WebhookSource, WebhookTransport};
use crate::{EndpointError, JobSnapshot};

/// Bodies being built at a time: each may need the whole input and output of a job in memory.
const BUILDS_MAX: usize = 4;

/// What users are told of a call that may not be made.
const FORBIDDEN: &str = "the receiver has no public address, and the server's settings allow no private ones";

/// How an attempt went.
pub(super) enum AttemptOutcome {
    /// The receiver said 200.
    Accepted(SentAttempt),
    /// It said something else, or nothing.
    Failed(SentAttempt),
    /// Nobody was called, for the receiver may not be.
    Refused(SentAttempt),
    /// It can never be made; the text says why.
    Impossible(String),
    /// Nobody is owed this call any more.
    NotPending,
    /// The endpoint does not tell anybody of such an end.
    NotWanted,
    /// The job could not be read now.
    Unreadable(String),
    /// There is no room now; the body was dropped.
    NoPermit(Arc<str>, NoPermit),
}

/// An attempt that was made.
pub(super) struct SentAttempt {
    pub permit: CallPermit,
    /// The receiver had not answered for long, and did now.
    pub is_back: bool,
    /// Scheme, host and port of the receiver.
    pub receiver: String,
    pub attempt: DeliveryAttempt,
}

/// Makes attempts.
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
    pub fn new(settings: &WebhookSettings, limiter: CallLimiter, post: Arc<dyn WebhookTransport>) -> Self {
        Self {
            transport: post,
            timeout: settings.timeout,
            body_bytes_max: settings.body_bytes_max,
            public_url: settings.public_url.trim_end_matches('/').into(),
            builds: Arc::new(Semaphore::new(BUILDS_MAX)),
            limiter,
        }
    }

    /// Makes one attempt to tell how a job ended.
    pub async fn attempt<H: WebhookSource>(&self, due: &PendingCall<H>) -> AttemptOutcome {
        let number = due.attempts + 1;
        let end = due.end;
        let is_owed = |job: &JobSnapshot| job.row.pending_end() == Some(end);
        let prepared = self.prepare(&due.handle, due.job, is_owed, || webhook_id(due.job, end));
        match prepared.await {
            Ok((call, slot)) => self.call(call, slot, number, due.handle.now()).await,
            Err(outcome) => outcome,
        }
    }

    /// Makes one attempt to tell how far a job is.
    pub async fn tell_progress<H: WebhookSource>(&self, handle: &H, job: JobId) -> AttemptOutcome {
        let now = handle.now();
        let is_running = |job: &JobSnapshot| job.row.state == JobState::InProgress;
        let prepared = self.prepare(handle, job, is_running, || format!("{job}-progress-{}", now.0));
        match prepared.await {
            Ok((call, slot)) => self.call(call, slot, 1, now).await,
            Err(outcome) => outcome,
        }
    }

    async fn call(
        &self,
        call: Request<Bytes>,
        mut slot: CallPermit,
        attempt: u32,
        at: Millis,
    ) -> AttemptOutcome {
        let receiver = place_of(call.uri());
        let id =
            call.headers().get(WEBHOOK_ID).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        let started = Instant::now();
        let answer = tokio::time::timeout(self.timeout, self.transport.post(call)).await;
        let latency_ms = started.elapsed().as_millis() as u64;
        let answer =
            answer.unwrap_or_else(|_| Err(TransportError::NoResponse("no answer in time".to_owned())));
        let is_accepted = matches!(&answer, Ok(TransportResponse { status: StatusCode::OK, .. }));
        let is_refused = matches!(&answer, Err(TransportError::Forbidden(_)));
        let is_back = match &answer {
            Ok(_) => slot.answered(),
            Err(TransportError::NoResponse(_)) => {
                slot.record_failure();
                false
            }
            Err(TransportError::Forbidden(_)) => false,
        };
        let (status, body, error) = match answer {
            Ok(TransportResponse { status, body }) => (Some(status.as_u16()), Some(body), None),
            Err(TransportError::NoResponse(text)) => (None, None, Some(text)),
            Err(TransportError::Forbidden(text)) => {
                // Which addresses names have inside is the operator's business alone.
                tracing::info!(%id, %receiver, error = %text, "webhook refused");
                (None, None, Some(FORBIDDEN.to_owned()))
            }
        };
        tracing::info!(%id, attempt, latency_ms, %receiver, ?status, ?error, "webhook called");
        let answer = body.map(|body| String::from_utf8_lossy(&body).into_owned());
        let attempt = DeliveryAttempt { attempt, at, latency_ms, status, answer, error };
        let made = SentAttempt { permit: slot, is_back, receiver, attempt };
        match (is_accepted, is_refused) {
            (true, _) => AttemptOutcome::Accepted(made),
            (_, true) => AttemptOutcome::Refused(made),
            _ => AttemptOutcome::Failed(made),
        }
    }

    /// Builds the call and finds room for it.
    async fn prepare<H: WebhookSource>(
        &self,
        handle: &H,
        job: JobId,
        is_news: impl Fn(&JobSnapshot) -> bool,
        id: impl FnOnce() -> String,
    ) -> Result<(Request<Bytes>, CallPermit), AttemptOutcome> {
        let Ok(_building) = self.builds.acquire().await else {
            return Err(AttemptOutcome::Unreadable("the server is stopping".to_owned()));
        };
        let snapshot = handle.status(job).await.map_err(unread)?;
        if !is_news(&snapshot) {
            return Err(AttemptOutcome::NotPending);
        }
        let endpoint = handle.endpoint();
        let event = WebhookEvent::of(snapshot.row.state);
        if !event.is_some_and(|event| endpoint.webhook_events.contains(&event)) {
            return Err(AttemptOutcome::NotWanted);
        }
        let members = handle.members(job).await.map_err(unread)?;
        let status_url = format!("{}/v2/{}/status/{job}", self.public_url, endpoint.id);
        let frame = BodyContext {
            webhook: endpoint.webhook.as_deref(),
            bytes_max: self.body_bytes_max,
            status_url: &status_url,
        };
        let message = body::build(&snapshot, &members, &frame).map_err(AttemptOutcome::Impossible)?;
        let host = host_of(&message.url);
        match self.limiter.enter(&host, message.body.len()) {
            Ok(slot) => Ok((request(handle, message, &id()).map_err(AttemptOutcome::Impossible)?, slot)),
            Err(crowded) => Err(AttemptOutcome::NoPermit(host, crowded)),
        }
    }
}

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

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

fn unread(error: EndpointError) -> AttemptOutcome {
    match error {
        // The job or its endpoint was deleted: nobody waits for this call any more.
        EndpointError::Refused(_) | EndpointError::Deleted => AttemptOutcome::NotPending,
        EndpointError::Unavailable(text) | EndpointError::Unreadable(text) => {
            AttemptOutcome::Unreadable(text)
        }
        EndpointError::NoRoom => AttemptOutcome::Unreadable(error.to_string()),
        EndpointError::Damaged(_) => AttemptOutcome::Impossible(
            "what is stored of the job is damaged on the server's disk; the server's log says where"
                .to_owned(),
        ),
    }
}

/// Where a call goes, for the log: paths and queries hold secrets often enough.
fn place_of(url: &Uri) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default())
}

/// The receiver, as calls to it share room and luck: host and port.
fn host_of(url: &Uri) -> Arc<str> {
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
        assert_eq!(place_of(&url), "https://h.example:8443");
        assert_eq!(place_of(&"http://[::1]/a".parse().unwrap()), "http://[::1]");
    }

    #[test]
    fn receivers_are_told_apart_by_host_and_port() {
        for (url, lane) in [
            ("https://H.example/a", "h.example:443"),
            ("http://h.example/b", "h.example:80"),
            ("http://u:p@h.example:8080/", "h.example:8080"),
        ] {
            assert_eq!(*host_of(&url.parse().unwrap()), *lane);
        }
    }
}
