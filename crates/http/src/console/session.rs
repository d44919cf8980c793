//! `/console/session`: sign-in, the session of a browser, and sign-out.

use std::net::{IpAddr, Ipv4Addr};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use longshore_engine::{CatalogError, OpenedSession, TrackedKey};
use longshore_model::{ConsoleCode, ConsoleSession};
use serde_json::json;

use super::sign_in::SignIn;
use crate::HttpState;
use crate::audit::Entry;
use crate::gate::caller::{Caller, current_session, key_of};
use crate::gate::{auth, client};
use crate::management::{me, to_the_end};
use crate::sessions::csrf::csrf_of;
use crate::sessions::lookup::{by_cookie, is_same_origin, session_without_csrf};
use crate::sessions::minted::{hash_of, mint};
use crate::wire::api_error::ApiError;
use crate::wire::body;

/// Largest body of a sign-in, in bytes.
const BODY_BYTES_MAX: usize = 4_096;
/// Most characters of `User-Agent` that a session keeps.
const AGENT_CHARS_MAX: usize = 200;

/// `POST /console/session`: opens a session with a key or a code. A session that the browser has already ends.
pub(super) async fn open(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    check_is_on(&state)?;
    check_is_from_page(&headers)?;
    let address = client::address(&state, &headers).map(|client| client.address);
    let source = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    state.failed_sign_ins().check(source).map_err(too_many_failures)?;
    let sent = SignIn::read(&body::read(body, BODY_BYTES_MAX, state.budget()).await?.bytes)?;
    let attempt = state.failed_sign_ins().begin(source).map_err(too_many_failures)?;
    let cookie = mint(state.engine());
    let rule = client::cookie_rule(&state, &headers);
    let replaced = rule.read(&headers).and_then(|old| {
        by_cookie(state.engine(), &state.console().session_limits, old).map(|session| session.id.clone())
    });
    let session = session_for(&state, &cookie, address, &headers);
    let opened = to_the_end(&state, |state| async move {
        let opened = open_with(&state, sent, replaced, session).await?;
        let Some(OpenedSession { session, ended }) = opened else { return Ok(None) };
        let Some(key) = key_of(&state, &session) else { return Ok(None) };
        for other in &ended {
            note(&state, &other.id, &key, address, "replaced").await;
        }
        note(&state, &session.id, &key, address, "opened").await;
        Ok(Some(Caller { key, session: Some(session) }))
    });
    let Some(caller) = opened.await? else {
        note_refused(&state, source);
        return Err(refused());
    };
    drop(attempt);
    let max_age_s = state.console().session_limits.max_ms / 1_000;
    let mut response = answer(&state, &headers, &caller, &cookie);
    if let Some(value) = rule.set(&cookie, max_age_s) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    Ok(response)
}

/// Opens the session that `make` returns for the key that was sent, or for that of the code; `None` if there is no such key
/// or code.
async fn open_with(
    state: &HttpState,
    sent: SignIn,
    replaced: Option<String>,
    make: impl Fn(&TrackedKey) -> ConsoleSession + Send + Sync,
) -> Result<Option<OpenedSession>, CatalogError> {
    let (engine, replaced) = (state.engine(), replaced.as_deref());
    match sent {
        SignIn::Key(text) => match auth::active_key(state, text.as_bytes()) {
            Some(key) => engine.sessions().open(make(&key), replaced).await.map(Some),
            None => Ok(None),
        },
        SignIn::Code(code) => {
            let of_key = |code: &ConsoleCode| {
                let key = engine.keys().get(&code.key)?;
                let is_same = key.hash == code.key_hash && key.is_alive(engine.now());
                is_same.then(|| make(&key))
            };
            engine.sessions().open_by_code(&hash_of(&code), replaced, of_key).await
        }
    }
}

/// `GET /console/session`: the CSRF value of the browser's session, and what the key may do.
pub(super) async fn show(State(state): State<HttpState>, headers: HeaderMap) -> Result<Response, ApiError> {
    check_is_on(&state)?;
    let (rule, limits) = (client::cookie_rule(&state, &headers), &state.console().session_limits);
    let found = session_without_csrf(state.engine(), limits, &headers, &rule);
    let (session, cookie) = found.ok_or_else(ApiError::unauthorized)?;
    let now = state.engine().now();
    let key = key_of(&state, &session).filter(|key| key.is_alive(now)).ok_or_else(ApiError::unauthorized)?;
    session.touch(now);
    Ok(answer(&state, &headers, &Caller { key, session: Some(session.clone()) }, cookie))
}

/// `DELETE /console/session`: signs out. Works also if the key was revoked meanwhile.
pub(super) async fn end(State(state): State<HttpState>, headers: HeaderMap) -> Result<Response, ApiError> {
    check_is_on(&state)?;
    let session = current_session(&state, &headers).ok_or_else(ApiError::unauthorized)?;
    let address = client::address(&state, &headers).map(|client| client.address);
    to_the_end(&state, |state| async move {
        state.engine().sessions().end(&session.id).await?;
        if let Some(key) = key_of(&state, &session) {
            note(&state, &session.id, &key, address, "ended").await;
        }
        Ok(())
    })
    .await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_private(&mut response);
    if let Some(value) = client::cookie_rule(&state, &headers).clear() {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    Ok(response)
}

/// Makes the record of a new session with the key that it is called with.
fn session_for(
    state: &HttpState,
    cookie: &str,
    address: Option<IpAddr>,
    headers: &HeaderMap,
) -> impl Fn(&TrackedKey) -> ConsoleSession + Send + Sync + use<> {
    let hash = hash_of(cookie);
    let now = state.engine().now();
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    let agent: Option<String> = agent.map(|agent| agent.chars().take(AGENT_CHARS_MAX).collect());
    move |key| ConsoleSession {
        id: hash.get(..16).unwrap_or_default().to_owned(),
        hash: hash.clone(),
        key: key.id.clone(),
        key_hash: key.hash.clone(),
        opened_at: now,
        used_at: now,
        address,
        agent: agent.clone(),
    }
}

fn answer(state: &HttpState, headers: &HeaderMap, caller: &Caller, cookie: &str) -> Response {
    let body = json!({ "csrf": csrf_of(cookie), "me": me::me(state, headers, caller) });
    let mut response = axum::Json(body).into_response();
    set_private(&mut response);
    response
}

fn set_private(response: &mut Response) {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

fn check_is_on(state: &HttpState) -> Result<(), ApiError> {
    if state.console().is_on { Ok(()) } else { Err(ApiError::no_such_route()) }
}

/// Refuses what a form or a script of another page can send: neither can send JSON without asking the server first.
fn check_is_from_page(headers: &HeaderMap) -> Result<(), ApiError> {
    if !is_same_origin(headers) {
        return Err(ApiError::unauthorized());
    }
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_json = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if is_json.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    Err(ApiError::bad_request("bad_content_type", "send the body with `Content-Type: application/json`"))
}

fn refused() -> ApiError {
    let text =
        "the key or code is unknown, expired, used up or disabled; make a new code with `longshore console`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
}

fn too_many_failures(wait_s: u64) -> ApiError {
    let text = "too many failed sign-ins from this address; wait and try again";
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", text).retry_after(wait_s)
}

/// Writes a session's begin or end to the audit log, with the address of the client.
async fn note(state: &HttpState, session: &str, by: &TrackedKey, address: Option<IpAddr>, outcome: &str) {
    tracing::info!(key = %by.id, session, outcome, "session of the console");
    let Some(log) = state.audit() else { return };
    let now = state.engine().now();
    let address = address.map(|address| address.to_string());
    log.record(now, Entry::session(now, by, session, outcome).with_address(address)).await;
}

/// Stores which sessions were used since the last call, and removes those that are over, each of which is noted in the audit
/// log.
///
/// # Errors
///
/// The rows cannot be written. The next call writes them.
pub async fn note_session_use(state: &HttpState) -> Result<(), CatalogError> {
    let over = state.engine().sessions().note_use(&state.console().session_limits).await?;
    let Some(log) = state.audit() else { return Ok(()) };
    for session in over {
        // The revocation of a key has an entry of its own.
        if let Some(key) = key_of(state, &session) {
            let now = state.engine().now();
            log.note(now, Entry::session(now, &key, &session.id, "expired"));
        }
    }
    Ok(())
}

/// Counts a refused sign-in and writes it to the audit log, as long as few are refused.
fn note_refused(state: &HttpState, source: IpAddr) {
    let is_noted = state.failed_sign_ins().note(source);
    if let Some(log) = state.audit().filter(|_| is_noted) {
        let now = state.engine().now();
        log.note(now, Entry::refused_sign_in(now).with_address(Some(source.to_string())));
    }
}
