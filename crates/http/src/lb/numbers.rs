//! The numbers of a load-balancing endpoint as `/health` and the events show them.

use longshore_engine::{Balancer, BalancerMetrics, EndpointHandle, Histogram};
use serde_json::{Map, Value, json};

use crate::openapi::schema::{count, object};

/// The numbers of an endpoint's requests and workers; `None` if the endpoint has a queue. Counts and times are those since
/// the server started.
pub(crate) fn of(endpoint: &EndpointHandle) -> Option<Value> {
    endpoint.balancer().map(|balancer| written(balancer))
}

fn written(balancer: &Balancer) -> Value {
    let metrics: &BalancerMetrics = balancer.metrics();
    let requests: Map<_, _> =
        metrics.requests().into_iter().map(|(answer, count)| (answer.to_owned(), json!(count))).collect();
    let workers: Map<_, _> = balancer
        .health_counts()
        .into_iter()
        .map(|(health, count)| (health.to_owned(), json!(count)))
        .collect();
    json!({
        "requests": requests,
        "requestsPerSecond": (metrics.per_second() * 10.0).round() / 10.0,
        "retries": metrics.retries(),
        "queueWaitMs": times(&metrics.queue_wait_ms),
        "firstByteMs": times(&metrics.first_byte_ms),
        "durationMs": times(&metrics.duration_ms),
        "workers": workers,
    })
}

/// The number of values and upper bounds of their percentiles, in ms; a percentile is `null` without a value.
fn times(histogram: &Histogram) -> Value {
    let values = histogram.snapshot();
    json!({
        "count": values.cumulative.last(),
        "p50": values.percentile(0.5),
        "p95": values.percentile(0.95),
    })
}

/// The schema of the numbers.
pub(crate) fn schema() -> Value {
    let bound = json!({ "type": "integer", "nullable": true, "description": "an upper bound, in ms" });
    let times =
        object(&[("count", count()), ("p50", bound.clone()), ("p95", bound)], &["count", "p50", "p95"]);
    let rate = json!({ "type": "number", "minimum": 0, "description": "the average of the last 10 s" });
    let requests = ["1xx", "2xx", "3xx", "4xx", "5xx", "refused"];
    let workers = ["starting", "initializing", "healthy", "unhealthy", "draining"];
    let counts = |names: &[&'static str]| {
        object(&names.iter().map(|name| (*name, count())).collect::<Vec<_>>(), names)
    };
    let members = [
        ("requests", counts(&requests)),
        ("requestsPerSecond", rate),
        ("retries", count()),
        ("queueWaitMs", times.clone()),
        ("firstByteMs", times.clone()),
        ("durationMs", times),
        ("workers", counts(&workers)),
    ];
    object(&members, &members.each_ref().map(|(name, _)| *name))
}
