//! The families about the jobs, the webhook calls and the history of each endpoint.

use longshore_engine::{EndpointMetrics, Histogram, RetryReason, SubmitRefusal, WebhookOutcome};
use longshore_model::Millis;

use super::exposition::{Exposition, MetricType};
use super::families::{MS_PER_SECOND, MeasuredEndpoint, labelled, plain};

pub(super) fn families(page: &mut Exposition, measured: &[MeasuredEndpoint], now: Millis) {
    load(page, measured, now);
    counters(page, measured);
    let help = "time that jobs waited before a worker took them";
    distribution(page, measured, "longshore_job_delay_seconds", help, |one| of_jobs(one, |of| &of.delay_ms));
    let help = "time that jobs ran until they ended";
    let name = "longshore_job_execution_seconds";
    distribution(page, measured, name, help, |one| of_jobs(one, |of| &of.execution_ms));
    let help = "time from the submit of a job to its first chunk";
    let name = "longshore_job_first_chunk_seconds";
    distribution(page, measured, name, help, |one| of_jobs(one, |of| &of.first_chunk_ms));
    deprecated(page, measured);
}

/// A distribution about jobs; `None` for an endpoint without a queue.
fn of_jobs(one: &MeasuredEndpoint, histogram: fn(&EndpointMetrics) -> &Histogram) -> Option<&Histogram> {
    one.handle.balancer().is_none().then(|| histogram(one.handle.metrics()))
}

/// Renders a distribution of times in ms as seconds, of the endpoints that have it.
pub(super) fn distribution(
    page: &mut Exposition,
    measured: &[MeasuredEndpoint],
    name: &str,
    help: &str,
    histogram: impl Fn(&MeasuredEndpoint) -> Option<&Histogram>,
) {
    page.family_of_endpoints(name, MetricType::Histogram, help);
    for (place, one) in measured.iter().enumerate() {
        let Some(histogram) = histogram(one) else { continue };
        page.endpoint(place);
        page.histogram(name, &[("endpoint", one.record.id.as_str())], &histogram.snapshot(), MS_PER_SECOND);
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
    labelled(page, measured, submitted, "mode", |one| {
        let events = &one.handle.metrics().events;
        vec![("sync", events.sync_submits() as f64), ("async", events.async_submits() as f64)]
    });
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
    let retries =
        ("longshore_job_retries_total", MetricType::Counter, "attempts that were repeated, by the reason");
    labelled(page, measured, retries, "reason", |one| {
        if one.handle.balancer().is_some() {
            return Vec::new();
        }
        let events = &one.handle.metrics().events;
        RetryReason::ALL.map(|reason| (reason.as_str(), events.retries(reason) as f64)).into()
    });
    let refused =
        ("longshore_jobs_refused_total", MetricType::Counter, "submits that were refused, by the reason");
    labelled(page, measured, refused, "reason", |one| {
        let events = &one.handle.metrics().events;
        SubmitRefusal::ALL.map(|reason| (reason.as_str(), events.refusals(reason) as f64)).into()
    });
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
        MetricType::OldCounter,
        "deprecated: use longshore_jobs_finished_total and longshore_job_retries_total; timed-out jobs count as failed",
    );
    labelled(page, measured, family, "event", |one| {
        if one.handle.balancer().is_some() {
            return Vec::new();
        }
        let totals = &one.totals;
        vec![
            ("completed", totals.completed as f64),
            ("failed", (totals.failed + totals.timed_out) as f64),
            ("cancelled", totals.cancelled as f64),
            ("retried", totals.retried as f64),
        ]
    });
}
