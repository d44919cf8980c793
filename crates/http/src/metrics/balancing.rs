//! The metrics of load-balancing endpoints. Endpoints with a queue have no samples of them.

use longshore_engine::{BalancerMetrics, Histogram};

use super::exposition::{Exposition, MetricType};
use super::families::{MS_PER_SECOND, MeasuredEndpoint, labelled};

/// Renders the families of forwarded requests.
pub(super) fn families(page: &mut Exposition, measured: &[MeasuredEndpoint]) {
    let metrics = |one: &MeasuredEndpoint| one.handle.balancer().cloned();
    let requests = (
        "longshore_lb_requests_total",
        MetricType::Counter,
        "requests to a load-balancing endpoint by what was answered",
    );
    labelled(page, measured, requests, "answer", |one| {
        let counts = metrics(one).map(|balancer| balancer.metrics().requests());
        counts.into_iter().flatten().map(|(answer, count)| (answer, count as f64)).collect()
    });
    let retries = (
        "longshore_lb_retries_total",
        MetricType::Counter,
        "requests that were sent again because a worker could not be reached",
    );
    counted(page, measured, retries, BalancerMetrics::retries);
    let changes =
        ("longshore_lb_health_changes_total", MetricType::Counter, "changes of the health of workers");
    labelled(page, measured, changes, "to", |one| {
        let counts = metrics(one).map(|balancer| balancer.metrics().health_changes());
        counts
            .into_iter()
            .flat_map(|(up, down)| [("healthy", up as f64), ("unhealthy", down as f64)])
            .collect()
    });
    for (name, help, of) in [
        (
            "longshore_lb_queue_wait_seconds",
            "how long requests waited for a worker, of those that had to wait",
            (|metrics| &metrics.queue_wait_ms) as fn(&BalancerMetrics) -> &Histogram,
        ),
        (
            "longshore_lb_first_byte_seconds",
            "from the choice of a worker to the head of its response",
            |metrics| &metrics.first_byte_ms,
        ),
        (
            "longshore_lb_request_seconds",
            "from the choice of a worker to the end of its response",
            |metrics| &metrics.duration_ms,
        ),
    ] {
        page.family_of_endpoints(name, MetricType::Histogram, help);
        for (place, one) in measured.iter().enumerate() {
            let Some(balancer) = one.handle.balancer() else { continue };
            page.endpoint(place);
            let labels = [("endpoint", one.record.id.as_str())];
            page.histogram(name, &labels, &of(balancer.metrics()).snapshot(), MS_PER_SECOND);
        }
    }
}

/// Renders a family with one sample for each load-balancing endpoint.
fn counted(
    page: &mut Exposition,
    measured: &[MeasuredEndpoint],
    (name, kind, help): (&str, MetricType, &str),
    count: fn(&BalancerMetrics) -> u64,
) {
    page.family_of_endpoints(name, kind, help);
    for (place, one) in measured.iter().enumerate() {
        if let Some(balancer) = one.handle.balancer() {
            page.endpoint(place);
            page.sample(name, &[("endpoint", one.record.id.as_str())], count(balancer.metrics()));
        }
    }
}
