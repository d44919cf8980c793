//! `/v1/server`: what this server is, and draining it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use longshore_engine::DrainProgress;
use serde_json::{Value, json};

use super::access::{may_manage, may_read};
use super::{JsonResult, to_the_end};
use crate::HttpState;
use crate::openapi::schema::{count, object, text, time, with_example};
use crate::openapi::{Group, Operation};
use crate::readiness::Readiness;
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;

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
    let nullable_time = json!({ "type": "string", "format": "date-time", "nullable": true });
    let nullable_text = json!({ "type": "string", "nullable": true });
    let server = object(
        &[
            ("version", text()),
            ("startedAt", time()),
            ("state", state),
            ("reason", nullable_text),
            ("drainingSince", nullable_time),
            ("busyWorkers", count()),
            ("managedWorkers", count()),
        ],
        &["version", "startedAt", "state", "reason", "drainingSince", "busyWorkers", "managedWorkers"],
    );
    let example = json!({
        "version": "0.1.0", "startedAt": "2026-01-31T12:00:00.000Z", "state": "READY", "reason": null,
        "drainingSince": null, "busyWorkers": 1, "managedWorkers": 2,
    });
    let about = "The server itself.";
    Group { name: "Server", about, operations, schemas: vec![("Server", with_example(server, example))] }
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
    })
}
