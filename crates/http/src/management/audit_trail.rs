//! Writes requests for changes to the audit log when they are answered.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use longshore_engine::{ChangeNote, noted};
use longshore_model::Millis;

use crate::HttpState;
use crate::audit::{CommittedEntry, Entry, Trail, with_trail};
use crate::gate::client;
use crate::wire::request_id::RequestId;
use crate::wire::rfc3339::rfc3339;

/// Writes an entry for each request that may change something under `/v1` or `/graphql`, and for bulk tasks. The requests under `/v1` that a
/// GraphQL request becomes have entries of their own; the GraphQL request has one only if it was refused.
pub(crate) async fn watch(State(state): State<HttpState>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD)
        && (path.starts_with("/v1/") || is_graphql(path) || is_bulk(path));
    let Some(log) = state.audit().filter(|_| changes) else { return next.run(request).await };
    let asked = Arc::new(AskedChange {
        path: path.to_owned(),
        method: request.method().to_string(),
        address: client::address(&state, request.headers()).map(|client| client.address.to_string()),
        request_id: request.extensions().get::<RequestId>().map(ToString::to_string),
    });
    let of = Arc::clone(&asked);
    let committed = CommittedEntry::in_database(log, state.engine(), move |at, trail, made| {
        // A new resource has no id in the path.
        let resource = resource(&of.path, made.filter(|_| !names_resource(&of.path)));
        of.entry(at, trail, resource, "done")
    });
    let committed = committed.map(Arc::new);
    let task = next.run(request);
    let (response, trail) = match &committed {
        Some(entry) => with_trail(noted(Arc::clone(entry) as Arc<dyn ChangeNote>, task)).await,
        None => with_trail(task).await,
    };
    let (is_known, status) = (trail.key.is_some(), response.status());
    if !is_known || (status.is_success() && is_graphql(&asked.path)) {
        return response;
    }
    let shows_id = matches!(status, StatusCode::OK | StatusCode::ACCEPTED);
    let (made, response) = if shows_id { id_of(response).await } else { (None, response) };
    let place = committed.and_then(|entry| entry.place());
    let (id, at) = place.unwrap_or_else(|| (0, state.engine().now()));
    let resource = resource(&asked.path, made);
    if let Some(entry) = asked.entry(at, trail, resource, outcome(status)) {
        log.record(at, Entry { id, status: Some(status.as_u16()), ..entry }).await;
    }
    response
}

/// A request for a change.
struct AskedChange {
    path: String,
    method: String,
    address: Option<String>,
    request_id: Option<String>,
}

impl AskedChange {
    /// The entry without an id and a status; `None` if the request had no valid key.
    fn entry(&self, at: Millis, trail: Trail, resource: String, outcome: &str) -> Option<Entry> {
        let Trail { key, fields, session } = trail;
        Some(Entry {
            id: 0,
            at: rfc3339(at),
            event: "change".to_owned(),
            key: Some(key?),
            via: session.is_some().then(|| "console".to_owned()),
            session,
            address: self.address.clone(),
            request_id: self.request_id.clone(),
            method: Some(self.method.clone()),
            resource: Some(resource),
            path: Some(self.path.clone()),
            fields,
            status: None,
            outcome: outcome.to_owned(),
        })
    }
}

/// Whether a path under `/v1` names a resource, and not only its kind.
fn names_resource(path: &str) -> bool {
    !is_bulk(path) && path.split('/').skip(1).filter(|part| *part != "v1").nth(1).is_some()
}

fn is_graphql(path: &str) -> bool {
    path.split('/').nth(1) == Some("graphql")
}

/// Whether a path is that of bulk tasks: `/v2/{endpoint}/bulk` or below.
fn is_bulk(path: &str) -> bool {
    path.starts_with("/v2/") && path.split('/').nth(3) == Some("bulk")
}

/// The resource that a request changes: its kind, and the id in the response, or else the id in the path.
fn resource(path: &str, made: Option<String>) -> String {
    if is_bulk(path) {
        return made.map_or_else(|| "bulk".to_owned(), |id| format!("bulk/{id}"));
    }
    let mut parts = path.split('/').skip(1).filter(|part| *part != "v1");
    let kind = parts.next().unwrap_or_default();
    match made.or_else(|| parts.next().map(str::to_owned)) {
        Some(id) => format!("{kind}/{id}"),
        None => kind.to_owned(),
    }
}

fn outcome(status: StatusCode) -> &'static str {
    if status.is_success() {
        "done"
    } else if status.is_server_error() {
        "failed"
    } else {
        "refused"
    }
}

/// The id in a JSON response, and the response. Responses to changes are small, and in memory already.
async fn id_of(response: Response) -> (Option<String>, Response) {
    #[derive(serde::Deserialize)]
    struct ResourceId {
        id: String,
    }
    let (parts, body) = response.into_parts();
    // A body in memory cannot fail; an empty one has no id.
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let id = serde_json::from_slice::<ResourceId>(&bytes).ok().map(|shown| shown.id);
    (id, Response::from_parts(parts, Body::from(bytes)))
}
