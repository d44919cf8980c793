//! The families about the workers of each endpoint.

use std::collections::BTreeMap;

use longshore_engine::ExitKind;
use longshore_model::StartCause;

use super::exposition::{Exposition, MetricType};
use super::families::{MS_PER_SECOND, MeasuredEndpoint, labelled, plain};
use super::jobs::distribution;

pub(super) fn families(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let workers = ("longshore_workers", MetricType::Gauge, "workers by condition");
    labelled(page, measured, workers, "condition", |one| {
        let workers = &one.workers;
        vec![
            ("idle", f64::from(workers.idle)),
            ("initializing", f64::from(workers.starting)),
            ("running", f64::from(workers.running)),
            ("throttled", f64::from(workers.throttled)),
            ("unhealthy", f64::from(workers.unhealthy)),
        ]
    });
    gpus(page, measured);
    let help = "time from the launch of a worker to its first request for a job";
    distribution(page, measured, "longshore_worker_start_seconds", help, |one| {
        Some(&one.handle.metrics().events.start_ms)
    });
    let starts = ("longshore_worker_starts_total", MetricType::Counter, "starts of workers, by their cause");
    labelled(page, measured, starts, "reason", |one| {
        let events = &one.handle.metrics().events;
        StartCause::ALL.map(|cause| (label(cause), events.starts(cause) as f64)).into()
    });
    let exits = ("longshore_worker_exits_total", MetricType::Counter, "ends of workers and of failed starts");
    labelled(page, measured, exits, "reason", |one| {
        let events = &one.handle.metrics().events;
        ExitKind::ALL.map(|kind| (kind.as_str(), events.ends(kind) as f64)).into()
    });
    let busy = ("longshore_worker_busy_seconds_total", MetricType::Counter, "time that workers ran jobs");
    plain(page, measured, busy, |one| one.totals.busy_ms as f64 / MS_PER_SECOND);
    let paid = (
        "longshore_worker_paid_seconds_total",
        MetricType::Counter,
        "time that workers ran jobs, started or waited for jobs",
    );
    plain(page, measured, paid, |one| one.totals.paid_ms as f64 / MS_PER_SECOND);
}

/// The value of the label `reason` of a start.
fn label(cause: StartCause) -> &'static str {
    match cause {
        StartCause::WorkersMin => "workers_min",
        StartCause::QueuedJobs => "queued_jobs",
        StartCause::NewVersion => "new_version",
    }
}

/// Renders how many GPUs the managed workers of every endpoint have. An endpoint without such workers has no sample.
fn gpus(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let name = "longshore_worker_gpus";
    page.family_of_endpoints(name, MetricType::Gauge, "GPUs of the workers, by type");
    for (place, MeasuredEndpoint { record, handle, .. }) in measured.iter().enumerate() {
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
