//! The page of metrics: reads what actors and supervisors published last, and renders every family.

use std::sync::Arc;

use longshore_engine::EndpointHandle;
use longshore_history::{ActivityTotals, ObservedWorkers};
use longshore_model::{Endpoint, Millis};

use super::exposition::{Exposition, MetricType};
use super::format::Format;
use super::owners::owners;
use super::page::MetricsPage;
use super::problems::{Problems, problems};
use super::{balancing, jobs, server, workers};
use crate::HttpState;

const TAKEN_AT: &str = "longshore_metrics_time_seconds";
pub(super) const MS_PER_SECOND: f64 = 1_000.0;

/// The measurements of one endpoint.
pub(super) struct MeasuredEndpoint {
    pub(super) handle: EndpointHandle,
    pub(super) record: Arc<Endpoint>,
    pub(super) totals: ActivityTotals,
    pub(super) workers: ObservedWorkers,
}

/// Renders all families in this format. `None` if rendering panicked.
pub(super) async fn render(state: HttpState, format: Format) -> Option<MetricsPage> {
    let problems = problems(&state).await;
    // With thousands of endpoints rendering takes too long for an async task.
    let written = tokio::task::spawn_blocking(move || page(&state, format, &problems));
    written.await.inspect_err(|error| tracing::error!(%error, "metrics rendering failed")).ok()
}

fn page(state: &HttpState, format: Format, problems: &Problems) -> MetricsPage {
    let (engine, now) = (state.engine(), state.engine().now());
    let measured: Vec<_> = engine.endpoints().into_iter().map(MeasuredEndpoint::of).collect();
    let mut page = Exposition::new(format);
    // Shown for all keys, since a page may be a second old.
    page.family_of_endpoints(
        TAKEN_AT,
        MetricType::Gauge,
        "when these metrics were taken, in seconds since 1970",
    );
    page.sample(TAKEN_AT, &[], now.0 as f64 / MS_PER_SECOND);
    names(&mut page, &measured);
    jobs::families(&mut page, &measured, now);
    workers::families(&mut page, &measured);
    balancing::families(&mut page, &measured);
    attention(&mut page, &measured, problems);
    server::families(&mut page, state);
    owners(&mut page, engine);
    let ids: Vec<_> = measured.iter().map(|one| one.record.id).collect();
    page.into_page(&ids)
}

impl MeasuredEndpoint {
    fn of(handle: EndpointHandle) -> Self {
        let (totals, workers) = (handle.metrics().activity.totals(), handle.worker_numbers());
        Self { record: handle.record(), totals, workers, handle }
    }

    /// The time in s that the job, or request, which waits longest has waited; 0 if none waits.
    pub(super) fn oldest_age_s(&self, now: Millis) -> f64 {
        self.handle.first_queued_at().map_or(0.0, |since| now.since(since) as f64 / MS_PER_SECOND)
    }
}

/// Values of a label with their numbers.
pub(super) type Values = Vec<(&'static str, f64)>;

/// Renders a family with one label beside that of the endpoint.
pub(super) fn labelled(
    page: &mut Exposition,
    measured: &[MeasuredEndpoint],
    (name, kind, help): (&str, MetricType, &str),
    label: &str,
    values: impl Fn(&MeasuredEndpoint) -> Values,
) {
    page.family_of_endpoints(name, kind, help);
    for (place, one) in measured.iter().enumerate() {
        page.endpoint(place);
        for (value, number) in values(one) {
            page.sample(name, &[("endpoint", one.record.id.as_str()), (label, value)], number);
        }
    }
}

/// Renders a family with one sample for each endpoint.
pub(super) fn plain(
    page: &mut Exposition,
    measured: &[MeasuredEndpoint],
    (name, kind, help): (&str, MetricType, &str),
    value: impl Fn(&MeasuredEndpoint) -> f64,
) {
    page.family_of_endpoints(name, kind, help);
    for (place, one) in measured.iter().enumerate() {
        page.endpoint(place);
        page.sample(name, &[("endpoint", one.record.id.as_str())], value(one));
    }
}

fn names(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let name = "longshore_endpoint_info";
    page.family_of_endpoints(name, MetricType::Gauge, "names of an endpoint; always 1");
    for (place, MeasuredEndpoint { record, .. }) in measured.iter().enumerate() {
        let slug = record.slug.as_deref().unwrap_or_default();
        page.endpoint(place);
        page.sample(name, &[("endpoint", record.id.as_str()), ("name", &record.name), ("slug", slug)], 1);
    }
    let paused =
        ("longshore_endpoint_paused", MetricType::Gauge, "1 if the endpoint's workersMax is 0, else 0");
    plain(page, measured, paused, |one| f64::from(u8::from(one.record.workers_max == 0)));
}

fn attention(page: &mut Exposition, measured: &[MeasuredEndpoint], problems: &Problems) {
    let name = "longshore_attention";
    page.family_of_endpoints(
        name,
        MetricType::Gauge,
        "what needs a person, by the code of explain; always 1",
    );
    for (place, MeasuredEndpoint { record, .. }) in measured.iter().enumerate() {
        page.endpoint(place);
        if let Some((code, severity)) = problems.get(&record.id) {
            let labels = [("endpoint", record.id.as_str()), ("code", *code), ("severity", *severity)];
            page.sample(name, &labels, 1);
        }
    }
}
