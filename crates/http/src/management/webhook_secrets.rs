//! `/v1/endpoints/{endpoint}/webhook-secret`: the secrets that sign an endpoint's webhooks.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use longshore_engine::WebhookSecret;
use serde_json::{Value, json};

use super::access::may_manage_endpoint;
use super::{JsonResult, PathId, to_the_end};
use crate::HttpState;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, object, text, time, with_example};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

/// How long the previous secret signs beside a new one, in ms, if the request does not say: one day.
const OVERLAP_MS_DEFAULT: u64 = 86_400_000;
/// The longest time that the previous secret signs beside a new one, in ms: 30 days.
const OVERLAP_MS_MAX: u64 = 2_592_000_000;

const PATH: &str = "/v1/endpoints/{endpoint}/webhook-secret";
const OVERLAP: &[Parameter] = &[query(
    "overlapMs",
    ParameterKind::Integer { min: 0, max: OVERLAP_MS_MAX, default: Some(OVERLAP_MS_DEFAULT) },
    "how long webhooks are also signed with the previous secret, in milliseconds",
)];

/// The operations on the secrets of webhooks.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("GetWebhookSecrets", PATH, get)
            .summary("the secrets that sign an endpoint's webhooks")
            .about("When the secrets were created, and when they expire. A secret itself is only in the response that creates it.")
            .gives("WebhookSecrets"),
        Operation::post("RotateWebhookSecret", PATH, rotate)
            .summary("creates a secret; only this response has it")
            .about("Webhooks are then signed as Standard Webhooks says, until its expiry also with the previous secret.")
            .with(OVERLAP)
            .gives("NewWebhookSecret"),
        Operation::delete("DeleteWebhookSecrets", PATH, delete)
            .summary("deletes an endpoint's secrets: its webhooks are no longer signed"),
    ];
    let nullable_time = json!({ "type": "string", "format": "date-time", "nullable": true });
    let secret = object(&[("createdAt", time()), ("expiresAt", nullable_time)], &["createdAt", "expiresAt"]);
    let secrets = ("secrets", array_of(&secret));
    let example = json!({
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
        "secrets": [{ "createdAt": "2026-01-31T12:00:00.000Z", "expiresAt": null }],
    });
    let schemas = vec![
        ("WebhookSecrets", object(std::slice::from_ref(&secrets), &["secrets"])),
        (
            "NewWebhookSecret",
            with_example(object(&[("secret", text()), secrets.clone()], &["secret", "secrets"]), example),
        ),
    ];
    let about = "Secrets with which receivers can verify that a webhook call is from this server.";
    Group { name: "Webhook secrets", about, operations, schemas }
}

async fn get(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    may_manage_endpoint(&state, &headers, &id)?;
    let secrets = state.engine().catalog().webhook_secrets(&id)?;
    Ok(json!({ "secrets": shown(&secrets) }).into())
}

async fn rotate(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let overlap_ms = Query::of(&uri)?.integer("overlapMs", 0, OVERLAP_MS_MAX)?.unwrap_or(OVERLAP_MS_DEFAULT);
    let endpoint = endpoint.id();
    let made = to_the_end(&state, move |state| async move {
        Ok(state.engine().catalog().rotate_webhook_secret(endpoint.as_str(), overlap_ms).await?)
    })
    .await?;
    tracing::info!(%endpoint, by = %key.id, "webhook secret rotated");
    Ok(json!({ "secret": made.text, "secrets": shown(&made.secrets) }).into())
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let endpoint = endpoint.id();
    to_the_end(&state, move |state| async move {
        Ok(state.engine().catalog().remove_webhook_secrets(endpoint.as_str()).await?)
    })
    .await?;
    tracing::info!(%endpoint, by = %key.id, "webhook secrets removed");
    Ok(StatusCode::NO_CONTENT)
}

fn shown(secrets: &[WebhookSecret]) -> Vec<Value> {
    let view = |secret: &WebhookSecret| json!({ "createdAt": rfc3339(secret.created_at), "expiresAt": secret.expires_at.map(rfc3339) });
    secrets.iter().map(view).collect()
}
