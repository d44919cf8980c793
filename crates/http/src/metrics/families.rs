//! The families of metrics, for every endpoint or for the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longshore_engine::{EndpointHandle, EndpointMetrics, Engine, Health, Histogram};
use longshore_model::Endpoint;

use super::exposition::{Exposition, Label, MetricType};
use super::owners::owners;
use super::page::MetricsPage;
use super::process;
use super::requests::RequestCounts;
use crate::{HttpState, ScrubReport};

/// Longest wait for the job counts of one endpoint. After it the endpoint is missing in the families that need them.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Most endpoints whose job counts are read concurrently.
const CONCURRENT_READS_MAX: usize = 256;
const TAKEN_AT: &str = "longshore_metrics_time_seconds";
const MS_PER_SECOND: f64 = 1_000.0;
const US_PER_SECOND: f64 = 1_000_000.0;

/// The measurements of one endpoint.
struct MeasuredEndpoint {
    handle: EndpointHandle,
    record: Arc<Endpoint>,
    health: Option<Health>,
}

/// Reads the job counts of every endpoint and renders all families. `None` if rendering panicked.
pub(super) async fn render(state: HttpState) -> Option<MetricsPage> {
    let numbers = numbers(state.engine()).await;
    // With thousands of endpoints rendering takes too long for an async task.
    let written = tokio::task::spawn_blocking(move || {
        let mut page = Exposition::default();
        // Shown for all keys, since a page may be a second old.
        page.family_of_endpoints(
            TAKEN_AT,
            MetricType::Gauge,
            "when these metrics were taken, in seconds since 1970",
        );
        page.sample(TAKEN_AT, &[], state.engine().now().0 as f64 / MS_PER_SECOND);
        endpoints(&mut page, &numbers);
        jobs(&mut page, &numbers);
        commits(&mut page, state.engine());
        owners(&mut page, state.engine());
        requests(&mut page, state.requests());
        scrub(&mut page, &state);
        process_numbers(&mut page);
        let ids: Vec<_> = numbers.iter().map(|one| one.record.id).collect();
        page.into_page(&ids)
    });
    written.await.inspect_err(|error| tracing::error!(%error, "metrics rendering failed")).ok()
}

async fn numbers(engine: &Engine) -> Vec<MeasuredEndpoint> {
    let mut numbers = Vec::new();
    for handles in engine.endpoints().chunks(CONCURRENT_READS_MAX) {
        let read = |handle: &EndpointHandle| {
            let handle = handle.clone();
            async move {
                let health = tokio::time::timeout(HEALTH_TIMEOUT, handle.jobs().health()).await;
                MeasuredEndpoint { record: handle.record(), health: health.ok().and_then(Result::ok), handle }
            }
        };
        numbers.extend(join_all(handles.iter().map(read)).await);
    }
    numbers
}

/// Renders gauges and counters of every endpoint.
fn endpoints(page: &mut Exposition, numbers: &[MeasuredEndpoint]) {
    page.family_of_endpoints("longshore_endpoint_info", MetricType::Gauge, "names of an endpoint; always 1");
    for (place, MeasuredEndpoint { record, .. }) in numbers.iter().enumerate() {
        let slug = record.slug.as_deref().unwrap_or_default();
        let labels = [("endpoint", record.id.as_str()), ("name", &record.name), ("slug", slug)];
        page.endpoint(place);
        page.sample("longshore_endpoint_info", &labels, 1);
    }
    let mut family =
        |name: &str, kind: MetricType, help: &str, label: &str, values: &dyn Fn(&Health) -> Values| {
            page.family_of_endpoints(name, kind, help);
            for (place, MeasuredEndpoint { record, health, .. }) in numbers.iter().enumerate() {
                page.endpoint(place);
                for (value, number) in health.iter().flat_map(values) {
                    let labels: [Label<'_>; 2] = [("endpoint", record.id.as_str()), (label, value)];
                    page.sample(name, &labels, number);
                }
            }
        };
    family("longshore_jobs", MetricType::Gauge, "jobs that wait or run", "state", &|health| {
        vec![("IN_QUEUE", health.in_queue), ("IN_PROGRESS", health.in_progress)]
    });
    family("longshore_jobs_total", MetricType::Counter, "what became of jobs, ever", "event", &|health| {
        let counters = &health.counters;
        vec![
            ("completed", counters.completed),
            ("failed", counters.failed),
            ("cancelled", counters.cancelled),
            ("retried", counters.retried),
        ]
    });
    family("longshore_workers", MetricType::Gauge, "workers by condition", "condition", &|health| {
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
    worker_gpus(page, numbers);
}

/// Renders how many GPUs the managed workers of every endpoint have. An endpoint without such workers has no sample.
fn worker_gpus(page: &mut Exposition, numbers: &[MeasuredEndpoint]) {
    let name = "longshore_worker_gpus";
    page.family_of_endpoints(name, MetricType::Gauge, "GPUs of the workers, by type");
    for (place, MeasuredEndpoint { record, handle, .. }) in numbers.iter().enumerate() {
        let status = handle.workers().fleet_status();
        let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
        for gpu in status.workers.iter().flat_map(|worker| &worker.placement.gpus) {
            *by_type.entry(gpu.type_id.as_str()).or_default() += 1;
        }
        page.endpoint(place);
        for (type_id, number) in by_type {
            page.sample(name, &[("endpoint", record.id.as_str()), ("type", type_id)], number);
        }
    }
}

/// Values of a label with their numbers.
type Values = Vec<(&'static str, u64)>;

/// Renders distributions of every endpoint.
fn jobs(page: &mut Exposition, numbers: &[MeasuredEndpoint]) {
    let mut family = |name: &str, help: &str, histogram: fn(&EndpointMetrics) -> &Histogram| {
        page.family_of_endpoints(name, MetricType::Histogram, help);
        for (place, MeasuredEndpoint { record, handle, .. }) in numbers.iter().enumerate() {
            let snapshot = histogram(handle.metrics()).snapshot();
            page.endpoint(place);
            page.histogram(name, &[("endpoint", record.id.as_str())], &snapshot, MS_PER_SECOND);
        }
    };
    family("longshore_job_delay_seconds", "time that jobs waited before a worker took them", |of| {
        &of.delay_ms
    });
    family("longshore_job_execution_seconds", "time that jobs ran until they ended", |of| &of.execution_ms);
}

fn commits(page: &mut Exposition, engine: &Engine) {
    let metrics = engine.metrics();
    let name = "longshore_commit_seconds";
    page.family(name, MetricType::Histogram, "time until commits were durable");
    page.histogram(name, &[], &metrics.commit_us.snapshot(), US_PER_SECOND);
    let name = "longshore_commit_commands";
    page.family(name, MetricType::Histogram, "number of commands in a commit");
    page.histogram(name, &[], &metrics.commit_batch.snapshot(), 1.0);
    let name = "longshore_commits_failed_total";
    page.family(name, MetricType::Counter, "commits that the store rejected");
    page.sample(name, &[], metrics.commits_failed());
    let name = "longshore_invariants_broken_total";
    page.family(
        name,
        MetricType::Counter,
        "broken invariants of queues, each followed by a reload from rows",
    );
    page.sample(name, &[], metrics.invariants_broken());
}

fn requests(page: &mut Exposition, counts: &RequestCounts) {
    let name = "longshore_http_requests_total";
    page.family(name, MetricType::Counter, "requests by route, method and status");
    for one in counts.snapshot() {
        let status = one.status.to_string();
        let labels = [("route", one.route.as_str()), ("method", one.method), ("status", &status)];
        page.sample(name, &labels, one.count);
    }
}

/// Renders the counters of the scrub, which reads stored files in the background.
fn scrub(page: &mut Exposition, state: &HttpState) {
    let Some(found) = state.scrub().map(ScrubReport::snapshot) else { return };
    page.family(
        "longshore_scrub_bytes_total",
        MetricType::Counter,
        "bytes of stored files read in the background",
    );
    page.sample("longshore_scrub_bytes_total", &[], found.bytes);
    page.family("longshore_scrub_passes_total", MetricType::Counter, "complete reads of all stored files");
    page.sample("longshore_scrub_passes_total", &[], found.passes);
    page.family(
        "longshore_scrub_damaged",
        MetricType::Gauge,
        "damaged places that were found in stored files",
    );
    page.sample("longshore_scrub_damaged", &[], found.damaged);
}

fn process_numbers(page: &mut Exposition) {
    page.family("longshore_build_info", MetricType::Gauge, "the version that runs; always 1");
    page.sample("longshore_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let numbers = process::read();
    if let Some(bytes) = numbers.resident_bytes {
        page.family("process_resident_memory_bytes", MetricType::Gauge, "resident memory");
        page.sample("process_resident_memory_bytes", &[], bytes);
    }
    if let Some(files) = numbers.open_files {
        page.family("process_open_fds", MetricType::Gauge, "open file descriptors");
        page.sample("process_open_fds", &[], files);
    }
}
