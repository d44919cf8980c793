//! `/v1/endpoints/{endpoint}/workers`: the workers of an endpoint and their logs.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use longshore_engine::{EndpointHandle, Workers};
use longshore_model::Permission::ReadCatalog;
use longshore_model::{EndpointId, WorkerId};
use serde_json::Value;

use super::access::{may_read_endpoint, may_see_machines};
use super::log_tail::{FindLog, LogBody, LogTail, send_once_there};
use super::{JsonResult, PathIds, pods};
use crate::HttpState;
use crate::events::reads::Read;
use crate::gate::auth;
use crate::gate::auth::OngoingAccess;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::{Group, Operation};
use crate::services::files::WorkerLog;
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

/// The largest `tail`: more lines than a log file of full size has.
const TAIL_LINES_MAX: u64 = 1_000_000;

const ENDED: &[Parameter] =
    &[query("ended", ParameterKind::Flag, "also lists ended workers whose logs are stored")];
const LOG: &[Parameter] = &[
    query(
        "tail",
        ParameterKind::Integer { min: 0, max: TAIL_LINES_MAX, default: None },
        "the number of lines to start with, from the end of the log",
    ),
    query("follow", ParameterKind::Flag, "continues with new lines until the worker ends"),
];

/// The operations on workers.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListWorkers", "/v1/endpoints/{endpoint}/workers", list)
            .summary("the workers of an endpoint")
            .gives_many("Pod")
            .with(ENDED),
        Operation::get("GetWorkerLogs", "/v1/endpoints/{endpoint}/workers/{worker}/logs", logs)
            .summary("what a worker prints")
            .about("The text as the worker printed it. A worker that runs elsewhere keeps its output there: the answer is empty.")
            .gives_text("text/plain; charset=utf-8")
            .with(LOG),
    ];
    let about = "What runs the jobs of an endpoint.";
    Group { name: "Workers", about, operations, schemas: Vec::new() }
}

async fn list(
    State(state): State<HttpState>,
    PathIds([id, _]): PathIds,
    uri: Uri,
    headers: HeaderMap,
) -> JsonResult {
    let (key, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let ended = Query::of(&uri)?.flag("ended")?;
    let mut workers = pods::of_endpoint(&state, &endpoint, may_see_machines(&state, &key)).await;
    state.events().note_read(endpoint.id(), || Read::of_workers(&workers));
    if ended {
        let (files, of) = (Arc::clone(state.files()), endpoint.id());
        let ended = blocking(move || files.ended_workers(&of)).await?;
        workers.extend(pods::ended_of_endpoint(&state, &endpoint, &ended));
    }
    Ok(Value::Array(workers).into())
}

async fn logs(
    State(state): State<HttpState>,
    PathIds([id, worker]): PathIds,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (key, endpoint) = auth::authorize_endpoint(&state, &headers, ReadCatalog, &id)?;
    let query = Query::of(&uri)?;
    let tail = query.integer("tail", 0, TAIL_LINES_MAX)?;
    // The form of a worker id has no `/` and no `.` at the start, so the id cannot name a file outside of the log directory.
    let worker: WorkerId = worker.parse().map_err(|_| no_such_worker())?;
    let log = find(&state, endpoint.id(), worker.clone()).await?;
    let is_starting = log.is_none() && is_managed(&endpoint, &worker);
    if log.is_none() && !is_starting && !is_known(endpoint.workers(), &worker).await? {
        return Err(no_such_worker());
    }
    let (pieces, sender) = LogBody::channel();
    let follow = query.flag("follow")?.then(|| {
        let (state, endpoint, worker) = (state.clone(), endpoint.id(), worker.clone());
        let access = OngoingAccess::of(&key, ReadCatalog, endpoint);
        let find_log: FindLog =
            Box::new(move || state.files().worker_log(&endpoint, &worker).filter(|_| access.holds(&state)));
        find_log
    });
    match (log, follow) {
        (Some(log), follow) => {
            state.engine().spawn(async move { LogTail::new(log.path, sender).send(tail, follow).await });
        }
        (None, Some(find_log)) if is_starting => {
            let access = OngoingAccess::of(&key, ReadCatalog, endpoint.id());
            let reader = state.clone();
            let is_awaited = move || access.holds(&reader) && is_managed(&endpoint, &worker);
            state.engine().spawn(async move { send_once_there(sender, tail, find_log, is_awaited).await });
        }
        // Nothing is there yet, or the output stays where the worker runs.
        (None, _) => {}
    }
    Ok(text_of(Body::new(pieces)))
}

/// Whether the server starts or runs the worker.
fn is_managed(endpoint: &EndpointHandle, worker: &WorkerId) -> bool {
    endpoint.workers().fleet_status().workers.iter().any(|managed| managed.id == *worker)
}

async fn find(
    state: &HttpState,
    endpoint: EndpointId,
    worker: WorkerId,
) -> Result<Option<WorkerLog>, ApiError> {
    let files = Arc::clone(state.files());
    blocking(move || files.worker_log(&endpoint, &worker)).await
}

async fn is_known(workers: &Workers, worker: &WorkerId) -> Result<bool, ApiError> {
    Ok(workers.fleet_view().await?.workers.iter().any(|one| one.id == *worker))
}

fn text_of(body: Body) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
}

pub(super) fn no_such_worker() -> ApiError {
    ApiError::new(
        http::StatusCode::NOT_FOUND,
        "worker_not_found",
        "the endpoint has no worker with this id, and no log of one",
    )
}

/// Runs blocking work on a thread for blocking calls.
///
/// # Errors
///
/// 500 if the work panicked.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::internal())
}
