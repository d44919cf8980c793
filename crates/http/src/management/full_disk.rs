//! Refuses changes while the disk has too little space, before their body is read. What makes space or needs none is
//! served.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode};
use longshore_model::Permission;

use crate::HttpState;
use crate::audit::note_key;
use crate::gate::auth::{active_key, credential, now_for};
use crate::gate::caller::Caller;
use crate::wire::api_error::ApiError;

/// The changes that store nothing, or only what is needed to look and delete in a browser.
const SERVED: [&str; 7] = [
    "/v1/console-codes",
    "/v1/endpoints/{endpoint}/try-now",
    "/v1/endpoints/{endpoint}/worker-token",
    "/v1/endpoints/{endpoint}/workers/drain",
    "/v1/endpoints/{endpoint}/workers/{worker}/drain",
    "/v1/endpoints/{endpoint}/workers/{worker}/stop",
    "/v1/server/drain",
];

/// Answers 507 to a request under `/v1` that would store more, while the disk has too little space. Deletions are served.
/// A request without a key that may change something gets the answer of its route.
pub(crate) async fn refuse(State(state): State<HttpState>, request: Request, next: Next) -> Response {
    match refusal(&state, &request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(state: &HttpState, request: &Request) -> Option<ApiError> {
    if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH)
        || !request.uri().path().starts_with("/v1/")
    {
        return None;
    }
    let path = request.extensions().get::<MatchedPath>()?;
    if SERVED.contains(&path.as_str()) {
        return None;
    }
    let shortage = state.engine().space_shortage()?;
    let why = reason_for(state, request.headers(), &shortage)?;
    let text = format!("nothing was changed: {why}");
    Some(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", text))
}

/// Why the change is refused, as far as the key may know it; `None` for a key that may change nothing. Only keys that
/// manage everything read the name of a folder of the server.
fn reason_for(state: &HttpState, headers: &HeaderMap, shortage: &str) -> Option<String> {
    let caller = match credential(headers) {
        Some(text) => active_key(state, text).map(|key| Caller { key, session: None }),
        None => Caller::of_session(state, headers),
    }?;
    note_key(&caller);
    if caller.permits(Permission::WriteCatalog, None, now_for(&caller, state)) {
        return Some(shortage.to_owned());
    }
    let text = "the server's disk is full. Delete jobs or endpoints, or ask for space on it";
    caller.has_scope_for(Permission::WriteCatalog).then(|| text.to_owned())
}
