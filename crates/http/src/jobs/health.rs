//! `health`: an endpoint's numbers.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::Health;

use super::call::Call;
use crate::errors::Failure;
use crate::json_body::JsonBody;

/// `GET /health`.
pub(super) async fn health(call: Call) -> Result<Response, Failure> {
    let health = call.endpoint.health().await?;
    Ok(written(&health).into_response())
}

fn written(health: &Health) -> JsonBody {
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
    body.text("}");
    body
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
        };
        assert_eq!(
            written(&health).into_bytes(),
            r#"{"jobs":{"completed":1,"failed":2,"inProgress":3,"inQueue":4,"retried":5},"workers":{"idle":6,"initializing":7,"ready":8,"running":9,"throttled":10,"unhealthy":11}}"#
        );
    }
}
