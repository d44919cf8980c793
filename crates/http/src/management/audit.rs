//! `/v1/audit`: the audit log, which says key changed what.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use http::header::LINK;
use serde_json::json;

use super::access::may_manage;
use crate::HttpState;
use crate::audit::Filter;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{object, text, time};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;

const PARAMETERS: &[Parameter] = &[
    query(
        "limit",
        ParameterKind::Integer { min: 1, max: LIMIT_MAX, default: Some(LIMIT_DEFAULT) },
        "how many at most",
    ),
    query(
        "cursor",
        ParameterKind::Form("^[0-9]{1,19}$"),
        "where the previous page ended, from its `Link` header",
    ),
    query(
        "resource",
        ParameterKind::Text,
        "only this resource: `endpoints/<id>`, or `endpoints` for all of them",
    ),
    query("key", ParameterKind::Text, "by the key with this id"),
    query("since", ParameterKind::Time, "not before"),
];

/// The operation that reads the log.
pub(super) fn group() -> Group {
    let key = object(&[("id", text()), ("name", text())], &["id", "name"]);
    let entry = object(
        &[
            ("id", json!({ "type": "integer", "format": "int64" })),
            ("at", time()),
            ("event", json!({ "type": "string", "enum": ["change", "newAddress", "session"] })),
            ("key", key),
            ("via", json!({ "type": "string", "enum": ["console"] })),
            ("session", text()),
            ("address", text()),
            ("requestId", text()),
            ("method", text()),
            ("path", text()),
            ("resource", text()),
            ("fields", json!({ "type": "array", "items": { "type": "string" } })),
            ("status", json!({ "type": "integer" })),
            (
                "outcome",
                json!({ "type": "string", "enum": ["done", "refused", "failed", "opened", "ended", "replaced", "expired"] }),
            ),
        ],
        &["id", "at", "event", "outcome"],
    );
    let operations = vec![
        Operation::get("ListAuditEntries", "/v1/audit", list)
            .summary("who changed what, newest first")
            .about("Changes under `/v1` by keys of this server, done or refused, bulk tasks, the first use of each key from an \
                    address, and sign-ins at the console. Names of fields, never their values.")
            .gives_many("AuditEntry")
            .with(PARAMETERS),
    ];
    Group { name: "Audit", about: "Who changed what.", operations, schemas: vec![("AuditEntry", entry)] }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    may_manage(&state, &headers)?;
    let query = Query::of(&uri)?;
    let filter = filter(&query)?;
    let limit = filter.limit;
    let found = match state.audit().cloned() {
        None => Ok(Ok(crate::audit::AuditPage::default())),
        Some(log) => tokio::task::spawn_blocking(move || log.find(&filter)).await,
    };
    let found = found.map_err(|_| ApiError::internal())?.map_err(|error| {
        tracing::error!(%error, "the audit log cannot be read");
        ApiError::unavailable("unavailable", "the audit log cannot be read at the moment; ask again")
    })?;
    let last = found.entries.last().map(|entry| entry.id).filter(|_| found.more);
    let mut response = axum::Json(found.entries).into_response();
    let link = last.and_then(|last| {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let others = pairs.filter(|(name, _)| !matches!(name.as_ref(), "limit" | "cursor"));
        let mut rest = form_urlencoded::Serializer::new(String::new());
        rest.append_pair("limit", &limit.to_string())
            .append_pair("cursor", &last.to_string())
            .extend_pairs(others);
        HeaderValue::try_from(format!("</v1/audit?{}>; rel=\"next\"", rest.finish())).ok()
    });
    if let Some(link) = link {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

fn filter(query: &Query) -> Result<Filter, ApiError> {
    let bad = |text| ApiError::bad_request("bad_parameter", text);
    let since = match query.get("since") {
        None => None,
        Some(text) => {
            let at = parse_rfc3339(text);
            Some(rfc3339(at.ok_or_else(|| bad("`since` must be a moment such as 2030-01-31T12:00:00Z"))?))
        }
    };
    let before = query
        .get("cursor")
        .map(|text| text.parse().map_err(|_| bad("`cursor` is not one that this server gave")));
    Ok(Filter {
        resource: query.get("resource").map(str::to_owned),
        key: query.get("key").map(str::to_owned),
        since,
        before: before.transpose()?,
        limit: query.integer("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT) as usize,
    })
}
