//! `/v1/server`: what this server is, and draining it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use longshore_engine::{DrainProgress, EngineMemory, EngineMetrics};
use longshore_model::Millis;
use serde_json::{Value, json};

use super::access::{may_manage, may_read};
use super::{JsonResult, to_the_end};
use crate::openapi::schema::{count, object, reference, text, time, with_example};
use crate::openapi::{Group, Operation};
use crate::readiness::Readiness;
use crate::services::certificate_end::CertificateEnd;
use crate::services::process;
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;
use crate::{HttpState, ScrubReport};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The operations on the server itself.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("GetServer", "/v1/server", get).summary("what this server is").gives("Server"),
        Operation::post("DrainServer", "/v1/server/drain", drain)
            .summary("drains the server, before its computer is rebooted")
            .about("From the response on, no job is handed out. Submits are accepted and kept, running jobs end, then \
                    managed workers end, and `/readyz` is 503. The drain is complete when `busyWorkers` and \
                    `managedWorkers` are 0.")
            .gives("Server"),
        Operation::delete("EndServerDrain", "/v1/server/drain", end_drain)
            .summary("ends the drain, as a restart does"),
    ];
    let state = json!({
        "type": "string",
        "enum": Readiness::WORDS,
        "description": "`READY`, or what keeps the server from some of its work",
    });
    let schemas = vec![
        ("Server", with_example(schema(state), example())),
        ("ServerCommits", figures(&["count", "failed", "p50Us", "p99Us", "meanCommands"])),
        ("ServerMemory", figures(&["jobs", "jobBytes", "recent", "recentMax", "history", "historyMax"])),
        ("ServerBytes", figures(&["diskFree", "inFlight", "inFlightMax", "resident"])),
        (
            "ServerConnections",
            figures(&["open", "eventReaders", "eventsDropped", "openFiles", "openFilesMax"]),
        ),
        ("ServerScrub", figures(&["bytes", "passes", "damaged"])),
        ("ServerTraces", object(&[("collector", text()), ("dropped", count())], &["collector", "dropped"])),
    ];
    Group { name: "Server", about: "The server itself.", operations, schemas }
}

/// An object of numbers; one that is unknown is null.
fn figures(names: &[&'static str]) -> Value {
    let number = json!({ "type": "number", "nullable": true });
    let members: Vec<_> = names.iter().map(|name| (*name, number.clone())).collect();
    object(&members, names)
}

fn schema(state: Value) -> Value {
    let or_null = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let members = [
        ("version", text()),
        ("startedAt", time()),
        ("state", state),
        ("reason", or_null(text())),
        ("drainingSince", or_null(time())),
        ("busyWorkers", count()),
        ("managedWorkers", count()),
        ("endpoints", count()),
        ("loadingQueues", count()),
        ("commits", reference("ServerCommits")),
        ("bytes", reference("ServerBytes")),
        ("diskFullAt", or_null(time())),
        ("memory", reference("ServerMemory")),
        ("connections", reference("ServerConnections")),
        ("scrub", json!({ "allOf": [reference("ServerScrub")], "nullable": true })),
        ("secretsSealed", json!({ "type": "boolean" })),
        ("tlsEndsAt", or_null(time())),
        ("traces", json!({ "allOf": [reference("ServerTraces")], "nullable": true })),
        ("changedSettings", json!({ "type": "object" })),
    ];
    let names = members.clone().map(|(name, _)| name);
    object(&members, &names)
}

fn example() -> Value {
    json!({
        "version": "0.1.0", "startedAt": "2026-01-31T12:00:00.000Z", "state": "READY", "reason": null,
        "drainingSince": null, "busyWorkers": 1, "managedWorkers": 2, "endpoints": 3, "loadingQueues": 0,
        "commits": { "count": 5210, "failed": 0, "p50Us": 1000, "p99Us": 5000, "meanCommands": 1.8 },
        "bytes": { "diskFree": 52_000_000_000_u64, "inFlight": 0, "inFlightMax": 536_870_912, "resident": 41_000_000 },
        "diskFullAt": "2026-02-03T04:00:00.000Z",
        "memory": { "jobs": 1200, "jobBytes": 204_000, "recent": 90_000, "recentMax": 16_777_216, "history": 41_000, "historyMax": 67_108_864 },
        "connections": { "open": 4, "eventReaders": 1, "eventsDropped": 0, "openFiles": 38, "openFilesMax": 1_048_576 },
        "scrub": { "bytes": 1_200_000, "passes": 1, "damaged": 0 },
        "secretsSealed": true, "tlsEndsAt": null,
        "traces": { "collector": "http://127.0.0.1:4318/v1/traces", "dropped": 0 }, "changedSettings": { "listen": "0.0.0.0:8080" },
    })
}

async fn get(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    may_read(&state, &headers)?;
    Ok(Json(view(&state).await))
}

async fn drain(State(state): State<HttpState>, headers: HeaderMap) -> JsonResult {
    let key = may_manage(&state, &headers)?;
    tracing::info!(by = %key.id, "drain requested");
    let drained = async |state: HttpState| {
        state.engine().begin_drain().await;
        Ok(view(&state).await)
    };
    to_the_end(&state, drained).await.map(Json)
}

async fn end_drain(State(state): State<HttpState>, headers: HeaderMap) -> Result<StatusCode, ApiError> {
    let key = may_manage(&state, &headers)?;
    tracing::info!(by = %key.id, "end of drain requested");
    state.engine().end_drain();
    Ok(StatusCode::NO_CONTENT)
}

/// The server as clients read it.
async fn view(state: &HttpState) -> Value {
    let readiness = Readiness::of(state).await;
    let DrainProgress { busy_workers, managed_workers } = state.engine().drain_progress();
    json!({
        "version": VERSION,
        "startedAt": rfc3339(state.started_at()),
        "state": readiness.word(),
        "reason": readiness.reason(),
        "drainingSince": state.engine().draining_since().map(rfc3339),
        "busyWorkers": busy_workers,
        "managedWorkers": managed_workers,
        "endpoints": state.engine().endpoints().len(),
        "loadingQueues": state.engine().loading_queues(),
        "commits": commits(state.engine().metrics()),
        "bytes": bytes(state),
        "diskFullAt": disk_full_at(state).map(rfc3339),
        "memory": memory(state),
        "connections": connections(state),
        "scrub": state.scrub().map(ScrubReport::snapshot).map(|found| {
            json!({ "bytes": found.bytes, "passes": found.passes, "damaged": found.damaged })
        }),
        "secretsSealed": state.facts().is_sealing,
        "tlsEndsAt": state.facts().certificate_end.as_ref().and_then(CertificateEnd::get).map(rfc3339),
        "traces": state.engine().trace_collector().map(|collector| {
            json!({ "collector": collector, "dropped": state.engine().dropped_spans() })
        }),
        "changedSettings": state.facts().changed_settings,
    })
}

/// What the commits since the start took. The percentiles are upper bounds: those of the histogram's buckets.
fn commits(metrics: &EngineMetrics) -> Value {
    let (took, batch) = (metrics.commit_us.snapshot(), metrics.commit_batch.snapshot());
    let count = took.cumulative.last().copied().unwrap_or_default();
    let mean = batch.sum as f64 / count.max(1) as f64;
    json!({
        "count": count,
        "failed": metrics.commits_failed(),
        "p50Us": took.percentile(0.5),
        "p99Us": took.percentile(0.99),
        "meanCommands": (count > 0).then_some((mean * 10.0).round() / 10.0),
    })
}

fn bytes(state: &HttpState) -> Value {
    let (in_flight, in_flight_max) = state.budget().in_use();
    json!({
        "diskFree": state.files().free_bytes(),
        "inFlight": in_flight,
        "inFlightMax": in_flight_max,
        "resident": process::count_of("process_resident_memory_bytes"),
    })
}

/// When the disk is full if it goes on filling as it does.
fn disk_full_at(state: &HttpState) -> Option<Millis> {
    let left = state.files().disk_full_in()?;
    Some(state.engine().now() + u64::try_from(left.as_millis()).ok()?)
}

/// The memory of what has a budget beside the bodies in flight.
fn memory(state: &HttpState) -> Value {
    let EngineMemory { jobs, job_bytes, recent_bytes, recent_bytes_max } = state.engine().memory();
    let (history, history_max) = state.history().map(|history| history.in_use()).unzip();
    json!({
        "jobs": jobs,
        "jobBytes": job_bytes,
        "recent": recent_bytes,
        "recentMax": recent_bytes_max,
        "history": history,
        "historyMax": history_max,
    })
}

fn connections(state: &HttpState) -> Value {
    json!({
        "open": state.connections().count(),
        "eventReaders": state.events().readers(),
        "eventsDropped": state.events().dropped(),
        "openFiles": process::count_of("process_open_fds"),
        "openFilesMax": process::count_of("process_max_fds"),
    })
}
