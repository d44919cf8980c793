//! `/v1/sessions`: the browsers that are signed in at the console; and `/v1/console-codes`: codes that sign in once.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use longshore_engine::OpenSession;
use longshore_model::ConsoleCode;
use serde_json::{Value, json};

use super::access::may_manage;
use super::base_url::base_url;
use super::{JsonResult, PathId, to_the_end};
use crate::HttpState;
use crate::audit::Entry;
use crate::gate::caller::{Caller, key_of};
use crate::gate::{auth, client};
use crate::openapi::schema::{object, text, time};
use crate::openapi::{Group, Operation};
use crate::sessions::minted::{hash_of, mint};
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;

/// How long a code can be used, in ms.
const CODE_LASTS_MS: u64 = 60_000;

/// The operations on sessions and codes.
pub(super) fn group() -> Group {
    let nullable = json!({ "type": "string", "nullable": true });
    let key = object(&[("id", text()), ("name", text())], &["id", "name"]);
    let session = object(
        &[
            ("id", text()),
            ("key", key),
            ("openedAt", time()),
            ("lastUsedAt", time()),
            ("expiresAt", time()),
            ("address", nullable.clone()),
            ("agent", nullable),
            (
                "current",
                json!({ "type": "boolean", "description": "whether it is the session of this request" }),
            ),
        ],
        &["id", "key", "openedAt", "lastUsedAt", "expiresAt", "address", "agent", "current"],
    );
    let code =
        object(&[("code", text()), ("expiresAt", time()), ("url", text())], &["code", "expiresAt", "url"]);
    let operations = vec![
        Operation::get("ListSessions", "/v1/sessions", list)
            .summary("the signed-in browsers, newest first")
            .gives_many("Session"),
        Operation::delete("DeleteSession", "/v1/sessions/{session}", delete)
            .summary("ends a session: its requests are refused from the response on"),
        Operation::post("CreateConsoleCode", "/v1/console-codes", create_code)
            .summary("makes a code that signs in at the console once")
            .about("The session gets the key of this request. The code can be used once, within a minute; `url` has it \
                    in its fragment, which browsers send to no server.")
            .gives("ConsoleCode")
            .refuses(400),
    ];
    let schemas = vec![("Session", session), ("ConsoleCode", code)];
    Group { name: "Sessions", about: "Browsers that are signed in at the console.", operations, schemas }
}

async fn list(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    let caller = may_manage(&state, &headers)?;
    let (now, limits) = (state.engine().now(), &state.console().session_limits);
    let mut open = state.engine().sessions().list();
    open.retain(|session| session.is_open(limits, now));
    open.sort_by_key(|session| std::cmp::Reverse((session.opened_at, session.id.clone())));
    Ok(open.iter().filter_map(|session| view(&state, session, &caller)).collect::<Value>().into())
}

/// A session as it is shown; `None` if its key is gone, so that its requests are refused.
fn view(state: &HttpState, session: &Arc<OpenSession>, caller: &Caller) -> Option<Value> {
    let key = key_of(state, session)?;
    let limits = &state.console().session_limits;
    Some(json!({
        "id": session.id,
        "key": { "id": key.id, "name": key.name },
        "openedAt": rfc3339(session.opened_at),
        "lastUsedAt": rfc3339(session.last_used_at()),
        "expiresAt": rfc3339(session.expires_at(limits)),
        "address": session.address,
        "agent": session.agent,
        "current": caller.session.as_ref().is_some_and(|own| own.id == session.id),
    }))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let by = may_manage(&state, &headers)?;
    let address = client::address(&state, &headers).map(|client| client.address.to_string());
    to_the_end(&state, |state| async move {
        let session = state.engine().sessions().end(&id).await?.ok_or_else(no_such_session)?;
        tracing::info!(session = %session.id, by = %by.id, "session ended");
        if let Some(log) = state.audit() {
            let now = state.engine().now();
            log.record(now, Entry::session(now, &by, &session.id, "ended").with_address(address)).await;
        }
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

async fn create_code(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    let caller = auth::authorize_any(&state, &headers)?;
    if !state.console().is_on {
        return Err(ApiError::no_such_route());
    }
    if caller.session.is_some() {
        let text = "a session cannot make codes: send an API key, or sign in with it";
        return Err(ApiError::bad_request("needs_a_key", text));
    }
    let code = mint(state.engine());
    let expires_at = state.engine().now() + CODE_LASTS_MS;
    let (key, key_hash) = (caller.id.clone(), caller.hash.clone());
    let stored = ConsoleCode { hash: hash_of(&code), key, key_hash, expires_at };
    to_the_end(&state, |state| async move { Ok(state.engine().sessions().add_code(stored).await?) }).await?;
    let url = format!("{}/console/#code={code}", address_of_server(&state, &headers));
    Ok(json!({ "code": code, "expiresAt": rfc3339(expires_at), "url": url }).into())
}

/// The address at which browsers reach this server, without a slash at the end.
fn address_of_server(state: &HttpState, headers: &HeaderMap) -> String {
    let base = client::base(state, headers);
    let url = state.console().public_url.clone().or_else(|| base_url(headers)).unwrap_or_default();
    if url.ends_with(&*base) { url } else { format!("{url}{base}") }
}

fn no_such_session() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "session_not_found", "no session has this id; it may have ended")
}
