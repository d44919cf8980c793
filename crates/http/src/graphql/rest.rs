//! A client of the management API inside the server.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, Request};
use axum::middleware::from_fn_with_state;
use longshore_engine::TrackedKey;
use serde_json::Value;
use tower::ServiceExt as _;

use super::{FieldError, Resolved};
use crate::HttpState;
use crate::management::{audit_trail, full_disk};
use crate::sessions::CONSOLE_HEADER;
use crate::wire::request_id::RequestId;

/// Longest response of the management API, in bytes. The longest ones are lists.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The management API, called with the credential of the client.
pub(super) struct ManagementClient {
    pub(super) state: HttpState,
    /// The key of the GraphQL request, whose rights the calls have.
    pub(super) key: Arc<TrackedKey>,
    router: Router,
    /// The headers with the client's key or session.
    credential: HeaderMap,
    request_id: Option<RequestId>,
}

impl ManagementClient {
    pub(super) fn new(
        state: HttpState,
        headers: &HeaderMap,
        request_id: Option<RequestId>,
        key: Arc<TrackedKey>,
    ) -> Self {
        let groups = crate::management::groups().into_iter().map(crate::openapi::Group::routes);
        // Each change is an entry of its own in the audit log.
        let router = groups
            .fold(Router::new(), Router::merge)
            .layer(from_fn_with_state(state.clone(), full_disk::refuse))
            .layer(from_fn_with_state(state.clone(), audit_trail::watch))
            .with_state(state.clone());
        Self { router, credential: credential(headers), request_id, state, key }
    }

    pub(super) async fn get(&self, path: &str) -> Resolved {
        self.send(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Resolved {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Resolved {
        self.send(Method::PATCH, path, Some(body)).await
    }

    /// Sends DELETE and returns null.
    pub(super) async fn delete(&self, path: &str) -> Resolved {
        self.send(Method::DELETE, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Resolved {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request =
            Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.credential {
            request = request.header(name, value);
        }
        let failed = |what: &str| FieldError::new(format!("the management API {what}"));
        if let Some(request_id) = &self.request_id {
            request = request.extension(request_id.clone());
        }
        let request = request.body(body).map_err(|_| failed("has no such path"))?;
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), ANSWER_BYTES_MAX)
            .await
            .map_err(|_| failed("answered too much"))?;
        let answer = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(answer);
        }
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Err(FieldError { message: text("error"), code: text("code"), unauthorized: status.as_u16() == 401 })
    }
}

/// The headers of a request with its key or its session.
fn credential(headers: &HeaderMap) -> HeaderMap {
    let is_credential = |name: &HeaderName| [AUTHORIZATION, COOKIE, CONSOLE_HEADER].contains(name);
    let sent = headers.iter().filter(|(name, _)| is_credential(name));
    sent.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// An id as one segment of a path, with all other characters escaped.
pub(super) fn segment(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20")
}
