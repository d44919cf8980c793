//! The edge: requests of all routes pass it. It rejects ambiguous heads, normalizes paths, catches panics,
//! gives errors one shape, and writes one log line.

pub(crate) mod ambiguous_head;
mod cors;
pub(crate) mod probes;

use std::convert::Infallible;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use http::header::{ALLOW, CONTENT_TYPE, COOKIE};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri};
use tower::{Service, ServiceExt as _};
use tracing::Instrument as _;

use crate::gate::session_admission;
use crate::services::open_connections::OpenConnection;
use crate::wire::BoxResponse;
use crate::wire::api_error::ApiError;
use crate::wire::base_path::without_base;
use crate::wire::gunzip::unpack;
use crate::wire::request_id::{self, REQUEST_ID, RequestId, Trace, WithoutRequestId};
use crate::wire::submit_trace;
use crate::{HttpState, fast_path, lb, openai};

use self::cors::Cors;
pub use self::cors::Origins;

/// The part of the API that one listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Every route of the server.
    All,
    /// The routes of clients and workers: all but `/v1`, `/graphql`, `/console` and `/metrics`.
    Jobs,
}

impl Surface {
    /// Whether this listener serves the path.
    pub(crate) fn has(self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Jobs => !matches!(path.split('/').nth(1), Some("v1" | "graphql" | "console" | "metrics")),
        }
    }
}

/// The routes behind the edge. Cheap to clone.
#[derive(Clone)]
pub struct Edge {
    routes: Router,
    fast_path: Option<HttpState>,
    origins: Option<Arc<Origins>>,
    surface: Surface,
}

impl Edge {
    /// Wraps the routes in an edge.
    pub(crate) fn around(routes: Router) -> Self {
        Self { routes, fast_path: None, origins: None, surface: Surface::All }
    }

    /// Lets requests for the routes that every job passes bypass the router.
    pub(crate) fn with_fast_path(self, state: HttpState) -> Self {
        Self { fast_path: Some(state), ..self }
    }

    /// Lets web pages of these origins call the server. `None`: no page may.
    #[must_use]
    pub fn with_origins(self, origins: Option<Origins>) -> Self {
        Self { origins: origins.map(Arc::new), ..self }
    }

    /// The same routes, of which this listener serves those of `surface`; the others get 404.
    #[must_use]
    pub fn restricted_to(&self, surface: Surface) -> Self {
        Self { surface, ..self.clone() }
    }

    /// Counts a connection until the returned value is dropped.
    pub(crate) fn count_connection(&self) -> Option<OpenConnection> {
        self.fast_path.as_ref().map(|state| state.connections().open())
    }

    /// Returns the response to one request. Work that needs no waiting is done before the future is returned, which
    /// keeps the request out of the future.
    pub(crate) fn answer(
        &self,
        mut request: Request,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
        let state = self.fast_path.as_ref();
        let balanced = state.and_then(|state| lb::route::target(state, request.uri(), request.headers()));
        // What is forwarded stays as the client wrote it.
        if balanced.is_none()
            && let Some(uri) = with_plain_path(request.uri(), self.base())
        {
            *request.uri_mut() = uri;
        }
        let mut log = RequestLog::of(&request, self.origins.as_deref());
        let response = catch_unwind(AssertUnwindSafe(|| match balanced {
            Some(target) => self.forward(target, request, &mut log),
            None => self.route(request, &mut log),
        }));
        let response = response.ok();
        CatchPanic { response }.map(move |response| Ok(log.close(response)))
    }

    /// The base path that requests may have before their path; empty if there is none.
    fn base(&self) -> &str {
        self.fast_path.as_ref().map_or("", |state| &state.console().base)
    }

    /// Answers a request to a load-balancing endpoint. Workers decide about its CORS, encoding and errors.
    fn forward(&self, target: lb::route::Target, request: Request, log: &mut RequestLog) -> BoxResponse {
        let Some(state) = &self.fast_path else {
            return Box::pin(ready(ApiError::no_such_route().into_response()));
        };
        log.is_forwarded = true;
        log.cors = None;
        log.fast_path = Some((state.clone(), lb::PATTERN));
        match ambiguous_head::check(&request) {
            Ok(()) => lb::answer(state, target, request, &log.id, self.surface == Surface::All),
            Err(ambiguous) => Box::pin(ready(ambiguous.into_response())),
        }
    }

    fn route(&self, request: Request, log: &mut RequestLog) -> BoxResponse {
        if let Err(ambiguous) = ambiguous_head::check(&request) {
            log.is_openai = openai::is_address(request.uri().path());
            return Box::pin(ready(ambiguous.into_response()));
        }
        // Of the clients only browsers send cookies.
        let permit = match &self.fast_path {
            Some(state) if request.headers().contains_key(COOKIE) => {
                match session_admission::admit(state, request.headers()) {
                    Ok(permit) => permit,
                    Err(exceeded) => return Box::pin(ready(exceeded.into_response())),
                }
            }
            _ => None,
        };
        let response = self.respond(request, log);
        match permit {
            None => response,
            Some(permit) => {
                Box::pin(response.map(move |response| session_admission::close(permit, response)))
            }
        }
    }

    fn respond(&self, mut request: Request, log: &mut RequestLog) -> BoxResponse {
        unpack(&mut request);
        let mut request = match &self.fast_path {
            Some(state) => match fast_path::answer(state, request) {
                Ok((pattern, response)) => {
                    log.fast_path = Some((state.clone(), pattern));
                    return response;
                }
                Err(request) => request,
            },
            None => request,
        };
        log.is_openai = openai::is_address(request.uri().path());
        if log.method == Method::OPTIONS {
            let preflight = log.cors.as_ref().and_then(|cors| cors.preflight(&log.method, request.headers()));
            return Box::pin(ready(preflight.unwrap_or_else(options)));
        }
        if !self.surface.has(request.uri().path()) {
            return Box::pin(ready(ApiError::no_such_route().into_response()));
        }
        request.extensions_mut().insert(log.id.clone());
        // Log lines of the handler carry the request's id. The fast path has no span: it costs 2 000 instructions.
        let trace = log.trace.as_ref().map(tracing::field::display);
        let span = tracing::info_span!("request", id = %log.id, trace);
        let response = self.routes.clone().oneshot(request).instrument(span);
        Box::pin(response.map(|answered| match answered {
            Ok(response) => response,
        }))
    }
}

impl Service<Request> for Edge {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(self.answer(request))
    }
}

/// The facts about a request that its log line and its response need.
struct RequestLog {
    id: RequestId,
    trace: Option<Trace>,
    method: Method,
    cors: Option<Cors>,
    is_openai: bool,
    /// A worker answers, and its response stays as it is.
    is_forwarded: bool,
    /// Set if the request took the fast path: where it is counted, and its route's pattern.
    fast_path: Option<(HttpState, &'static str)>,
    /// When the request arrived.
    began: Instant,
    /// Its path; `None` if the log level is above debug.
    logged: Option<String>,
}

impl RequestLog {
    fn of(request: &Request, origins: Option<&Origins>) -> Self {
        let (id, trace) = request_id::of(request.headers());
        // Cookies count below `/console` alone without another header, so no other page may call that.
        let origins = origins.filter(|_| !request.uri().path().starts_with("/console"));
        let cors = origins.map(|origins| Cors::of(origins, request.headers()));
        // Neither the query nor a header is logged: both can have secrets.
        let logged = tracing::enabled!(tracing::Level::DEBUG).then(|| request.uri().path().to_owned());
        let method = request.method().clone();
        Self {
            id,
            trace,
            method,
            cors,
            is_openai: false,
            is_forwarded: false,
            fast_path: None,
            began: Instant::now(),
            logged,
        }
    }

    /// Turns a handler's response into the one that the client gets. `None`: the handler panicked.
    fn close(self, answered: Option<Response>) -> Response {
        let Self { id, trace, method, began, .. } = self;
        let mut answered = answered;
        if let (Some((state, pattern)), Some(response)) = (self.fast_path, &mut answered) {
            state.requests().count(pattern, &method, response.status(), began.elapsed());
            submit_trace::send(response, state.engine(), pattern, began);
        }
        let response = answered.unwrap_or_else(|| {
            tracing::error!(request = %id, %method, "handler panicked");
            ApiError::internal().into_response()
        });
        let is_made = response.extensions().get::<lb::MadeByWorker>().is_some();
        let is_forwarded = self.is_forwarded || is_made;
        let mut response = if is_forwarded { response } else { in_shape(response) };
        if is_forwarded {
            // Errors of workers are theirs.
        } else if self.is_openai {
            // A 500 of these routes is a worker's error, not the server's.
            response = openai::reshape(response);
        } else if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
            let trace = trace.as_ref().map(tracing::field::display);
            tracing::error!(request = %id, trace, "request failed");
        }
        if response.status() == StatusCode::UNAUTHORIZED && !is_forwarded {
            // The router adds `Allow` where a path exists, which a client without a key must not learn.
            response.headers_mut().remove(ALLOW);
        }
        if response.extensions().get::<WithoutRequestId>().is_none() {
            response.headers_mut().insert(REQUEST_ID, id.header());
        }
        if let Some(cors) = self.cors {
            cors.mark(response.headers_mut());
        }
        if let Some(path) = self.logged {
            let status = response.status().as_u16();
            let ms = began.elapsed().as_millis() as u64;
            let trace = trace.as_ref().map(tracing::field::display);
            tracing::debug!(request = %id, trace, %method, path, status, ms, "answered");
        }
        if let Some(trace) = trace.filter(|_| !is_forwarded) {
            trace.mark(response.headers_mut());
        }
        response
    }
}

/// Returns the URI with single slashes and none at the end of its path, without the base path; `None` if it has that form
/// already. Clients join a base address and a path, and a redirect would turn their POST into a GET.
fn with_plain_path(uri: &Uri, base: &str) -> Option<Uri> {
    let path = uri.path();
    let has_base = !base.is_empty() && without_base(path, base).is_some();
    if !has_base && !path.contains("//") && (path.len() <= 1 || !path.ends_with('/')) {
        return None;
    }
    let mut plain = String::with_capacity(uri.to_string().len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        plain.push('/');
        plain.push_str(segment);
    }
    if without_base(&plain, base).is_some() {
        plain.drain(..base.len());
    }
    if plain.is_empty() {
        plain.push('/');
    }
    if let Some(query) = uri.query() {
        plain.push('?');
        plain.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(plain).ok()?);
    Uri::from_parts(parts).ok()
}

/// `OPTIONS` needs no key: the response lists the server's methods and reveals no resource.
fn options() -> Response {
    let allow = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE, OPTIONS");
    (StatusCode::NO_CONTENT, [(ALLOW, allow)]).into_response()
}

/// Gives an error from below the handlers (an extractor's) the one shape of errors.
fn in_shape(response: Response) -> Response {
    let status = response.status();
    let is_report = response.extensions().get::<probes::Report>().is_some();
    if is_report || (!status.is_client_error() && !status.is_server_error()) {
        return response;
    }
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/"));
    if is_json {
        return response;
    }
    let sentence = status.canonical_reason().unwrap_or("error").to_lowercase();
    let code = if status.is_client_error() { "bad_request" } else { "internal" };
    ApiError::new(status, code, format!("the request cannot be served: {sentence}")).into_response()
}

/// Resolves to `None` if the handler panics, or has panicked before.
struct CatchPanic {
    response: Option<BoxResponse>,
}

impl Future for CatchPanic {
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Response>> {
        let Some(response) = &mut self.response else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| response.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}
