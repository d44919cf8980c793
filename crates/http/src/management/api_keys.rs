//! `/v1/apikeys`: the keys of the API and what each permits.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::{Engine, TrackedKey};
use longshore_model::{ApiKey, EndpointId, KeyScope, Millis, Owner};
use serde_json::{Map, Value, json};

use super::access::{may_manage, may_read};
use super::api_key_fields::{API_KEY_FIELDS, SCOPE_FIELDS};
use super::etag::{ETag, IfMatch};
use super::fields::{Verb, read_members};
use super::operations::operations;
use super::{PathId, list_all, read_body, schemas, to_the_end};
use crate::openapi::Group;
use crate::openapi::schema::with_example;
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};
use crate::{HttpState, mint_key};

/// The text in `endpointIds` that stands for all endpoints.
const ALL: &str = "*";
/// Most scopes of one key.
const SCOPES_MAX: usize = 100;

/// The operations on keys.
pub(super) fn group() -> Group {
    let [list, create, get, update, update_by_post, delete] = operations!(
        "ApiKey",
        "ApiKeys",
        "/v1/apikeys",
        "/v1/apikeys/{key}",
        [list, create, get, update, delete],
    );
    let operations = vec![
        list.summary("every key, without its text"),
        create
            .summary("creates a key")
            .about("Only this response has the text of the key. The server stores a hash of it.")
            .gives("NewApiKey"),
        get.summary("one key, without its text"),
        update,
        update_by_post,
        delete
            .summary("revokes a key: requests with it are refused from the response on")
            .about("The last active key with the scope `manage` for all endpoints cannot be revoked."),
    ];
    let create = json!({
        "name": "website", "scopes": [{ "scope": "jobs", "endpointIds": ["hello"] }], "rateLimit": 500,
    });
    let key = schemas::read(API_KEY_FIELDS);
    let mut new_key = key.clone();
    new_key["properties"]["key"] = json!({ "type": "string", "description": "its text: `ls_<id>_<secret>`" });
    new_key["required"] = json!(["id", "key"]);
    let schemas = vec![
        ("ApiKey", key),
        ("NewApiKey", new_key),
        (
            "ApiKeyCreateInput",
            with_example(schemas::sent(API_KEY_FIELDS, Verb::Create, &["name", "scopes"]), create),
        ),
        (
            "ApiKeyUpdateInput",
            with_example(schemas::sent(API_KEY_FIELDS, Verb::Update, &[]), json!({ "disabled": true })),
        ),
    ];
    Group { name: "Keys", about: "API keys and what each permits.", operations, schemas }
}

async fn create(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let by = may_manage(&state, &headers)?;
    let members = read_members(API_KEY_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    let change = Change::of(&members, state.engine().now())?;
    let name =
        change.name().ok_or_else(|| bad_field("`name` is required: a key needs one to be found by"))?;
    let scopes = scopes(&state, members.get("scopes"))?;
    let mut minted = mint_key(name, scopes, state.engine().now()).ok_or_else(ApiError::internal)?;
    change.lay_over(&mut minted.record);
    let record = minted.record;
    let owner = change.owner().unwrap_or(Owner::SERVER).to_owned();
    let made = |state: HttpState| async move { Ok(state.engine().keys().create(record, &owner).await?) };
    let key = to_the_end(&state, made).await?;
    tracing::info!(key = %key.id, by = %by.id, "key created");
    let mut view = view(state.engine(), &key);
    view["key"] = json!(minted.text);
    Ok(tag(&state, &key, &view).answer(view))
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = |key: &Arc<TrackedKey>| (key.created_at, key.id.clone());
    list_all((&state, &uri, &headers), |engine| engine.keys().list(), key, |key| view(state.engine(), key))
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let key = state.engine().keys().get(&id).ok_or_else(no_such_key)?;
    let view = view(state.engine(), &key);
    Ok(tag(&state, &key, &view).answer_get(&headers, view))
}

async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let by = may_manage(&state, &headers)?;
    state.engine().keys().get(&id).ok_or_else(no_such_key)?;
    let members = read_members(API_KEY_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    let change = Change::of(&members, state.engine().now())?;
    let expected = IfMatch::of(&headers);
    let key = to_the_end(&state, |state| async move {
        let engine = state.engine();
        let owner = change.owner().map(str::to_owned);
        let lay = |key: &mut ApiKey| {
            expected.check(engine, &unused(key))?;
            change.lay_over(key);
            Ok(())
        };
        engine.keys().update(&id, owner.as_deref(), lay).await
    })
    .await?;
    tracing::info!(key = %key.id, by = %by.id, "key changed");
    let view = view(state.engine(), &key);
    Ok(tag(&state, &key, &view).answer(view))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let by = may_manage(&state, &headers)?;
    state.engine().keys().get(&id).ok_or_else(no_such_key)?;
    let revoked = id.clone();
    let expected = IfMatch::of(&headers);
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        Ok(engine.keys().delete(&revoked, |key| expected.is_met(engine, &unused(key))).await?)
    })
    .await?;
    tracing::info!(key = %id, by = %by.id, "key revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// The `ETag` of a key. Its use is only in the part that `If-Match` ignores, so that using a key does not
/// make a client's `If-Match` fail.
fn tag(state: &HttpState, key: &ApiKey, view: &Value) -> ETag {
    ETag::of(state.engine(), &unused(key)).beside(state.engine(), view)
}

/// The key without its use.
fn unused(key: &ApiKey) -> ApiKey {
    ApiKey { last_used_at: None, last_used_from: None, addresses: Vec::new(), ..key.clone() }
}

/// The checked members of a request that creates or changes a key.
struct Change(Map<String, Value>);

impl Change {
    fn of(members: &Map<String, Value>, now: Millis) -> Result<Self, ApiError> {
        let change = Self(members.clone());
        if change.name().is_some_and(|name| name.trim().is_empty()) {
            return Err(bad_field("`name` must not be empty"));
        }
        let end = members.get("expiresAt").and_then(parse_time);
        if end.is_some_and(|end| end <= now) {
            let now = rfc3339(now);
            return Err(bad_field(format!(
                "`expiresAt` is in the past: it is {now} here; to end a key now, disable or delete it"
            )));
        }
        Ok(change)
    }

    fn name(&self) -> Option<&str> {
        self.0.get("name").and_then(Value::as_str)
    }

    /// The name of the key's new owner.
    fn owner(&self) -> Option<&str> {
        self.0.get("owner").and_then(Value::as_str)
    }

    fn lay_over(&self, key: &mut ApiKey) {
        if let Some(name) = self.name() {
            name.clone_into(&mut key.name);
        }
        if let Some(disabled) = self.0.get("disabled").and_then(Value::as_bool) {
            key.disabled = disabled;
        }
        if let Some(end) = self.0.get("expiresAt") {
            key.expires_at = parse_time(end);
        }
        if let Some(rate) = self.0.get("rateLimit") {
            key.rate_limit = rate.as_u64().and_then(|rate| u32::try_from(rate).ok());
        }
    }
}

/// Reads a time in RFC 3339. `None` for null.
fn parse_time(value: &Value) -> Option<Millis> {
    value.as_str().and_then(parse_rfc3339)
}

/// The scopes of a request. The endpoints must exist: a key for a misspelled endpoint would be refused everywhere.
fn scopes(state: &HttpState, sent: Option<&Value>) -> Result<Vec<KeyScope>, ApiError> {
    let sent = sent.and_then(Value::as_array).filter(|scopes| !scopes.is_empty());
    let sent = sent.ok_or_else(|| {
        bad_field("`scopes` is required: a list of what the key permits, such as [{\"scope\":\"jobs\"}]")
    })?;
    if sent.len() > SCOPES_MAX {
        return Err(bad_field(format!(
            "`scopes` has {} items; at most {SCOPES_MAX} are allowed",
            sent.len()
        )));
    }
    sent.iter().enumerate().map(|(place, scope)| one_scope(state, place, scope)).collect()
}

fn one_scope(state: &HttpState, place: usize, scope: &Value) -> Result<KeyScope, ApiError> {
    let named = match scope.get("endpointIds") {
        None => Vec::new(),
        Some(names) => {
            let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            endpoint_ids(state, place, &names)?
        }
    };
    match scope.get("scope").and_then(Value::as_str) {
        Some("manage") => Ok(KeyScope::Manage { endpoint_ids: named }),
        Some("read") => Ok(KeyScope::Read { endpoint_ids: named }),
        Some("jobs") => Ok(KeyScope::Jobs { endpoint_ids: named }),
        _ => {
            let words = SCOPE_FIELDS[0].about;
            Err(bad_field(format!("`scopes[{place}].scope` is required; {words}")))
        }
    }
}

/// The ids of the named endpoints. An empty list stands for all endpoints.
fn endpoint_ids(state: &HttpState, place: usize, names: &[&str]) -> Result<Vec<EndpointId>, ApiError> {
    let path = format!("`scopes[{place}].endpointIds`");
    match names {
        [ALL] => return Ok(Vec::new()),
        [] => {
            return Err(bad_field(format!(
                "{path} is empty, which would permit nothing; name endpoints, or send [\"*\"] for every one"
            )));
        }
        _ if names.contains(&ALL) => {
            return Err(bad_field(format!("{path} has \"*\" beside other names; send either")));
        }
        _ => {}
    }
    let mut ids = Vec::new();
    for name in names {
        let endpoint = state.engine().endpoint(name);
        let endpoint = endpoint
            .ok_or_else(|| bad_field(format!("{path} has {name:?}; no endpoint has this id or slug")))?;
        let id = endpoint.id();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The scopes of a key as they are shown.
pub(super) fn shown_scopes(key: &ApiKey) -> Vec<Value> {
    key.scopes.iter().map(scope_view).collect()
}

/// A key as clients read it: without the hash, and without the fields that are not set.
fn view(engine: &Engine, key: &TrackedKey) -> Value {
    let now = engine.now();
    let mut view = json!({
        "id": key.id,
        "name": key.name,
        "owner": engine.keys().owner_name(key.owner),
        "scopes": shown_scopes(key),
        "createdAt": rfc3339(key.created_at),
        "disabled": key.disabled,
    });
    let optional = [
        // The text of the operator's key has no fixed prefix.
        ("prefix", (key.id != crate::gate::auth::OPERATOR).then(|| json!(format!("ls_{}_", key.id)))),
        ("lastUsedAt", key.last_used_at(now).map(|at| json!(rfc3339(at)))),
        ("lastUsedFrom", key.last_used_from().map(|address| json!(address.to_string()))),
        ("expiresAt", key.expires_at.map(|at| json!(rfc3339(at)))),
        ("rateLimit", key.rate_limit.map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            view[name] = value;
        }
    }
    view
}

fn scope_view(scope: &KeyScope) -> Value {
    let name = match scope {
        KeyScope::Manage { .. } => "manage",
        KeyScope::Read { .. } => "read",
        KeyScope::Jobs { .. } => "jobs",
    };
    let ids: Vec<Value> = scope.endpoint_ids().iter().map(|id| json!(id)).collect();
    json!({ "scope": name, "endpointIds": if ids.is_empty() { vec![json!(ALL)] } else { ids } })
}

fn no_such_key() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "key_not_found", "no key has this id")
}

fn bad_field(text: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::bad_request("bad_field", text)
}
