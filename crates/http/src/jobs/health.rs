//! `health`: counts of an endpoint's jobs and workers.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{EndpointHandle, FleetStatus, Health};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::HttpState;
use crate::gate::call::Call;
use crate::lb::numbers;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// `GET /health`.
pub(super) async fn health(call: Call) -> Result<Response, ApiError> {
    let health = call.endpoint.jobs().health().await?;
    Ok(body_of(&call.state, &call.endpoint, &health).into_response())
}

/// What `GET /health` answers; `None` if the queue has not said it by `deadline`, or cannot say it.
pub(crate) async fn by(state: &HttpState, endpoint: &EndpointHandle, deadline: Instant) -> Option<Value> {
    let health = timeout_at(deadline, endpoint.jobs().health()).await.ok()?.ok()?;
    serde_json::from_slice(body_of(state, endpoint, &health).into_bytes().as_ref()).ok()
}

fn body_of(state: &HttpState, endpoint: &EndpointHandle, health: &Health) -> JsonBody {
    let numbers = numbers::of(endpoint);
    let status = endpoint.workers().fleet_status();
    let impossible = state.engine().impossible_gpus(endpoint);
    state.events().note_health(endpoint.id(), health);
    written(health, &status, impossible.as_deref(), numbers.as_ref())
}

/// `impossible` says why no worker can ever start; `lb` are the numbers of a load-balancing endpoint.
fn written(health: &Health, status: &FleetStatus, impossible: Option<&str>, lb: Option<&Value>) -> JsonBody {
    let mut body = JsonBody::new();
    let jobs = [
        ("completed", health.counters.completed),
        ("failed", health.counters.failed),
        ("inProgress", health.in_progress),
        ("inQueue", health.in_queue),
        ("retried", health.counters.retried),
    ];
    let counts = &health.workers;
    let workers = [
        ("idle", counts.idle),
        ("initializing", counts.initializing),
        ("ready", counts.ready),
        ("running", counts.running),
        ("throttled", counts.throttled),
        ("unhealthy", counts.unhealthy),
    ];
    body.text("{\"jobs\":");
    numbers(&mut body, jobs);
    body.text(",\"workers\":");
    numbers(&mut body, workers.map(|(name, number)| (name, u64::from(number))));
    reasons(&mut body, health, status, impossible);
    if let Some(numbers) = lb {
        body.text(",\"lb\":").text(&numbers.to_string());
    }
    body.text("}");
    body
}

/// Writes why workers are held back, and why none is there after a crash; writes nothing if neither is so.
fn reasons(body: &mut JsonBody, health: &Health, status: &FleetStatus, impossible: Option<&str>) {
    let is_up = health.workers.ready > 0 || health.workers.running > 0;
    let crashes = status.unhealthy > 0 || status.facts.crash.is_some() && !is_up;
    let crash = status.last_crash.as_deref().filter(|_| crashes);
    let reasons = [
        ("impossible", impossible),
        ("throttled", status.throttled_because.as_deref()),
        ("unhealthy", crash),
    ];
    let mut before = ",\"reasons\":{";
    for (name, reason) in reasons {
        let Some(reason) = reason else { continue };
        body.text(before).string(name).text(":").string(reason);
        before = ",";
    }
    if before == "," {
        body.text("}");
    }
}

fn numbers<const N: usize>(body: &mut JsonBody, members: [(&str, u64); N]) {
    for (at, (name, number)) in members.into_iter().enumerate() {
        body.text(if at == 0 { "{" } else { "," });
        body.string(name).text(":").number(number);
    }
    body.text("}");
}

#[cfg(test)]
mod tests {
    use longshore_model::{Counters, WorkerCounts};

    use super::*;

    #[test]
    fn shows_five_numbers_of_jobs_and_six_of_workers() {
        let health = Health {
            counters: Counters { completed: 1, failed: 2, retried: 5, cancelled: 99, ..Counters::default() },
            in_queue: 4,
            in_progress: 3,
            workers: WorkerCounts {
                idle: 6,
                initializing: 7,
                ready: 8,
                running: 9,
                throttled: 10,
                unhealthy: 11,
            },
            ..Health::default()
        };
        assert_eq!(
            written(&health, &FleetStatus::default(), None, None).into_bytes(),
            r#"{"jobs":{"completed":1,"failed":2,"inProgress":3,"inQueue":4,"retried":5},"workers":{"idle":6,"initializing":7,"ready":8,"running":9,"throttled":10,"unhealthy":11}}"#
        );
    }

    #[test]
    fn says_why_workers_are_held_back() {
        let seen = |health: &Health, status: FleetStatus, impossible| {
            let bytes = written(health, &status, impossible, None).into_bytes();
            serde_json::from_slice::<serde_json::Value>(bytes.as_ref()).unwrap()["reasons"].clone()
        };
        let said = |status| seen(&Health::default(), status, None);
        let without_workers = seen(&Health::default(), FleetStatus::default(), Some("too few GPUs"));
        assert_eq!(without_workers, serde_json::json!({ "impossible": "too few GPUs" }));
        let crashed = FleetStatus { last_crash: Some("code 3".into()), ..FleetStatus::default() };
        assert!(said(crashed.clone()).is_null(), "a reason without held-back workers");
        let unhealthy = FleetStatus { unhealthy: 1, ..crashed };
        assert_eq!(said(unhealthy.clone()), serde_json::json!({ "unhealthy": "code 3" }));
        let both = FleetStatus { throttled: 2, throttled_because: Some("no \"GPU\"".into()), ..unhealthy };
        assert_eq!(said(both), serde_json::json!({ "throttled": "no \"GPU\"", "unhealthy": "code 3" }));
    }
}
