//! What every request passes, whatever its route: one spelling of its path, no panic that gets out, one error
//! shape, one log line.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tower::{Service, ServiceExt as _};

use crate::errors::Failure;
use crate::{HttpState, express, hex, keys};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The answer where no route is.
pub(crate) async fn unknown_route(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Failure {
    if is_guarded(&uri) && !keys::is_known_caller(&state, &headers) {
        return Failure::unauthorized();
    }
    Failure::no_such_route()
}

/// The answer where a route is, but not for this method.
pub(crate) async fn unknown_method(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Failure {
    if is_guarded(&uri) && !keys::is_known_caller(&state, &headers) {
        return Failure::unauthorized();
    }
    Failure::method_not_allowed()
}

/// Whether a stranger must not even learn that a path does not exist.
fn is_guarded(uri: &Uri) -> bool {
    let first = uri.path().split('/').nth(1);
    matches!(first, Some("v1" | "v2" | "sdk"))
}

/// A handler at work.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// An answer under way.
pub(crate) type Answered = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// The routes and what every request to them passes. Cheap to clone.
#[derive(Clone)]
pub struct Edge {
    routes: Router,
    express: Option<HttpState>,
}

impl Edge {
    /// Puts the edge around the routes.
    pub(crate) fn around(routes: Router) -> Self {
        Self { routes, express: None }
    }

    /// Lets requests for the routes that every job takes go past the router.
    pub(crate) fn with_express(self, state: HttpState) -> Self {
        Self { express: Some(state), ..self }
    }

    /// Answers one request.
    pub(crate) fn answer(&self, request: Request) -> Answered {
        Box::pin(answer(self.clone(), request))
    }

    async fn route(self, request: Request) -> Response {
        let request = match self.express {
            Some(state) => match express::answer(state, request) {
                Ok(answering) => return answering.await,
                Err(request) => request,
            },
            None => request,
        };
        // Boxed, so that the others have no room for it in their futures.
        let Ok(response) = Box::pin(self.routes.oneshot(request)).await;
        response
    }
}

impl Service<Request> for Edge {
    type Response = Response;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.answer(request)
    }
}

async fn answer(edge: Edge, mut request: Request) -> Result<Response, Infallible> {
    let id = next_request_id();
    let method = request.method().clone();
    if let Some(uri) = with_plain_path(request.uri()) {
        *request.uri_mut() = uri;
    }
    // Neither the query nor a header is logged: secrets can be in both.
    let logged =
        tracing::enabled!(tracing::Level::DEBUG).then(|| (Instant::now(), request.uri().path().to_owned()));
    let mut response = if method == Method::OPTIONS {
        options()
    } else {
        let guarded = CatchPanic { inner: pin!(edge.route(request)) };
        in_shape(guarded.await.unwrap_or_else(|| {
            tracing::error!(request = id, %method, "a handler panicked");
            Failure::internal().into_response()
        }))
    };
    if response.status() == StatusCode::UNAUTHORIZED {
        // The router adds it where a path exists: a stranger must not learn that.
        response.headers_mut().remove(ALLOW);
    }
    response.headers_mut().insert(REQUEST_ID, request_id(id));
    if let Some((began, path)) = logged {
        let status = response.status().as_u16();
        let ms = began.elapsed().as_millis() as u64;
        tracing::debug!(request = %format_args!("{id:016x}"), %method, path, status, ms, "answered");
    }
    Ok(response)
}

fn request_id(id: u64) -> HeaderValue {
    let mut digits = [0; 16];
    hex::write(&id.to_be_bytes(), &mut digits);
    // Digits are always a header's value.
    HeaderValue::from_bytes(&digits).unwrap_or(const { HeaderValue::from_static("unknown") })
}

/// Counts requests from a start that differs from run to run.
fn next_request_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<u64> = OnceLock::new();
    let start = START.get_or_init(|| RandomState::new().hash_one(0));
    start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The URI with single slashes and none at the end of its path; none if it is that way already. Clients build
/// both by joining a base address and a path, and a redirect would turn their POST into a GET.
fn with_plain_path(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    if !path.contains("//") && (path.len() <= 1 || !path.ends_with('/')) {
        return None;
    }
    let mut plain = String::with_capacity(uri.to_string().len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        plain.push('/');
        plain.push_str(segment);
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

/// `OPTIONS` needs no key: it tells what this server knows of methods, not what exists.
fn options() -> Response {
    let allow = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE, OPTIONS");
    (StatusCode::NO_CONTENT, [(ALLOW, allow)]).into_response()
}

/// Gives an error that was made below the handlers (an extractor's) the one shape.
fn in_shape(response: Response) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
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
    Failure::new(status, code, format!("the request cannot be served: {sentence}")).into_response()
}

/// Ends in none where the inner future panics.
struct CatchPanic<'a, F> {
    inner: Pin<&'a mut F>,
}

impl<F: Future<Output = Response>> Future for CatchPanic<'_, F> {
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Response>> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.inner.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}
