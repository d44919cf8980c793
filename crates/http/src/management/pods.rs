//! `/v1/pods`: the workers, in the form in which the official clients read pods. Read-only: the server starts and
//! stops workers itself.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::{EndpointHandle, WorkerStatus, WorkerUsage, WorkerView};
use longshore_model::{
    ComputeType, EndedWorker, Endpoint, Gpu, Millis, Placement, StartCause, StartStage, Template, WorkerId,
    WorkerPhase,
};
use serde_json::{Map, Value, json};

use super::access::may_read;
use super::etag::ETag;
use super::machines::LOCAL;
use super::worker_gpus::{self, WorkerGpus};
use super::{PathId, views};
use crate::HttpState;
use crate::openapi::page::Page;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, environment, object, text, time};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

const COMPUTE_TYPES: &[&str] = &["GPU", "CPU"];
const STATUSES: &[&str] = &["RUNNING", "EXITED", "TERMINATED"];

/// The parameters that filter the list of workers.
const FILTERS: &[Parameter] = &[
    query("endpointId", ParameterKind::Text, "only the workers of this endpoint"),
    query("templateId", ParameterKind::Text, "only the workers of this template's endpoints"),
    query("gpuTypeId", ParameterKind::Texts, "only workers with GPUs of one of these types"),
    query(
        "computeType",
        ParameterKind::Word { words: COMPUTE_TYPES, default: None },
        "only workers of endpoints with this compute type",
    ),
    query("imageName", ParameterKind::Text, "only workers of this image"),
    query("name", ParameterKind::Text, "only the workers of endpoints with this name"),
    query("desiredStatus", ParameterKind::Word { words: STATUSES, default: None }, "`RUNNING` shows all"),
];

/// The operations on workers.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListPods", "/v1/pods", list).summary("every worker").lists("Pod").with(FILTERS),
        Operation::get("GetPod", "/v1/pods/{pod}", get).summary("one worker").gives("Pod").tagged(),
    ];
    let gpu = object(&[("id", text()), ("displayName", text()), ("count", count())], &["id", "count"]);
    let number = || json!({ "type": "number" });
    let status = json!({
        "type": "string",
        "enum": ["INITIALIZING", "IDLE", "RUNNING", "DRAINING", "THROTTLED", "EXITED"],
        "description": "the status; a `THROTTLED` worker has no placement yet, for the `reason`",
    });
    let (started_because, exit) = start_and_end();
    let pod = object(
        &[
            ("id", text()),
            ("name", text()),
            ("endpointId", text()),
            ("templateId", text()),
            ("image", text()),
            ("desiredStatus", text()),
            ("status", status),
            ("reason", text()),
            ("stage", stage()),
            ("version", count()),
            ("jobsInProgress", count()),
            ("idleMs", count()),
            ("gpu", gpu),
            ("gpus", worker_gpus::schema()),
            ("machineId", machine_id()),
            ("costPerHr", number()),
            ("adjustedCostPerHr", number()),
            ("lastStartedAt", time()),
            ("startedAt", time()),
            ("readyAt", time()),
            ("startMs", count()),
            ("startedBecause", started_because),
            ("endedAt", time()),
            ("exit", exit),
            ("jobs", array_of(&text())),
            ("jobsDone", count()),
            ("lastHeardAt", time()),
            ("address", address()),
            ("health", health()),
            ("lastCheck", text()),
            ("rssBytes", count()),
            ("cpuRatio", cpu_ratio()),
            ("env", environment()),
            ("dockerEntrypoint", array_of(&text())),
            ("dockerStartCmd", array_of(&text())),
            ("containerDiskInGb", count()),
            ("volumeInGb", count()),
            ("volumeMountPath", text()),
            ("ports", array_of(&text())),
            ("vcpuCount", count()),
            ("unenforcedLimits", unenforced_limits()),
            ("interruptible", json!({ "type": "boolean" })),
            ("locked", json!({ "type": "boolean" })),
        ],
        &["id", "endpointId", "desiredStatus", "status"],
    );
    Group {
        name: "Pods",
        about: "The workers, to look at. Endpoints start and end theirs themselves.",
        operations,
        schemas: vec![("Pod", pod)],
    }
}

/// The schema of what happens at a worker's start.
fn stage() -> Value {
    json!({
        "type": "string",
        "description": "what happens to a worker that is being started, such as `pulling 41 of 109 MB`",
    })
}

/// The schema of the address of an external worker.
fn address() -> Value {
    json!({
        "type": "string",
        "description": "the address that an external worker last asked for jobs from, behind `trusted_proxies` that of the \
                        proxy's client; absent for a key without `read` or `manage` for all endpoints",
    })
}

/// The schema of the health of a worker that serves HTTP.
fn health() -> Value {
    let known = ["starting", "initializing", "healthy", "unhealthy"];
    json!({ "type": "string", "enum": known, "description": "the health of a worker that serves HTTP" })
}

/// The schema of the id of a worker's computer.
fn machine_id() -> Value {
    json!({
        "type": "string",
        "description": "the computer that runs it, as in `/v1/machines`; absent if someone else has started it",
    })
}

/// The schema of the limits that are not enforced for a worker.
fn unenforced_limits() -> Value {
    json!({
        "type": "string",
        "description": "the limits of its endpoint (`memoryBytes`, `vcpus`) that are not enforced for it, and why",
    })
}

/// The schema of the processors that a worker uses.
fn cpu_ratio() -> Value {
    json!({
        "type": "number", "minimum": 0,
        "description": "the processors that it used on average since it was last asked for",
    })
}

/// The schemas of why a worker was started and of how it ended.
fn start_and_end() -> (Value, Value) {
    let causes = StartCause::ALL.map(StartCause::as_str);
    let started_because = json!({ "type": "string", "enum": causes, "description": "why it was started" });
    let nullable = |kind: &str| json!({ "type": kind, "nullable": true });
    let exit = object(
        &[
            ("code", nullable("integer")),
            ("signal", nullable("integer")),
            ("because", nullable("string")),
            ("stopped", json!({ "type": "boolean", "description": "whether the server was stopping it" })),
            (
                "stopReason",
                json!({
                    "type": "string", "nullable": true,
                    "description": "why the server was stopping it, such as `idle for longer than idleTimeout`",
                }),
            ),
        ],
        &["code", "signal", "because", "stopped", "stopReason"],
    );
    (started_because, exit)
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let query = Query::of(&uri)?;
    query.word("computeType", COMPUTE_TYPES)?;
    query.word("desiredStatus", STATUSES)?;
    let page = Page::of(&uri, &query)?;
    let mut pods = Vec::new();
    for endpoint in state.engine().endpoints() {
        if matches_query(&query, &state, &endpoint) {
            pods.extend(
                of_endpoint(&state, &endpoint, true)
                    .await
                    .into_iter()
                    .filter(|pod| has_requested_gpu(&query, pod)),
            );
        }
    }
    let key = |pod: &Value| (longshore_model::Millis(0), pod["id"].as_str().unwrap_or_default().to_owned());
    pods.sort_by_key(key);
    let (pods, cursor) = page.cut(pods, key);
    Ok(page.answer(pods, cursor))
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    for endpoint in state.engine().endpoints() {
        let found = of_endpoint(&state, &endpoint, true).await.into_iter().find(|pod| pod["id"] == json!(id));
        if let Some(pod) = found {
            return Ok(ETag::of(state.engine(), &pod).answer_get(&headers, pod));
        }
    }
    Err(ApiError::new(StatusCode::NOT_FOUND, "pod_not_found", "no worker has this id"))
}

fn matches_query(query: &Query, state: &HttpState, endpoint: &EndpointHandle) -> bool {
    let record = endpoint.record();
    let is = |name: &str, value: &str| query.get(name).is_none_or(|wanted| wanted == value);
    let image = || {
        state
            .engine()
            .catalog()
            .template(&record.template_id)
            .map_or_else(String::new, |t| t.image_name.clone())
    };
    is("endpointId", record.id.as_str())
        && is("templateId", record.template_id.as_str())
        && is("name", &record.name)
        && is("computeType", compute_type(&record))
        && is("desiredStatus", "RUNNING")
        && (query.get("imageName").is_none() || is("imageName", &image()))
}

fn has_requested_gpu(query: &Query, pod: &Value) -> bool {
    let mut wanted = query.all("gpuTypeId").peekable();
    wanted.peek().is_none() || wanted.any(|type_id| pod["gpu"]["id"] == json!(type_id))
}

fn compute_type(record: &Endpoint) -> &'static str {
    match record.compute_type {
        ComputeType::Gpu => "GPU",
        ComputeType::Cpu => "CPU",
    }
}

/// The workers of one endpoint: workers that the queue knows, workers that are starting, and workers without a
/// placement. `addresses`: with the addresses of the external ones.
pub(super) async fn of_endpoint(state: &HttpState, endpoint: &EndpointHandle, addresses: bool) -> Vec<Value> {
    // An endpoint that was deleted meanwhile has no workers.
    let view = endpoint.workers().fleet_view().await.unwrap_or_default();
    let status = endpoint.workers().fleet_status();
    let record = endpoint.record();
    let template = state.engine().catalog().template(&record.template_id);
    let usage = state.engine().worker_usage(&record).await;
    let gpus = WorkerGpus::of(state, &status);
    let stages = state.engine().start_stages(endpoint, &status).await;
    let of = Common { state, record: &record, template: template.as_ref(), usage, stages, gpus, addresses };
    let managed = |worker: &WorkerView| status.workers.iter().find(|managed| managed.id == worker.id);
    let registered = view.workers.iter().map(|worker| of.registered(worker, managed(worker)));
    let starting =
        status.workers.iter().filter(|managed| view.workers.iter().all(|one| one.id != managed.id));
    let starting = starting.map(|managed| of.starting(managed));
    let throttled = (1..=status.throttled).map(|n| of.throttled(n, status.throttled_because.as_deref()));
    registered.chain(starting).chain(throttled).map(Value::Object).collect()
}

/// The workers of one endpoint as events show them: without what is the same for all of them, and without addresses, which
/// not every reader may know.
pub(super) async fn for_events(state: &HttpState, endpoint: &EndpointHandle) -> Vec<Value> {
    let mut workers = of_endpoint(state, endpoint, false).await;
    for worker in workers.iter_mut().filter_map(Value::as_object_mut) {
        worker.retain(|name, _| {
            !["env", "dockerEntrypoint", "dockerStartCmd", "ports"].contains(&name.as_str())
        });
    }
    workers
}

/// The ended workers of one endpoint whose logs are stored, oldest first.
pub(super) fn ended_of_endpoint(
    state: &HttpState,
    endpoint: &EndpointHandle,
    ended: &[EndedWorker],
) -> Vec<Value> {
    let (record, gpus) = (endpoint.record(), WorkerGpus::none());
    let of = Common {
        state,
        record: &record,
        template: None,
        usage: HashMap::new(),
        stages: HashMap::new(),
        gpus,
        addresses: false,
    };
    ended.iter().map(|ended| Value::Object(of.ended(ended))).collect()
}

/// The values that all workers of one endpoint share.
struct Common<'a> {
    state: &'a HttpState,
    record: &'a Endpoint,
    template: Option<&'a Arc<Template>>,
    /// What the running workers use of their computer, as far as their launcher knows.
    usage: HashMap<WorkerId, WorkerUsage>,
    /// What happens to those that are starting.
    stages: HashMap<WorkerId, StartStage>,
    gpus: WorkerGpus,
    /// Whether the addresses of external workers are shown.
    addresses: bool,
}

impl Common<'_> {
    /// A worker that the queue knows. `managed` is its status if the server started it.
    fn registered(&self, worker: &WorkerView, managed: Option<&WorkerStatus>) -> Map<String, Value> {
        let status = match worker.phase {
            WorkerPhase::Initializing => "INITIALIZING",
            WorkerPhase::Idle => "IDLE",
            WorkerPhase::Running => "RUNNING",
            WorkerPhase::Draining => "DRAINING",
        };
        let mut pod = self.pod(worker.id.as_str(), status);
        pod.insert("jobsInProgress".to_owned(), json!(worker.running));
        pod.insert("idleMs".to_owned(), json!(worker.idle_ms));
        pod.insert("jobs".to_owned(), json!(worker.jobs));
        pod.insert("jobsDone".to_owned(), json!(worker.jobs_done));
        pod.insert("lastHeardAt".to_owned(), views::time(worker.last_contact));
        if let Some(address) = worker.address.filter(|_| self.addresses) {
            pod.insert("address".to_owned(), json!(address));
        }
        if let Some(note) = &worker.health {
            pod.insert("health".to_owned(), json!(note.health.as_str()));
            pod.insert("lastCheck".to_owned(), json!(&*note.last_check));
        }
        if let Some(managed) = managed {
            self.place(&mut pod, managed);
        }
        pod
    }

    /// A worker that the server has started and that has sent no request yet.
    fn starting(&self, managed: &WorkerStatus) -> Map<String, Value> {
        let status = if managed.is_ending { "DRAINING" } else { "INITIALIZING" };
        let mut pod = self.pod(managed.id.as_str(), status);
        self.place(&mut pod, managed);
        pod
    }

    /// The `n`th worker that waits for a placement.
    fn throttled(&self, n: u32, because: Option<&str>) -> Map<String, Value> {
        let mut pod = self.pod(&format!("{}-throttled-{n}", self.record.id), "THROTTLED");
        pod.insert("reason".to_owned(), json!(because.unwrap_or_default()));
        pod.insert("version".to_owned(), json!(self.record.version));
        pod
    }

    /// A worker that has ended.
    fn ended(&self, ended: &EndedWorker) -> Map<String, Value> {
        let mut pod = Map::new();
        let mut set = |name: &str, value: Value| pod.insert(name.to_owned(), value);
        set("id", json!(ended.worker));
        set("endpointId", json!(self.record.id));
        set("desiredStatus", json!("EXITED"));
        set("status", json!("EXITED"));
        set(
            "exit",
            json!({
                "code": ended.code,
                "signal": ended.signal,
                "because": ended.because,
                "stopped": ended.was_stopped,
                "stopReason": ended.stop_reason,
            }),
        );
        // Workers that an older version started have no version.
        if ended.version > 0 {
            set("version", json!(ended.version));
        }
        if ended.ended_at.0 > 0 {
            set("endedAt", views::time(ended.ended_at));
        }
        if let Some(served) = ended.served {
            set("jobsDone", json!(served.jobs_done));
        }
        set_placement(&mut pod, &ended.placement);
        set_readiness(&mut pod, &ended.placement, ended.served.and_then(|served| served.ready_at));
        pod
    }

    /// Adds the placement of a managed worker and its price.
    fn place(&self, pod: &mut Map<String, Value>, managed: &WorkerStatus) {
        let gpus: &[Gpu] = &managed.placement.gpus;
        let type_id = gpus.first().map(|gpu| gpu.type_id.as_str());
        let cost = self.state.prices().per_hour(type_id, gpus.len());
        pod.insert("costPerHr".to_owned(), json!(cost));
        pod.insert("adjustedCostPerHr".to_owned(), json!(cost));
        pod.insert("version".to_owned(), json!(managed.version));
        if let Some(text) = &managed.placement.unenforced_limits {
            pod.insert("unenforcedLimits".to_owned(), json!(text));
        }
        if let Some(stage) = self.stages.get(&managed.id) {
            pod.insert("stage".to_owned(), json!(stage_text(*stage)));
        }
        set_placement(pod, &managed.placement);
        set_readiness(pod, &managed.placement, managed.ready_at);
        if let Some(gpus) = self.gpus.view(&managed.id) {
            pod.insert("gpus".to_owned(), gpus);
        }
        if let Some(usage) = self.usage.get(&managed.id) {
            pod.insert("rssBytes".to_owned(), json!(usage.rss_bytes));
            pod.insert("cpuRatio".to_owned(), json!((usage.cpu_ratio * 1_000.0).round() / 1_000.0));
        }
    }

    fn pod(&self, id: &str, status: &str) -> Map<String, Value> {
        let mut pod = Map::new();
        let mut set = |name: &str, value: Value| pod.insert(name.to_owned(), value);
        set("id", json!(id));
        set("status", json!(status));
        set("desiredStatus", json!("RUNNING"));
        set("name", json!(self.record.name));
        set("endpointId", json!(self.record.id));
        set("templateId", json!(self.record.template_id));
        set("vcpuCount", json!(self.record.vcpu_count));
        set("interruptible", json!(false));
        set("locked", json!(false));
        if let Some(template) = self.template {
            set("image", json!(template.image_name));
            set("env", views::masked_env(template));
            set("dockerEntrypoint", json!(template.docker_entrypoint));
            set("dockerStartCmd", json!(template.docker_start_cmd));
            set("containerDiskInGb", json!(template.container_disk_in_gb));
            set("volumeInGb", json!(template.volume_in_gb));
            set("volumeMountPath", json!(template.volume_mount_path));
            set("ports", json!(template.ports));
        }
        pod
    }
}

/// Adds the computer and the GPUs of a worker, and when and why it was started.
fn set_placement(pod: &mut Map<String, Value>, placement: &Placement) {
    pod.insert("machineId".to_owned(), json!(LOCAL));
    if let Some(first) = placement.gpus.first() {
        let count = placement.gpus.len();
        let gpu = json!({ "id": first.type_id, "displayName": first.type_id, "count": count });
        pod.insert("gpu".to_owned(), gpu);
    }
    // Workers that an older version started have no start time.
    if placement.started_at.0 > 0 {
        pod.insert("lastStartedAt".to_owned(), views::time(placement.started_at));
        pod.insert("startedAt".to_owned(), views::time(placement.started_at));
    }
    if let Some(cause) = placement.cause {
        pod.insert("startedBecause".to_owned(), json!(cause.as_str()));
    }
}

/// Adds when a worker sent its first take, and how long its start took.
fn set_readiness(pod: &mut Map<String, Value>, placement: &Placement, ready_at: Option<Millis>) {
    let Some(ready_at) = ready_at else { return };
    pod.insert("readyAt".to_owned(), views::time(ready_at));
    if placement.started_at.0 > 0 {
        pod.insert("startMs".to_owned(), json!(ready_at.since(placement.started_at)));
    }
}

/// What a launcher does for a worker, with the progress of a pull.
fn stage_text(stage: StartStage) -> String {
    match stage {
        StartStage::Pulling { done_bytes, total_bytes } if total_bytes > 0 => {
            let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
            format!("pulling {} of {} MB", megabytes(done_bytes), megabytes(total_bytes))
        }
        stage => stage.as_str().to_owned(),
    }
}
