//! The router without a socket, with a paused clock: every response comes immediately, however long it would be held,
//! and only requests cause changes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use longshore_blobs::MemoryBlobs;
use longshore_engine::{Engine, Runtime};
use longshore_history::History;
use longshore_model::{EndpointId, Millis};
use longshore_store::MemoryStore;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::fake_files::FakeFiles;
use super::fixture::engine_parts;
use crate::{Edge, HttpSettings, HttpState, RateLimits, admin_key, router};

pub(super) const ADMIN: &str = "the operators own key";

/// A runtime whose clocks stand still.
struct PausedRuntime;

impl Runtime for PausedRuntime {
    fn wall_clock(&self) -> Millis {
        Millis(1_700_000_000_000)
    }

    fn monotonic_clock(&self) -> Duration {
        Duration::ZERO
    }
}

/// A server with two endpoints, `demo` and `other`, that external workers may work for.
pub(super) struct Direct {
    pub(super) engine: Engine,
    pub(super) endpoint: EndpointId,
    pub(super) other: EndpointId,
    pub(super) edge: Edge,
    /// What the endpoints did, which is recorded when a test samples it.
    pub(super) history: Arc<History>,
}

/// A response with its whole body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Direct {
    /// A server with a new store. Must run in a runtime whose time is paused.
    pub(super) async fn start() -> Self {
        Self::start_on(Arc::new(MemoryStore::new())).await
    }

    /// A server with an empty store that outlives the server.
    pub(super) async fn start_on(store: Arc<MemoryStore>) -> Self {
        let mut direct = Self::bare(store).await;
        let template = direct.manage("/v1/templates", r#"{"name":"t","env":{"TOKEN":"Hush, hush!"}}"#).await;
        let template = &template["id"];
        let create = |slug| {
            format!(
                r#"{{"name":"{slug}","slug":"{slug}","templateId":{template},"provider":"external","models":["m"]}}"#
            )
        };
        direct.endpoint = id_of(&direct.manage("/v1/endpoints", &create("demo")).await);
        direct.other = id_of(&direct.manage("/v1/endpoints", &create("other")).await);
        direct
    }

    /// A server with a store that such a server has filled.
    pub(super) async fn again_on(store: Arc<MemoryStore>) -> Self {
        let mut direct = Self::bare(store).await;
        let id = |slug| direct.engine.endpoint(slug).unwrap().record().id;
        (direct.endpoint, direct.other) = (id("demo"), id("other"));
        direct
    }

    async fn bare(store: Arc<MemoryStore>) -> Self {
        let parts = engine_parts(store, Arc::new(MemoryBlobs::new()), Arc::new(PausedRuntime));
        let engine = Engine::start(parts).await.unwrap();
        engine.keys().put(admin_key(ADMIN, Millis(0))).await.unwrap();
        let history = Arc::new(History::in_memory(Millis(0)));
        let settings = HttpSettings {
            history: Some(Arc::clone(&history)),
            rate_limits: RateLimits::Off,
            lb_domain: Some("apps.test".to_owned()),
            ..HttpSettings::default()
        };
        let edge = router(HttpState::with_files(engine.clone(), &settings, Arc::<FakeFiles>::default()));
        Self { engine, edge, endpoint: EndpointId::mint(0), other: EndpointId::mint(0), history }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Reply {
        let is_management = request.uri().path().starts_with("/v1");
        let response = self.edge.clone().oneshot(request).await.unwrap();
        let (parts, mut body) = response.into_parts();
        let is_events = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let body = if is_management && is_events {
            // The events of the server do not end.
            let first = body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
            first.unwrap_or_default()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        Reply { status: parts.status, headers: parts.headers, body }
    }

    /// A request with the operator's key.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        self.send(request(method, path, Some(&format!("Bearer {ADMIN}")), body.to_owned())).await
    }

    async fn manage(&self, path: &str, body: &str) -> Value {
        let reply = self.ask("POST", path, body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// All stored data that clients can see.
    pub(super) async fn content(&self) -> Vec<Bytes> {
        let mut content = Vec::new();
        for path in ["/v1/templates", "/v1/secrets", "/v1/endpoints?includeWorkers=true"] {
            content.push(self.ask("GET", path, "").await.body);
        }
        for endpoint in self.engine.endpoints() {
            let id = endpoint.record().id;
            for path in ["health", "requests?limit=100"] {
                content.push(self.ask("GET", &format!("/v2/{id}/{path}"), "").await.body);
            }
        }
        content
    }
}

pub(super) fn request(
    method: &str,
    path: &str,
    authorization: Option<&str>,
    body: impl Into<Body>,
) -> Request<Body> {
    let builder = Request::builder().method(method).uri(path).header("host", "test");
    let builder =
        authorization.into_iter().fold(builder, |builder, value| builder.header("authorization", value));
    builder.body(body.into()).unwrap()
}

fn id_of(record: &Value) -> EndpointId {
    record["id"].as_str().unwrap().parse().unwrap()
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of an error, which must have the one shape, or that of GraphQL if `/graphql` refuses a query.
    pub(super) fn code(&self) -> String {
        let body = self.json();
        if body.get("errors").is_some() {
            return self.graphql_code();
        }
        if let Some(code) = body["error"]["code"].as_str() {
            // The shape of the routes for OpenAI's clients.
            return code.to_owned();
        }
        if let Some(code) = body["errors"][0]["extensions"]["code"].as_str() {
            // The shape of GraphQL.
            return code.to_owned();
        }
        let names: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["code", "error"], "{self:?}");
        let text = body["error"].as_str().unwrap();
        assert!(!text.is_empty() && !text.ends_with('.') && text.len() < 2_000, "{text}");
        assert_eq!(self.status == 401, self.header("www-authenticate").is_some(), "{self:?}");
        assert_eq!(self.status == 405, self.header("allow").is_some(), "{self:?}");
        body["code"].as_str().unwrap().to_owned()
    }

    /// The code of a refused query, which names no field and shows no data, because nothing was looked up.
    pub(super) fn graphql_code(&self) -> String {
        assert_eq!(self.status, 400, "{self:?}");
        let body = self.json();
        let code = &body["errors"][0]["extensions"]["code"];
        let message = &body["errors"][0]["message"];
        let shape = json!({ "errors": [{ "message": message, "extensions": { "code": code } }] });
        assert_eq!(body, shape, "{self:?}");
        assert!(message.as_str().is_some_and(|text| !text.is_empty() && !text.ends_with('.')), "{self:?}");
        code.as_str().unwrap().to_owned()
    }
}

/// A body that records whether it was read.
pub(super) struct Watched {
    body: Bytes,
    read: Arc<AtomicBool>,
}

impl Watched {
    pub(super) fn body(body: &str) -> (Body, Arc<AtomicBool>) {
        let read = Arc::<AtomicBool>::default();
        let watched = Self { body: Bytes::copy_from_slice(body.as_bytes()), read: Arc::clone(&read) };
        (Body::new(watched), read)
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.read.store(true, Ordering::Relaxed);
        let body = std::mem::take(&mut self.body);
        Poll::Ready((!body.is_empty()).then(|| Ok(Frame::data(body))))
    }
}
