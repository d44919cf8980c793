//! The families about the jobs, the webhook calls and the history of each endpoint.

use longshore_engine::{EndpointMetrics, Histogram, WebhookOutcome};
use longshore_model::Millis;

use super::exposition::{Exposition, MetricType};
use super::families::{MS_PER_SECOND, MeasuredEndpoint, labelled, plain};

pub(super) fn families(page: &mut Exposition, measured: &[MeasuredEndpoint], now: Millis) {
    load(page, measured, now);
    counters(page, measured);
    let help = "time that jobs waited before a worker took them";
    distribution(page, measured, "longshore_job_delay_seconds", help, |of| &of.delay_ms);
    let help = "time that jobs ran until they ended";
    distribution(page, measured, "longshore_job_execution_seconds", help, |of| &of.execution_ms);
    deprecated(page, measured);
}

/// Renders a distribution of times in ms as seconds.
pub(super) fn distribution(
    page: &mut Exposition,
    measured: &[MeasuredEndpoint],
    name: &str,
    help: &str,
    histogram: fn(&EndpointMetrics) -> &Histogram,
) {
    page.family_of_endpoints(name, MetricType::Histogram, help);
    for (place, MeasuredEndpoint { record, handle, .. }) in measured.iter().enumerate() {
        let snapshot = histogram(handle.metrics()).snapshot();
        page.endpoint(place);
        page.histogram(name, &[("endpoint", record.id.as_str())], &snapshot, MS_PER_SECOND);
    }
}

fn load(page: &mut Exposition, measured: &[MeasuredEndpoint], now: Millis) {
    let jobs = ("longshore_jobs", MetricType::Gauge, "jobs that wait or run");
    labelled(page, measured, jobs, "state", |one| {
        vec![("queued", one.totals.queued as f64), ("running", one.totals.running as f64)]
    });
    let oldest = (
        "longshore_queue_oldest_age_seconds",
        MetricType::Gauge,
        "time that the job of normal priority which waits longest has waited; 0 if none waits",
    );
    plain(page, measured, oldest, |one| one.oldest_age_s(now));
}

fn counters(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let submitted = ("longshore_jobs_submitted_total", MetricType::Counter, "accepted submits");
    plain(page, measured, submitted, |one| one.totals.submitted as f64);
    let finished =
        ("longshore_jobs_finished_total", MetricType::Counter, "jobs that ended, by their final state");
    labelled(page, measured, finished, "state", |one| {
        let totals = &one.totals;
        vec![
            ("completed", totals.completed as f64),
            ("failed", totals.failed as f64),
            ("timed_out", totals.timed_out as f64),
            ("cancelled", totals.cancelled as f64),
        ]
    });
    let retries = ("longshore_job_retries_total", MetricType::Counter, "attempts that were repeated");
    plain(page, measured, retries, |one| one.totals.retried as f64);
    let refused = ("longshore_jobs_refused_total", MetricType::Counter, "submits that the queue refused");
    plain(page, measured, refused, |one| one.totals.refused as f64);
    let chunks =
        ("longshore_stream_chunks_total", MetricType::Counter, "chunks of streams that workers sent");
    plain(page, measured, chunks, |one| one.totals.chunks as f64);
    let bytes = (
        "longshore_payload_bytes_total",
        MetricType::Counter,
        "bytes of inputs, and of outputs with the chunks of streams",
    );
    labelled(page, measured, bytes, "direction", |one| {
        vec![("input", one.totals.input_bytes as f64), ("output", one.totals.output_bytes as f64)]
    });
    let calls =
        ("longshore_webhook_attempts_total", MetricType::Counter, "calls of webhooks, by their outcome");
    labelled(page, measured, calls, "outcome", |one| {
        let events = &one.handle.metrics().events;
        WebhookOutcome::ALL.map(|outcome| (outcome.as_str(), events.calls(outcome) as f64)).into()
    });
}

/// The family that mixed ends with retries, for one more release.
fn deprecated(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let family = (
        "longshore_jobs_total",
        MetricType::Counter,
        "deprecated: use longshore_jobs_finished_total and longshore_job_retries_total; timed-out jobs count as failed",
    );
    labelled(page, measured, family, "event", |one| {
        let totals = &one.totals;
        vec![
            ("completed", totals.completed as f64),
            ("failed", (totals.failed + totals.timed_out) as f64),
            ("cancelled", totals.cancelled as f64),
            ("retried", totals.retried as f64),
        ]
    });
}
