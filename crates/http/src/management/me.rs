//! `/v1/me`: the key of the request, and what it may do.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::EndpointHandle;
use longshore_model::{ApiKey, Permission};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::JsonResult;
use super::api_keys::shown_scopes;
use crate::HttpState;
use crate::gate::caller::Caller;
use crate::gate::{auth, client};
use crate::jobs::health;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, object, text};
use crate::openapi::{Group, Operation};
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

const INCLUDE: &[Parameter] = &[query(
    "includeHealth",
    ParameterKind::Flag,
    "adds the counts of jobs and workers to each of `endpoints` whose jobs the key may read",
)];
/// Endpoints whose counts are read concurrently.
const CONCURRENT: usize = 64;
/// How long they may take together. Those that take longer are shown without them.
const PATIENCE: Duration = Duration::from_secs(1);

/// The operation that describes the request's key.
pub(super) fn group() -> Group {
    let nullable = |kind: &str| json!({ "type": kind, "nullable": true });
    let nullable_time = json!({ "type": "string", "format": "date-time", "nullable": true });
    let some = json!({ "oneOf": [{ "type": "string", "enum": ["*"] }, array_of(&text())] });
    let key = object(
        &[
            ("id", text()),
            ("name", text()),
            ("prefix", nullable("string")),
            ("scopes", array_of(&json!({ "type": "object" }))),
            ("expiresAt", nullable_time),
        ],
        &["id", "name", "prefix", "scopes", "expiresAt"],
    );
    let time = || json!({ "type": "string", "format": "date-time" });
    let mut session = object(&[("openedAt", time()), ("expiresAt", time())], &["openedAt", "expiresAt"]);
    session["nullable"] = json!(true);
    let server = object(
        &[("version", text()), ("publicUrl", nullable("string")), ("basePath", text()), ("currency", text())],
        &["version", "publicUrl", "basePath", "currency"],
    );
    let may = object(
        &[
            ("manage", json!({ "type": "boolean", "description": "change the whole catalog" })),
            ("endpoints", described(&some, "change these endpoints; `*` for all")),
            ("read", described(&some, "read the settings, workers and logs of these endpoints")),
            ("requests", described(&some, "read the jobs of these endpoints")),
            ("jobs", described(&some, "submit, cancel and retry jobs of these endpoints")),
        ],
        &["manage", "endpoints", "read", "requests", "jobs"],
    );
    let health = json!({ "type": "object" });
    let endpoint =
        object(&[("id", text()), ("slug", nullable("string")), ("health", health)], &["id", "slug"]);
    let endpoints = described(
        &array_of(&endpoint),
        "the endpoints whose jobs the key may read or submit, and whose settings it may not read: `/v1/endpoints` does not list them",
    );
    let me = object(
        &[("key", key), ("session", session), ("server", server), ("may", may), ("endpoints", endpoints)],
        &["key", "session", "server", "may", "endpoints"],
    );
    let operations = vec![
        Operation::get("GetMe", "/v1/me", me_of_request)
            .summary("the key of the request, and what it may do")
            .about("Every valid key may read this.")
            .gives("Me")
            .with(INCLUDE),
    ];
    Group { name: "Me", about: "The key of the request.", operations, schemas: vec![("Me", me)] }
}

fn described(schema: &Value, text: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = json!(text);
    schema
}

async fn me_of_request(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let caller = auth::authorize_any(&state, &headers)?;
    let mut me = me(&state, &headers, &caller);
    if Query::of(&uri)?.flag("includeHealth")? {
        let now = auth::now_for(&caller, &state);
        let mut shown = unlisted(&state, &caller);
        shown.retain(|endpoint| caller.permits(Permission::ReadJobs, Some(&endpoint.id()), now));
        let (state, deadline) = (&state, Instant::now() + PATIENCE);
        let healths = iter(shown).map(|endpoint| async move {
            Some((endpoint.id().to_string(), health::by(state, &endpoint, deadline).await?))
        });
        let healths: HashMap<String, Value> =
            healths.buffer_unordered(CONCURRENT).filter_map(|health| async { health }).collect().await;
        for endpoint in me["endpoints"].as_array_mut().into_iter().flatten() {
            if let Some(health) = endpoint["id"].as_str().and_then(|id| healths.get(id)) {
                endpoint["health"] = health.clone();
            }
        }
    }
    Ok(me.into())
}

/// What the caller is and may do.
pub(crate) fn me(state: &HttpState, headers: &HeaderMap, caller: &Caller) -> Value {
    let limits = &state.console().session_limits;
    let session = caller.session.as_ref().map(|session| {
        json!({ "openedAt": rfc3339(session.opened_at), "expiresAt": rfc3339(session.expires_at(limits)) })
    });
    // The operator chose the text of the operator's key, so that its beginning is a part of the secret.
    let prefix = (caller.id != auth::OPERATOR).then(|| format!("ls_{}", caller.id));
    json!({
        "key": {
            "id": caller.id,
            "name": caller.name,
            "prefix": prefix,
            "scopes": shown_scopes(caller),
            "expiresAt": caller.expires_at.map(rfc3339),
        },
        "session": session,
        "server": {
            "version": env!("CARGO_PKG_VERSION"),
            "publicUrl": state.console().public_url,
            "basePath": client::base(state, headers),
            "currency": state.console().currency,
        },
        "may": {
            "manage": caller.manages_all(),
            "endpoints": endpoints(state, caller, Permission::WriteCatalog),
            "read": endpoints(state, caller, Permission::ReadCatalog),
            "requests": endpoints(state, caller, Permission::ReadJobs),
            "jobs": endpoints(state, caller, Permission::WriteJobs),
        },
        "endpoints": unlisted(state, caller).iter().map(named).collect::<Vec<_>>(),
    })
}

/// The endpoints that the key may use, and whose settings it may not read.
fn unlisted(state: &HttpState, key: &ApiKey) -> Vec<EndpointHandle> {
    let now = auth::now_for(key, state);
    let mut all = state.engine().endpoints();
    all.retain(|endpoint| {
        let may = |permission| key.permits(permission, Some(&endpoint.id()), now);
        !may(Permission::ReadCatalog) && (may(Permission::ReadJobs) || may(Permission::WriteJobs))
    });
    all
}

fn named(endpoint: &EndpointHandle) -> Value {
    json!({ "id": endpoint.id(), "slug": endpoint.record().slug })
}

/// The ids of the endpoints for which the key has a permission; `*` for all.
fn endpoints(state: &HttpState, key: &ApiKey, permission: Permission) -> Value {
    let now = auth::now_for(key, state);
    if key.permits(permission, None, now) {
        return json!("*");
    }
    let all = state.engine().endpoints().into_iter().map(|endpoint| endpoint.id());
    all.filter(|id| key.permits(permission, Some(id), now)).map(|id| id.to_string()).collect()
}
