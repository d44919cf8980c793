//! `/v1/attention`: what is wrong on this server, worst first.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::{EndpointHandle, Explanation, Severity, WaitAction, WaitCause, problem};
use longshore_model::{EndpointId, Permission};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::JsonResult;
use crate::HttpState;
use crate::events::reads::Read;
use crate::gate::auth;
use crate::openapi::schema::{array_of, count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::services::burns::BurningBudget;
use crate::wire::rfc3339::rfc3339;

/// How long an endpoint may take to say what is wrong. One that takes longer is left out.
const PATIENCE: Duration = Duration::from_secs(1);
/// Endpoints that are asked concurrently.
const CONCURRENT: usize = 16;
/// The last lines of a log that are shown with a problem.
const EVIDENCE_MAX: usize = 4;

/// The operation that lists problems.
pub(super) fn group() -> Group {
    let action = object(&[("do", text()), ("title", text())], &["do", "title"]);
    let mut since = time();
    since["nullable"] = json!(true);
    let nullable_text = json!({ "type": "string", "nullable": true });
    let members = [
        ("id", text()),
        ("code", text()),
        ("severity", json!({ "type": "string", "enum": ["bad", "warn"] })),
        ("endpoint", text()),
        ("slug", nullable_text),
        ("name", text()),
        ("since", since),
        ("title", text()),
        ("text", text()),
        ("evidence", array_of(&text())),
        ("jobs", count()),
        ("actions", array_of(&action)),
    ];
    let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let operations = vec![
        Operation::get("ListProblems", "/v1/attention", list)
            .summary("what is wrong, worst first")
            .about("One problem for each endpoint that needs a person, of those that the key may read. `code` is that of \
                    `/explain`, or `delay_budget_burn` or `error_budget_burn` if the budget of an objective is used up too \
                    fast, `evidence` has the last lines of a worker's log, and `jobs` is the number of jobs that wait. An \
                    endpoint whose queue does not answer within a second is left out.")
            .gives_many("Problem"),
    ];
    let about = "What needs a person.";
    Group { name: "Attention", about, operations, schemas: vec![("Problem", object(&members, &names))] }
}

async fn list(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    let key = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    let now = auth::now_for(&key, &state);
    let may = |permission, id: &EndpointId| key.permits(permission, Some(id), now);
    let mut endpoints = state.engine().endpoints();
    endpoints.retain(|endpoint| may(Permission::ReadCatalog, &endpoint.id()));
    let (state, may) = (&state, &may);
    let found: Vec<_> = iter(endpoints)
        .map(|endpoint| async move {
            let may_name = |id: &EndpointId| may(Permission::ReadCatalog, id);
            let acts = may(Permission::WriteCatalog, &endpoint.id());
            let problem = of_endpoint(state, &endpoint, &may_name, acts).await;
            let view = problem.as_ref().map(|problem| &problem.view);
            state.events().note_read(endpoint.id(), || Read::of_problem(view));
            problem
        })
        .buffered(CONCURRENT)
        .collect()
        .await;
    let mut problems: Vec<_> = found.into_iter().flatten().collect();
    problems.sort_by_key(|problem| (problem.severity, std::cmp::Reverse(problem.jobs)));
    Ok(Value::Array(problems.into_iter().map(|problem| problem.view).collect()).into())
}

/// The problem of an endpoint, as events show it: with actions, which readers filter, and without the names of other endpoints.
pub(super) async fn for_events(state: &HttpState, endpoint: &EndpointHandle) -> Option<Value> {
    let is_itself = |id: &EndpointId| *id == endpoint.id();
    of_endpoint(state, endpoint, &is_itself, true).await.map(|problem| problem.view)
}

/// What is wrong with an endpoint.
struct Problem {
    severity: Severity,
    /// The number of jobs that wait.
    jobs: u64,
    view: Value,
}

/// The problem of an endpoint; `None` if it has none. With `acts`, it has what a person can do.
async fn of_endpoint(
    state: &HttpState,
    endpoint: &EndpointHandle,
    may_name: &(dyn Fn(&EndpointId) -> bool + Sync),
    acts: bool,
) -> Option<Problem> {
    let explaining = state.engine().explain(endpoint, None, may_name);
    let explanation: Explanation = timeout(PATIENCE, explaining).await.ok()?.ok()?;
    let jobs = explanation.queued.unwrap_or_default();
    let found = problem(&explanation);
    let burning = state.burns().burning(state.history(), endpoint, state.engine().now()).await;
    // Of two problems of one severity, the cause is shown, which the budget follows from.
    let (severity, view) = match (found, burning) {
        (Some((severity, _)), Some(burning)) if burning.severity < severity => {
            (burning.severity, burning_view(endpoint, &burning, jobs))
        }
        (Some((severity, cause)), _) => (severity, view(endpoint, severity, cause, jobs, acts)),
        (None, Some(burning)) => (burning.severity, burning_view(endpoint, &burning, jobs)),
        (None, None) => return None,
    };
    Some(Problem { severity, jobs, view })
}

/// A budget that burns, in the form of a problem.
fn burning_view(endpoint: &EndpointHandle, burning: &BurningBudget, jobs: u64) -> Value {
    let record = endpoint.record();
    json!({
        "id": format!("{}/{}", record.id, burning.code),
        "code": burning.code,
        "severity": burning.severity.as_str(),
        "endpoint": record.id,
        "slug": record.slug,
        "name": record.name,
        "since": null,
        "title": burning.title,
        "text": burning.text,
        "evidence": [],
        "jobs": jobs,
        "actions": [],
    })
}

fn view(endpoint: &EndpointHandle, severity: Severity, cause: &WaitCause, jobs: u64, acts: bool) -> Value {
    let record = endpoint.record();
    let lines = cause.log_tail.len().saturating_sub(EVIDENCE_MAX);
    let actions: &[WaitAction] = if acts { &cause.actions } else { &[] };
    json!({
        "id": format!("{}/{}", record.id, cause.code.as_str()),
        "code": cause.code.as_str(),
        "severity": severity.as_str(),
        "endpoint": record.id,
        "slug": record.slug,
        "name": record.name,
        "since": cause.since.map(rfc3339),
        "title": cause.title,
        "text": cause.text,
        "evidence": cause.log_tail[lines..],
        "jobs": jobs,
        "actions": actions.iter().map(|it| json!({ "do": it.as_str(), "title": it.title() })).collect::<Vec<_>>(),
    })
}
