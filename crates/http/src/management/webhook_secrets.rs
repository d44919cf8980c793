//! `/v1/endpoints/{endpoint}/webhook-secret`: what receivers check the signatures of an endpoint's webhooks with.

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

/// How long the secret before is good beside a new one, unless the request says otherwise: a day.
const OVERLAP_MS_DEFAULT: u64 = 86_400_000;
/// The longest: a month.
const OVERLAP_MS_MAX: u64 = 2_592_000_000;

const PATH: &str = "/v1/endpoints/{endpoint}/webhook-secret";
const OVERLAP: &[Parameter] = &[query(
    "overlapMs",
    ParameterKind::Integer { min: 0, max: OVERLAP_MS_MAX, default: Some(OVERLAP_MS_DEFAULT) },
    "for how long webhooks are signed with the secret before, too, in milliseconds",
)];

/// The operations on the secrets of webhooks.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("GetWebhookSecrets", PATH, get)
            .summary("which secrets sign an endpoint's webhooks")
            .about("When they were made, and until when they are good. The secrets themselves are shown once.")
            .gives("WebhookSecrets"),
        Operation::post("RotateWebhookSecret", PATH, rotate)
            .summary("makes a new secret, and shows it this once")
            .about("Webhooks are signed after the Standard Webhooks scheme from then on; with the secret before, too, until it is over.")
            .with(OVERLAP)
            .gives("NewWebhookSecret"),
        Operation::delete("DeleteWebhookSecrets", PATH, delete)
            .summary("removes an endpoint's secrets: its webhooks are not signed any more"),
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
    let about = "Secrets with which the receivers of webhooks can tell that a call is ours.";
    Group { name: "Webhook secrets", about, operations, schemas }
}

async fn get(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    may_manage_endpoint(&state, &headers, &id)?;
    let secrets = state.engine().webhook_secrets(&id)?;
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
        Ok(state.engine().rotate_webhook_secret(endpoint.as_str(), overlap_ms).await?)
    })
    .await?;
    tracing::info!(%endpoint, by = %key.id, "webhook secret made");
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
        Ok(state.engine().remove_webhook_secrets(endpoint.as_str()).await?)
    })
    .await?;
    tracing::info!(%endpoint, by = %key.id, "webhook secrets removed");
    Ok(StatusCode::NO_CONTENT)
}

fn shown(secrets: &[WebhookSecret]) -> Vec<Value> {
    let view = |secret: &WebhookSecret| json!({ "createdAt": rfc3339(secret.created_at), "expiresAt": secret.expires_at.map(rfc3339) });
    secrets.iter().map(view).collect()
}
