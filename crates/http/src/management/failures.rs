//! `/v1/endpoints/{endpoint}/failures`: why jobs failed, in groups.

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use longshore_history::{FailureGroup, FailureKind};
use longshore_model::Millis;
use serde_json::{Value, json};

use super::access::may_read_endpoint;
use super::{JsonResult, PathId};
use crate::HttpState;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, or_null, text, time};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};

/// How far failures are read back without `since`, in ms: 7 days.
const USUAL_MS: u64 = 7 * 86_400_000;

const SINCE: &[Parameter] = &[query(
    "since",
    ParameterKind::Time,
    "counts failures from this hour on; 7 days ago by default, at most 30",
)];

const ABOUT: &str = "Failures of the same kind, type and place whose messages differ in numbers and ids alone are one group; `#` \
    stands in their place. At most 100 groups are kept, for 30 days, the largest first. `perHour` has the failures of each hour from \
    `since` to now. `sinceVersion` is the version of the endpoint in which the group was seen first, and `job` the last job. \
    `presentVersion` is the version of the endpoint now, and `presentVersionCount` how many of `count` failed in it; it is null \
    while an earlier version of the server counted some of them. A group without a type, message and place has failures that came too fast to read their errors. A killed server loses the \
    failures of a minute.";

/// The operation on failures.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListFailures", "/v1/endpoints/{endpoint}/failures", list)
            .summary("why jobs of an endpoint failed, in groups")
            .about(ABOUT)
            .gives_many("FailureGroup")
            .with(SINCE),
    ];
    let about = "Why jobs failed.";
    Group { name: "Failures", about, operations, schemas: vec![("FailureGroup", schema())] }
}

fn schema() -> Value {
    let nullable = || or_null(text());
    let kinds = FailureKind::ALL.map(FailureKind::as_str);
    let members = [
        ("group", text()),
        ("kind", json!({ "type": "string", "enum": kinds })),
        ("type", nullable()),
        ("message", nullable()),
        ("place", nullable()),
        ("count", count()),
        ("firstAt", time()),
        ("lastAt", time()),
        ("sinceVersion", count()),
        ("presentVersion", count()),
        ("presentVersionCount", or_null(count())),
        ("job", text()),
        ("perHour", array_of(&count())),
    ];
    let names = members.each_ref().map(|(name, _)| *name);
    object(&members, &names)
}

async fn list(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> JsonResult {
    let (_, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let query = Query::of(&uri)?;
    let now = state.engine().now();
    let since = match query.get("since").filter(|text| !text.is_empty()) {
        Some(text) => parse_rfc3339(text).ok_or_else(|| {
            ApiError::bad_request(
                "bad_parameter",
                "`since` must be a time as in RFC 3339, like 2026-01-31T12:00:00Z",
            )
        })?,
        None => Millis(now.0.saturating_sub(USUAL_MS)),
    };
    let Some(history) = state.history() else { return Ok(json!([]).into()) };
    // The failures of the last moment, too.
    state.engine().note_failures(history);
    let groups = history.failures().read(&endpoint.id(), since, now, endpoint.record().version);
    Ok(groups.iter().map(view).collect::<Value>().into())
}

fn view(group: &FailureGroup) -> Value {
    json!({
        "group": group.group,
        "kind": group.kind.as_str(),
        "type": group.error_type,
        "message": group.message,
        "place": group.place,
        "count": group.count,
        "firstAt": rfc3339(Millis(group.first_at)),
        "lastAt": rfc3339(Millis(group.last_at)),
        "sinceVersion": group.since_version,
        "presentVersion": group.present_version,
        "presentVersionCount": group.present_version_count,
        "job": group.job,
        "perHour": group.per_hour,
    })
}
