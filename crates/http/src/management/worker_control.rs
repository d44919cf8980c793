//! Draining and stopping managed workers, one or all, and ending the wait after crashes.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use longshore_engine::EndpointHandle;
use longshore_model::WorkerId;
use serde_json::json;

use super::access::{may_manage_endpoint, may_see_machines};
use super::workers::no_such_worker;
use super::{JsonResult, PathId, PathIds, pods};
use crate::HttpState;
use crate::gate::caller::Caller;
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;

const WORKER: &str = "/v1/endpoints/{endpoint}/workers/{worker}";

/// The operations that change what runs the jobs of an endpoint.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::post("DrainWorker", format!("{WORKER}/drain"), drain)
            .summary("ends a worker after its running jobs")
            .about("The worker gets no further job, and is stopped when it runs none. Another one starts if the load needs it.")
            .gives("Pod"),
        Operation::post("StopWorker", format!("{WORKER}/stop"), stop)
            .summary("ends a worker now")
            .about("The worker gets no further job and SIGTERM, and SIGKILL after `stopGraceMs`. Jobs that it still runs then are \
                    queued again at the front, without counting a retry.")
            .gives("Pod"),
        Operation::post("DrainWorkers", "/v1/endpoints/{endpoint}/workers/drain", drain_all)
            .summary("ends all workers after their running jobs")
            .about("Answers the workers that drain. Those that were started elsewhere go on: the server cannot stop them. Other \
                    workers start if the load needs them.")
            .gives_many("Pod"),
        Operation::post("TryWorkersNow", "/v1/endpoints/{endpoint}/try-now", try_now)
            .summary("ends the wait after crashes of workers")
            .about("The next worker starts now, if jobs wait for one.")
            .gives_many("Pod"),
    ];
    let about = "Workers that the server started, under the hand of an operator.";
    Group { name: "Worker control", about, operations, schemas: Vec::new() }
}

async fn drain(
    State(state): State<HttpState>,
    PathIds([id, worker]): PathIds,
    headers: HeaderMap,
) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let worker = managed(&endpoint, &worker).await?;
    drain_one(&endpoint, &worker, &key).await?;
    ending(&state, &endpoint, &worker).await
}

async fn drain_one(endpoint: &EndpointHandle, worker: &WorkerId, key: &Caller) -> Result<(), ApiError> {
    endpoint.workers().drain_managed(worker.clone()).await?;
    tracing::info!(endpoint = %endpoint.id(), %worker, by = %key.id, "worker drain requested");
    Ok(())
}

async fn drain_all(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let fleet = endpoint.workers().fleet_status();
    let ids: Vec<WorkerId> = fleet.workers.iter().map(|managed| managed.id.clone()).collect();
    for worker in &ids {
        drain_one(&endpoint, worker, &key).await?;
    }
    let mut pods = pods::of_endpoint(&state, &endpoint, false).await;
    // One that has exited meanwhile is no longer listed.
    pods.retain(|pod| ids.iter().any(|id| pod["id"] == json!(id)));
    for pod in &mut pods {
        pod["status"] = json!("DRAINING");
    }
    Ok(Json(pods.into()))
}

async fn stop(
    State(state): State<HttpState>,
    PathIds([id, worker]): PathIds,
    headers: HeaderMap,
) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let worker = managed(&endpoint, &worker).await?;
    endpoint.workers().stop_managed(worker.clone()).await?;
    tracing::info!(endpoint = %endpoint.id(), %worker, by = %key.id, "worker stop requested");
    ending(&state, &endpoint, &worker).await
}

async fn try_now(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    endpoint.workers().try_now();
    tracing::info!(endpoint = %endpoint.id(), by = %key.id, "wait after crashes ended");
    Ok(Json(pods::of_endpoint(&state, &endpoint, may_see_machines(&state, &key)).await.into()))
}

/// The id of a worker that this server started and that has not exited.
///
/// # Errors
///
/// 404 for an unknown worker, 400 for an external one.
async fn managed(endpoint: &EndpointHandle, worker: &str) -> Result<WorkerId, ApiError> {
    let worker: WorkerId = worker.parse().map_err(|_| no_such_worker())?;
    if endpoint.workers().fleet_status().workers.iter().any(|managed| managed.id == worker) {
        return Ok(worker);
    }
    if endpoint.workers().fleet_view().await?.workers.iter().any(|known| known.id == worker) {
        let text = "the worker is external: stop it where it runs, with SIGTERM";
        return Err(ApiError::bad_request("worker_not_managed", text));
    }
    Err(ApiError::new(
        StatusCode::NOT_FOUND,
        "worker_not_found",
        "the endpoint has no running worker with this id",
    ))
}

/// The worker that was told to end.
async fn ending(state: &HttpState, endpoint: &EndpointHandle, worker: &WorkerId) -> JsonResult {
    let shown =
        pods::of_endpoint(state, endpoint, false).await.into_iter().find(|pod| pod["id"] == json!(worker));
    // One that has exited meanwhile is no longer listed.
    let mut pod = shown
        .unwrap_or_else(|| json!({ "id": worker, "endpointId": endpoint.id(), "desiredStatus": "EXITED" }));
    pod["status"] = json!("DRAINING");
    Ok(Json(pod))
}
