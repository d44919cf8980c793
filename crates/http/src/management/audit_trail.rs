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
use percent_encoding::percent_decode_str;

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
        named: named(&state, path),
        method: request.method().to_string(),
        address: client::address(&state, request.headers()).map(|client| client.address.to_string()),
        request_id: request.extensions().get::<RequestId>().map(ToString::to_string),
    });
    let of = Arc::clone(&asked);
    let committed = CommittedEntry::in_database(log, state.engine(), move |at, trail, made| {
        of.entry(at, trail, made, "done")
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
    if let Some(entry) = asked.entry(at, trail, made, outcome(status)) {
        log.record(at, Entry { id, status: Some(status.as_u16()), ..entry }).await;
    }
    response
}

/// A request for a change.
struct AskedChange {
    path: String,
    /// What the path names, before the change.
    named: NamedResource,
    method: String,
    address: Option<String>,
    request_id: Option<String>,
}

impl AskedChange {
    /// The entry without an id and a status; `None` if the request had no valid key. `made` is the id in the response.
    fn entry(&self, at: Millis, trail: Trail, made: Option<String>, outcome: &str) -> Option<Entry> {
        let Trail { key, fields, session } = trail;
        let resource = match (&self.named, made) {
            (NamedResource::Kind(kind), Some(id)) => format!("{kind}/{id}"),
            (NamedResource::Kind(named) | NamedResource::One(named), _) => named.clone(),
        };
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

/// What the path of a request names.
enum NamedResource {
    /// A kind of resources, such as `templates`: the id of a new one is in the response.
    Kind(String),
    /// One resource, such as `endpoints/<id>` or `endpoints/<id>/workers/<id>`.
    One(String),
}

/// The resource in a path. A slug becomes the id of its endpoint, which a deleted endpoint no longer has.
fn named(state: &HttpState, path: &str) -> NamedResource {
    // A slug may have slashes, which are escaped in a path.
    let id_of = |name: &str| {
        let endpoint = state.engine().endpoint(&percent_decode_str(name).decode_utf8_lossy());
        endpoint.map_or_else(|| name.to_owned(), |endpoint| endpoint.id().to_string())
    };
    let parts: Vec<_> = path.split('/').skip(1).collect();
    match parts[..] {
        ["v2", endpoint, "bulk"] => NamedResource::Kind(format!("endpoints/{}/bulk", id_of(endpoint))),
        ["v2", endpoint, "bulk", task, ..] => {
            NamedResource::One(format!("endpoints/{}/bulk/{task}", id_of(endpoint)))
        }
        ["v1", "endpoints", endpoint, "workers", worker, _, ..] => {
            NamedResource::One(format!("endpoints/{}/workers/{worker}", id_of(endpoint)))
        }
        ["v1", "endpoints", endpoint, ..] => NamedResource::One(format!("endpoints/{}", id_of(endpoint))),
        ["v1", kind] | [kind] => NamedResource::Kind(kind.to_owned()),
        ["v1", kind, id, ..] | [kind, id, ..] => NamedResource::One(format!("{kind}/{id}")),
        [] => NamedResource::Kind(String::new()),
    }
}

fn is_graphql(path: &str) -> bool {
    path.split('/').nth(1) == Some("graphql")
}

/// Whether a path is that of bulk tasks: `/v2/{endpoint}/bulk` or below.
fn is_bulk(path: &str) -> bool {
    path.starts_with("/v2/") && path.split('/').nth(3) == Some("bulk")
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
