//! Sends a request to a worker, and again only where that is safe.

use std::borrow::Cow;
use std::error::Error as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use longshore_engine::{Balancer, BalancerOutcome, Link, RequestBody, RequestSlot, may_send_again};
use longshore_model::LbSettings;
use tokio::time::Instant;

use super::error::LbError;
use super::request_head::{Context, mark_chunked};
use super::streamed::StreamedBody;
use super::trace::RequestTrace;
use super::upload::Progress;
use super::{MadeByWorker, refused, response_head, tunnel, websocket};
use crate::gate::interim::Interims;
use crate::gate::rate_limits::RequestPermit;
use crate::wire::request_id::RequestId;

/// The pause before the only worker is tried again.
const SAME_WORKER_PAUSE: Duration = Duration::from_millis(100);

/// A request in flight, with what decides how it is forwarded.
pub(super) struct Forwarding {
    pub(super) balancer: Arc<Balancer>,
    pub(super) rules: ForwardingRules,
    /// Counts the request until it has ended.
    pub(super) permit: Option<RequestPermit>,
    pub(super) place: ResponsePlace,
    /// What the client's path had before the worker's path.
    pub(super) prefix: Option<String>,
    /// The place of the request in its trace; `None` if the server sends no traces.
    pub(super) trace: Option<RequestTrace>,
    pub(super) id: RequestId,
}

/// The settings of an endpoint that decide how a request is forwarded.
#[derive(Clone, Copy)]
pub(super) struct ForwardingRules {
    /// The longest time until the head of the response.
    request_timeout: Duration,
    /// The longest pause of a response or of an upgraded connection, in ms; 0: no limit.
    idle_timeout_ms: u64,
    pass_authorization: bool,
}

/// What the address of a response means for it.
#[derive(Clone, Copy)]
pub(super) struct ResponsePlace {
    /// It has the origin of the console, whose rights it must not have.
    pub(super) is_sandboxed: bool,
    /// The server answers other requests to the address itself.
    pub(super) is_shared: bool,
}

/// A request as workers get it, all but its `Host`.
struct Prepared {
    /// `None` while it is being sent.
    request: Option<http::Request<RequestBody>>,
    /// The progress of the body; `None` without a body.
    progress: Option<Arc<Progress>>,
    /// The client's side of an upgrade; `None` if the client asks for none.
    on_upgrade: Option<OnUpgrade>,
    /// Whether the client offered the server's protocol for a WebSocket.
    offered: bool,
    /// Whether the client knows interim responses, as those of HTTP/1.1 do.
    takes_interims: bool,
}

/// A response of a worker, with the connection that it comes over.
struct Answer {
    response: http::Response<Incoming>,
    link: Link,
    slot: RequestSlot,
    /// When the worker was chosen.
    began: Instant,
}

/// A request that a repetition may send: the head, for a method that changes nothing and has no body.
struct Repeatable {
    method: Method,
    uri: Uri,
    /// A list, because a copy of a map costs more, and few are sent.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The result of sending a request over one connection.
enum Sent {
    Answered(Box<http::Response<Incoming>>),
    /// Nothing of the request was sent.
    Unsent(Box<http::Request<RequestBody>>),
    /// The worker closed the connection, and the client got nothing.
    Unanswered,
    Lost(LbError),
}

impl Forwarding {
    /// Answers the request with the response of a worker. The request is prepared before the future is returned, which keeps it
    /// out of the future.
    pub(super) fn run(
        self,
        context: Context,
        path: PathAndQuery,
        request: Request,
    ) -> impl Future<Output = Response> + Send {
        let prepared = Prepared::of(context, self.rules, path, request);
        self.run_prepared(prepared)
    }

    async fn run_prepared(mut self, mut prepared: Prepared) -> Response {
        let balancer = Arc::clone(&self.balancer);
        let trace = self.trace.take();
        if let (Some(trace), Some(request)) = (&trace, &mut prepared.request) {
            trace.mark(request.headers_mut());
        }
        match self.answer(&mut prepared).await {
            Err(error) => {
                let response = refused(&balancer, &self.id, error);
                if let Some(trace) = trace {
                    trace.end(response.status(), None);
                }
                response
            }
            Ok(answer) => {
                if let Some(trace) = trace {
                    trace.end(answer.response.status(), Some(answer.slot.worker().id()));
                }
                let now = Instant::now();
                balancer.metrics().count(BalancerOutcome::Answered(answer.response.status()), now);
                balancer.metrics().first_byte(now.duration_since(answer.began).as_millis() as u64);
                self.respond(answer, prepared)
            }
        }
    }

    /// Waits for a worker and sends the request.
    async fn answer(&self, prepared: &mut Prepared) -> Result<Answer, LbError> {
        let Prepared { request, progress, takes_interims, .. } = prepared;
        let (progress, takes_interims) = (progress.as_deref(), *takes_interims);
        let repeatable = request.as_ref().filter(|_| progress.is_none()).and_then(Repeatable::of);
        let declared = request.as_ref().and_then(|request| declared_length(request.headers()));
        let mut slot = self.balancer.admit(declared).await.map_err(LbError::NotAdmitted)?;
        let mut needs_fresh = false;
        let mut retries = 0;
        loop {
            let began = Instant::now();
            let linked = if needs_fresh {
                Box::pin(slot.worker().links().fresh()).await
            } else {
                slot.worker().links().link(began).await
            };
            let mut link = match linked {
                Ok(link) => link,
                Err(error) => {
                    self.balancer.unreachable(&slot, &format!("connect: {error}"));
                    if !may_send_again(retries, false, repeatable.is_some()) {
                        return Err(LbError::Unreachable);
                    }
                    retries += 1;
                    self.balancer.metrics().retried();
                    slot = Box::pin(self.another(slot, declared)).await?;
                    continue;
                }
            };
            let Some(sending) = request.take() else { return Err(LbError::Closed) };
            match self.send(&mut link, &slot, sending, began, progress, takes_interims).await {
                Sent::Answered(response) => {
                    return Ok(Answer { response: *response, link, slot, began });
                }
                Sent::Unsent(unsent) if may_send_again(retries, false, repeatable.is_some()) => {
                    *request = Some(*unsent);
                }
                Sent::Unanswered if may_send_again(retries, true, repeatable.is_some()) => {
                    *request = repeatable.as_ref().map(Repeatable::again);
                }
                Sent::Unsent(_) | Sent::Unanswered => return Err(LbError::Closed),
                Sent::Lost(error) => return Err(error),
            }
            // An idle connection that its worker had closed: a new one says whether the worker is there.
            needs_fresh = true;
            retries += 1;
            self.balancer.metrics().retried();
            if !self.balancer.is_serving(&slot) {
                slot = Box::pin(self.another(slot, declared)).await?;
                needs_fresh = false;
            }
        }
    }

    /// Another worker than the one that could not be reached, or that one again if there is no other.
    async fn another(&self, tried: RequestSlot, declared: Option<u64>) -> Result<RequestSlot, LbError> {
        if let Some(other) = self.balancer.another(&tried) {
            return Ok(other);
        }
        drop(tried);
        tokio::time::sleep(SAME_WORKER_PAUSE).await;
        self.balancer.admit(declared).await.map_err(LbError::NotAdmitted)
    }

    async fn send(
        &self,
        link: &mut Link,
        slot: &RequestSlot,
        mut request: http::Request<RequestBody>,
        now: Instant,
        progress: Option<&Progress>,
        takes_interims: bool,
    ) -> Sent {
        let host = slot.worker().host();
        request.headers_mut().insert(HOST, host.clone());
        let limit = self.rules.request_timeout;
        let interims = takes_interims.then(|| Interims::of(&mut request));
        // Each is in its place from the start: they are large, and moves of them cost.
        let (sender, deadline) = link.parts();
        let sending = pin!(sender.try_send_request(request));
        let answering = pin!(async {
            match &interims {
                Some(interims) => interims.relay(sending, |headers| self.rewrite(headers, host)).await,
                None => sending.await,
            }
        });
        let answered = match progress {
            None => deadline.limit(now + limit, answering).await.ok_or(LbError::TimedOut),
            Some(progress) => progress.limit(deadline, limit, answering).await,
        };
        match answered {
            Err(error) => Sent::Lost(error),
            Ok(Ok(response)) if !response_head::is_decoded(response.headers()) => {
                Sent::Lost(LbError::BadAnswer("its `Transfer-Encoding` is not `chunked`".into()))
            }
            Ok(Ok(response)) => Sent::Answered(Box::new(response)),
            Ok(Err(mut error)) => match error.take_message() {
                Some(request) => Sent::Unsent(Box::new(request)),
                // The body is the client's.
                None if error.error().is_user() => Sent::Lost(LbError::BadBody),
                None if error.error().is_parse() => Sent::Lost(LbError::BadAnswer(reason(error.error()))),
                None if interims.as_ref().is_some_and(|interims| interims.has_any()) => {
                    Sent::Lost(LbError::Closed)
                }
                None => Sent::Unanswered,
            },
        }
    }

    /// Makes the headers of a worker's response those that the client gets.
    fn rewrite(&self, headers: &mut HeaderMap, host: &HeaderValue) {
        response_head::rewrite(headers, self.prefix.as_deref(), host, self.place.is_sandboxed);
    }

    /// The response for the client.
    fn respond(self, answer: Answer, prepared: Prepared) -> Response {
        let Prepared { on_upgrade, offered, progress, .. } = prepared;
        let Answer { mut response, link, slot, began } = answer;
        let is_switch = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let is_websocket = websocket::is_chosen(response.headers());
        let upgraded = is_switch.then(|| hyper::upgrade::on(&mut response));
        self.rewrite(response.headers_mut(), slot.worker().host());
        *response.version_mut() = Version::HTTP_11;
        if self.place.is_shared {
            response.extensions_mut().insert(MadeByWorker);
        }
        let (mut parts, body) = response.into_parts();
        if let Some(worker) = upgraded {
            // Without a request for it, a worker may not leave HTTP.
            let Some(client) = on_upgrade.filter(|_| is_websocket) else {
                let error = LbError::BadAnswer(
                    "it leaves HTTP without being asked to, or not for a WebSocket".into(),
                );
                return refused(&self.balancer, &self.id, error);
            };
            if offered {
                websocket::choose_protocol(&mut parts.headers);
            }
            tunnel::mark(&mut parts.headers);
            tunnel::start(client, worker, self.rules.idle_timeout_ms, (slot, self.permit));
            return Response::from_parts(parts, Body::empty());
        }
        let idle_max = Some(self.rules.idle_timeout_ms).filter(|ms| *ms > 0).map(Duration::from_millis);
        let upload = progress.filter(|progress| !progress.is_whole());
        let body = StreamedBody::new(body, link, slot, idle_max, began, self.permit, upload);
        Response::from_parts(parts, Body::new(body))
    }
}

impl ForwardingRules {
    pub(super) fn of(settings: &LbSettings) -> Self {
        Self {
            request_timeout: Duration::from_millis(settings.request_timeout_ms),
            idle_timeout_ms: settings.idle_timeout_ms,
            pass_authorization: settings.pass_authorization,
        }
    }
}

impl Prepared {
    fn of(context: Context, rules: ForwardingRules, path: PathAndQuery, mut request: Request) -> Self {
        let on_upgrade = context.is_websocket.then(|| hyper::upgrade::on(&mut request));
        let takes_interims = request.version() >= Version::HTTP_11;
        let (mut parts, body) = request.into_parts();
        let mut headers = parts.headers;
        // What the client's connection knows is not for the worker's; the memory is used again.
        parts.extensions.clear();
        let offered = context.apply(&mut headers, rules.pass_authorization);
        mark_chunked(&mut headers, &body);
        let progress = (!body.is_end_stream()).then(|| Arc::new(Progress::default()));
        let body = match &progress {
            None => empty(),
            Some(progress) => progress.watch(body),
        };
        let mut out = http::Request::new(body);
        *out.method_mut() = parts.method;
        *out.uri_mut() = Uri::from(path);
        *out.headers_mut() = headers;
        *out.version_mut() = Version::HTTP_11;
        *out.extensions_mut() = parts.extensions;
        Self { request: Some(out), progress, on_upgrade, offered, takes_interims }
    }
}

fn empty() -> RequestBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

impl Repeatable {
    /// `None` for a request that may change something.
    fn of(request: &http::Request<RequestBody>) -> Option<Self> {
        let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        is_safe.then(|| Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }

    fn again(&self) -> http::Request<RequestBody> {
        let mut request = http::Request::new(empty());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        request
    }
}

/// What is wrong with a response.
fn reason(error: &hyper::Error) -> Cow<'static, str> {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    why.into()
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
