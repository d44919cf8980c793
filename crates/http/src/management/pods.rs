//! `/v1/pods`: the workers, in the form in which the official clients read pods. Read-only: the server starts and
//! stops workers itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::{EndpointHandle, WorkerStatus, WorkerView};
use longshore_model::{ComputeType, Endpoint, Gpu, Template, WorkerPhase};
use serde_json::{Map, Value, json};

use super::access::may_read;
use super::etag::ETag;
use super::{PathId, views};
use crate::HttpState;
use crate::openapi::page::Page;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, text, texts_by_name, time};
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
    let unenforced = json!({
        "type": "string",
        "description": "the limits of its endpoint (`memoryBytes`, `vcpus`) that are not enforced for it, and why",
    });
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
            ("version", count()),
            ("jobsInProgress", count()),
            ("idleMs", count()),
            ("gpu", gpu),
            ("costPerHr", number()),
            ("adjustedCostPerHr", number()),
            ("lastStartedAt", time()),
            ("env", texts_by_name()),
            ("dockerEntrypoint", array_of(&text())),
            ("dockerStartCmd", array_of(&text())),
            ("containerDiskInGb", count()),
            ("volumeInGb", count()),
            ("volumeMountPath", text()),
            ("ports", array_of(&text())),
            ("vcpuCount", count()),
            ("unenforcedLimits", unenforced),
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
                of_endpoint(&state, &endpoint).await.into_iter().filter(|pod| has_requested_gpu(&query, pod)),
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
        let found = of_endpoint(&state, &endpoint).await.into_iter().find(|pod| pod["id"] == json!(id));
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
/// placement.
pub(super) async fn of_endpoint(state: &HttpState, endpoint: &EndpointHandle) -> Vec<Value> {
    // An endpoint that was deleted meanwhile has no workers.
    let view = endpoint.workers().fleet_view().await.unwrap_or_default();
    let status = endpoint.workers().fleet_status();
    let record = endpoint.record();
    let template = state.engine().catalog().template(&record.template_id);
    let of = Common { state, record: &record, template: template.as_ref() };
    let managed = |worker: &WorkerView| status.workers.iter().find(|managed| managed.id == worker.id);
    let registered = view.workers.iter().map(|worker| of.registered(worker, managed(worker)));
    let starting =
        status.workers.iter().filter(|managed| view.workers.iter().all(|one| one.id != managed.id));
    let starting = starting.map(|managed| of.starting(managed));
    let throttled = (1..=status.throttled).map(|n| of.throttled(n, status.throttled_because.as_deref()));
    registered.chain(starting).chain(throttled).map(Value::Object).collect()
}

/// The values that all workers of one endpoint share.
struct Common<'a> {
    state: &'a HttpState,
    record: &'a Endpoint,
    template: Option<&'a Arc<Template>>,
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
        if let Some(managed) = managed {
            self.place(&mut pod, managed);
        }
        pod
    }

    /// A worker that the server has started and that has sent no request yet.
    fn starting(&self, managed: &WorkerStatus) -> Map<String, Value> {
        let mut pod = self.pod(managed.id.as_str(), "INITIALIZING");
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

    /// Adds the placement of a managed worker and its price.
    fn place(&self, pod: &mut Map<String, Value>, managed: &WorkerStatus) {
        let gpus: &[Gpu] = &managed.placement.gpus;
        if let Some(first) = gpus.first() {
            let gpu = json!({ "id": first.type_id, "displayName": first.type_id, "count": gpus.len() });
            pod.insert("gpu".to_owned(), gpu);
        }
        let type_id = gpus.first().map(|gpu| gpu.type_id.as_str());
        let cost = self.state.prices().per_hour(type_id, gpus.len());
        pod.insert("costPerHr".to_owned(), json!(cost));
        pod.insert("adjustedCostPerHr".to_owned(), json!(cost));
        pod.insert("version".to_owned(), json!(managed.version));
        if let Some(text) = &managed.placement.unenforced_limits {
            pod.insert("unenforcedLimits".to_owned(), json!(text));
        }
        // Workers that an older version started have no start time.
        if managed.placement.started_at.0 > 0 {
            pod.insert("lastStartedAt".to_owned(), views::time(managed.placement.started_at));
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
