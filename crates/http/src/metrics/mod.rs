//! `GET /metrics`: what the server does, in numbers, for Prometheus.
//!
//! Open, without a key, like `/healthz`: the numbers name endpoints but no job, no key and no payload. Who may
//! see even that is decided where the server listens.

mod exposition;
mod process;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use longshore_engine::{EndpointMetrics, Engine, Health, Histogram};
use longshore_model::Endpoint;

use self::exposition::{Exposition, Kind, Label};
use crate::HttpState;

pub(crate) use self::requests::{RequestCounts, count};

/// An endpoint that does not tell its numbers in time is left out of the page.
const HEALTH_WAIT: Duration = Duration::from_secs(2);
const MS_PER_SECOND: f64 = 1_000.0;
const US_PER_SECOND: f64 = 1_000_000.0;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(state): State<HttpState>) -> Response {
    let mut page = Exposition::default();
    endpoints(&mut page, &healths(state.engine()).await);
    jobs(&mut page, state.engine());
    commits(&mut page, state.engine());
    requests(&mut page, state.requests());
    process_numbers(&mut page);
    ([(CONTENT_TYPE, exposition::CONTENT_TYPE)], page.into_text()).into_response()
}

async fn healths(engine: &Engine) -> Vec<(Arc<Endpoint>, Health)> {
    let mut healths = Vec::new();
    for endpoint in engine.endpoints() {
        if let Ok(Ok(health)) = tokio::time::timeout(HEALTH_WAIT, endpoint.health()).await {
            healths.push((endpoint.record(), health));
        }
    }
    healths
}

/// Gauges and counters of every endpoint.
fn endpoints(page: &mut Exposition, healths: &[(Arc<Endpoint>, Health)]) {
    page.family("longshore_endpoint_info", Kind::Gauge, "names of an endpoint; always 1");
    for (endpoint, _) in healths {
        let slug = endpoint.slug.as_deref().unwrap_or_default();
        let labels = [("endpoint", endpoint.id.as_str()), ("name", &endpoint.name), ("slug", slug)];
        page.sample("longshore_endpoint_info", &labels, 1);
    }
    let mut family =
        |name: &str, kind: Kind, help: &str, label: &str, numbers: &dyn Fn(&Health) -> Numbers| {
            page.family(name, kind, help);
            for (endpoint, health) in healths {
                for (value, number) in numbers(health) {
                    let labels: [Label<'_>; 2] = [("endpoint", endpoint.id.as_str()), (label, value)];
                    page.sample(name, &labels, number);
                }
            }
        };
    family("longshore_jobs", Kind::Gauge, "jobs that wait or run", "state", &|health| {
        vec![("IN_QUEUE", health.in_queue), ("IN_PROGRESS", health.in_progress)]
    });
    family("longshore_jobs_total", Kind::Counter, "what became of jobs, ever", "event", &|health| {
        let counters = &health.counters;
        vec![
            ("completed", counters.completed),
            ("failed", counters.failed),
            ("cancelled", counters.cancelled),
            ("retried", counters.retried),
        ]
    });
    family("longshore_workers", Kind::Gauge, "workers by condition", "condition", &|health| {
        let workers = &health.workers;
        [
            ("idle", workers.idle),
            ("initializing", workers.initializing),
            ("ready", workers.ready),
            ("running", workers.running),
            ("throttled", workers.throttled),
            ("unhealthy", workers.unhealthy),
        ]
        .map(|(condition, number)| (condition, u64::from(number)))
        .into()
    });
}

/// Values of a label, each with its number.
type Numbers = Vec<(&'static str, u64)>;

/// Distributions of every endpoint.
fn jobs(page: &mut Exposition, engine: &Engine) {
    let endpoints = engine.endpoints();
    let mut family = |name: &str, help: &str, histogram: fn(&EndpointMetrics) -> &Histogram| {
        page.family(name, Kind::Histogram, help);
        for endpoint in &endpoints {
            let id = endpoint.id();
            let snapshot = histogram(endpoint.metrics()).snapshot();
            page.histogram(name, &[("endpoint", id.as_str())], &snapshot, MS_PER_SECOND);
        }
    };
    family("longshore_job_delay_seconds", "how long jobs waited before a worker took them", |of| {
        &of.delay_ms
    });
    family("longshore_job_execution_seconds", "how long jobs ran until they were over", |of| {
        &of.execution_ms
    });
}

fn commits(page: &mut Exposition, engine: &Engine) {
    let metrics = engine.metrics();
    let name = "longshore_commit_seconds";
    page.family(name, Kind::Histogram, "how long commits took until they were durable");
    page.histogram(name, &[], &metrics.commit_us.snapshot(), US_PER_SECOND);
    let name = "longshore_commit_commands";
    page.family(name, Kind::Histogram, "how many commands shared a commit");
    page.histogram(name, &[], &metrics.commit_batch.snapshot(), 1.0);
    let name = "longshore_commits_failed_total";
    page.family(name, Kind::Counter, "commits that the store refused");
    page.sample(name, &[], metrics.commits_failed());
}

fn requests(page: &mut Exposition, counts: &RequestCounts) {
    let name = "longshore_http_requests_total";
    page.family(name, Kind::Counter, "requests by route, method and status");
    for one in counts.snapshot() {
        let status = one.status.to_string();
        let labels = [("route", one.route.as_str()), ("method", one.method), ("status", &status)];
        page.sample(name, &labels, one.count);
    }
}

fn process_numbers(page: &mut Exposition) {
    page.family("longshore_build_info", Kind::Gauge, "the version that runs; always 1");
    page.sample("longshore_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let numbers = process::read();
    if let Some(bytes) = numbers.resident_bytes {
        page.family("process_resident_memory_bytes", Kind::Gauge, "resident memory");
        page.sample("process_resident_memory_bytes", &[], bytes);
    }
    if let Some(files) = numbers.open_files {
        page.family("process_open_fds", Kind::Gauge, "open file descriptors");
        page.sample("process_open_fds", &[], files);
    }
}
