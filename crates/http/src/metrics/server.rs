//! The families about the server: commits, requests, stored files, GPUs, events and the process.

use std::collections::BTreeMap;

use longshore_engine::{Engine, PooledGpu};

use super::exposition::{Exposition, MetricType};
use super::nodes;
use super::requests::RequestCounts;
use crate::services::certificate_end::CertificateEnd;
use crate::services::process::{self, ProcessMetric};
use crate::{HttpState, ScrubReport};

const US_PER_SECOND: f64 = 1_000_000.0;

pub(super) fn families(page: &mut Exposition, state: &HttpState) {
    commits(page, state);
    storage(page, state.engine());
    requests(page, state.requests());
    scrub(page, state);
    gpus(page, state.engine());
    let help = "spans that were dropped: too many waited, or the collector did not accept them";
    let dropped = state.engine().dropped_spans() as f64;
    single(page, "longshore_spans_dropped_total", MetricType::Counter, help, dropped);
    let help = "webhook calls that are neither accepted nor given up";
    let pending = state.engine().pending_webhooks() as f64;
    single(page, "longshore_webhook_deliveries_pending", MetricType::Gauge, help, pending);
    let readers = state.events().readers();
    single(page, "longshore_event_readers", MetricType::Gauge, "readers of /v1/events", f64::from(readers));
    let help =
        "events that readers of /v1/events did not get, because they were too slow or away for too long";
    let dropped = state.events().dropped() as f64;
    single(page, "longshore_events_dropped_total", MetricType::Counter, help, dropped);
    if let Some(bytes) = state.files().store_bytes() {
        let help =
            "bytes of the files with rows and payloads in the data directory, measured every 5 minutes";
        single(page, "longshore_store_bytes", MetricType::Gauge, help, bytes as f64);
    }
    if let Some(bytes) = state.files().free_bytes() {
        let help = "free space of the data directory's disk";
        single(page, "longshore_disk_free_bytes", MetricType::Gauge, help, bytes as f64);
    }
    let (in_use, max) = state.budget().in_use();
    let help = "bytes of request bodies in memory";
    single(page, "longshore_bytes_in_flight", MetricType::Gauge, help, in_use as f64);
    let help = "most bytes of request bodies in memory";
    single(page, "longshore_bytes_in_flight_max", MetricType::Gauge, help, max as f64);
    let help = "open connections of clients, workers and operators";
    let open = state.connections().count() as f64;
    single(page, "longshore_http_connections", MetricType::Gauge, help, open);
    if let Some(ends_at) = state.facts().certificate_end.as_ref().and_then(CertificateEnd::get) {
        let help = "when the certificate of the server ends, in seconds since 1970";
        let seconds = ends_at.0 as f64 / 1_000.0;
        single(page, "longshore_tls_expiry_timestamp_seconds", MetricType::Gauge, help, seconds);
    }
    if let Some(node) = state.node() {
        nodes::families(page, node);
    }
    process_numbers(page);
}

/// Renders a family of one sample.
pub(super) fn single(page: &mut Exposition, name: &str, kind: MetricType, help: &str, value: f64) {
    page.family(name, kind, help);
    page.sample(name, &[], value);
}

fn commits(page: &mut Exposition, state: &HttpState) {
    let metrics = state.engine().metrics();
    let name = "longshore_commit_seconds";
    page.family(name, MetricType::Histogram, "time until commits were durable");
    page.histogram(name, &[], &metrics.commit_us.snapshot(), US_PER_SECOND);
    let name = "longshore_commit_commands";
    page.family(name, MetricType::Histogram, "number of commands in a commit");
    page.histogram(name, &[], &metrics.commit_batch.snapshot(), 1.0);
    if let Some(flush_us) = state.flush_us() {
        let name = "longshore_flush_seconds";
        page.family(
            name,
            MetricType::Histogram,
            "time until the database had on its disk what was written before",
        );
        page.histogram(name, &[], &flush_us.snapshot(), US_PER_SECOND);
    }
    let help = "commits that the store rejected";
    let failed = metrics.commits_failed() as f64;
    single(page, "longshore_commits_failed_total", MetricType::Counter, help, failed);
    let help = "broken invariants of queues, each followed by a reload from rows";
    let broken = metrics.invariants_broken() as f64;
    single(page, "longshore_invariants_broken_total", MetricType::Counter, help, broken);
}

/// Renders whether the object storage answers, if payloads are in one.
fn storage(page: &mut Exposition, engine: &Engine) {
    let Some(health) = engine.storage_health() else { return };
    for (name, help, at_ms) in [
        (
            "longshore_object_storage_last_success_timestamp_seconds",
            "when a call of the object storage last succeeded, in seconds since 1970; 0 if none has",
            health.last_success_ms,
        ),
        (
            "longshore_object_storage_last_failure_timestamp_seconds",
            "when a call of the object storage last failed, in seconds since 1970; 0 if none has",
            health.last_failure_ms,
        ),
    ] {
        single(page, name, MetricType::Gauge, help, at_ms as f64 / 1_000.0);
    }
    let help = "calls of the object storage that failed after their retries";
    let name = "longshore_object_storage_failures_total";
    single(page, name, MetricType::Counter, help, health.failures as f64);
}

fn requests(page: &mut Exposition, counts: &RequestCounts) {
    let name = "longshore_http_requests_total";
    page.family(name, MetricType::Counter, "requests by route, method and status");
    for one in counts.snapshot() {
        let status = one.status.to_string();
        let labels = [("route", one.route.as_str()), ("method", one.method), ("status", &status)];
        page.sample(name, &labels, one.count);
    }
    let name = "longshore_http_request_seconds";
    page.family(name, MetricType::Histogram, "time from a request's head to the head of its response");
    for (route, times) in counts.times() {
        page.histogram(name, &[("route", &route)], &times, US_PER_SECOND);
    }
}

/// Renders the counters of the scrub, which reads stored files in the background.
fn scrub(page: &mut Exposition, state: &HttpState) {
    let Some(found) = state.scrub().map(ScrubReport::snapshot) else { return };
    let help = "bytes of stored files read in the background";
    single(page, "longshore_scrub_bytes_total", MetricType::Counter, help, found.bytes as f64);
    let help = "complete reads of all stored files";
    single(page, "longshore_scrub_passes_total", MetricType::Counter, help, found.passes as f64);
    let help = "damaged places that were found in stored files";
    single(page, "longshore_scrub_damaged", MetricType::Gauge, help, found.damaged as f64);
}

/// Renders the GPUs that workers can get, by type and whether a worker has them.
fn gpus(page: &mut Exposition, engine: &Engine) {
    let mut numbers: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for PooledGpu { gpu, holder, fault, .. } in engine.gpus().gpus {
        let state = match (fault, holder) {
            (Some(_), _) => "sick",
            (None, None) => "free",
            (None, Some(_)) => "taken",
        };
        *numbers.entry((gpu.type_id, state)).or_default() += 1;
    }
    let name = "longshore_gpus";
    page.family(name, MetricType::Gauge, "GPUs of this computer, by type and state");
    for ((type_id, state), number) in numbers {
        page.sample(name, &[("type", &type_id), ("state", state)], number);
    }
}

pub(super) fn process_numbers(page: &mut Exposition) {
    page.family("longshore_build_info", MetricType::Gauge, "the version that runs; always 1");
    page.sample("longshore_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    for ProcessMetric { name, is_counter, help, value } in process::read() {
        let kind = if is_counter { MetricType::Counter } else { MetricType::Gauge };
        single(page, name, kind, help, value);
    }
}
