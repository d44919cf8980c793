//! Parses the server's metrics in the Prometheus text format.

use std::collections::BTreeMap;

/// The metrics of one endpoint at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EndpointNumbers {
    pub(crate) name: String,
    pub(crate) queued: f64,
    pub(crate) running: f64,
    /// Jobs that completed; requests that a worker answered without a status 5xx.
    pub(crate) completed: f64,
    /// Jobs that failed; requests with a status 5xx, and refused ones.
    pub(crate) failed: f64,
    /// Sum of all queue delays in seconds, and the number of jobs in that sum.
    pub(crate) delay_sum_s: f64,
    pub(crate) delay_count: f64,
    /// Number of workers per state.
    pub(crate) workers: BTreeMap<String, f64>,
    /// Number of GPUs of all workers.
    pub(crate) gpus: f64,
}

/// Returns the metrics of every endpoint by id. Unknown metrics are ignored, because other versions may have more.
pub(crate) fn endpoints(page: &str) -> BTreeMap<String, EndpointNumbers> {
    let mut all: BTreeMap<String, EndpointNumbers> = BTreeMap::new();
    for (name, labels, value) in page.lines().filter_map(sample) {
        let Some(id) = labels.get("endpoint") else { continue };
        let one = all.entry(id.clone()).or_default();
        let label = |label: &str| labels.get(label).map(String::as_str).unwrap_or_default();
        match (name, label("state")) {
            ("longshore_endpoint_info", ..) => {
                let slug = label("slug");
                one.name = if slug.is_empty() { label("name").to_owned() } else { slug.to_owned() };
            }
            ("longshore_jobs", "queued") => one.queued = value,
            ("longshore_jobs", "running") => one.running = value,
            ("longshore_jobs_finished_total", "completed") => one.completed += value,
            ("longshore_jobs_finished_total", "failed" | "timed_out") => one.failed += value,
            ("longshore_job_delay_seconds_sum" | "longshore_lb_queue_wait_seconds_sum", ..) => {
                one.delay_sum_s += value;
            }
            ("longshore_job_delay_seconds_count" | "longshore_lb_queue_wait_seconds_count", ..) => {
                one.delay_count += value;
            }
            ("longshore_lb_requests_total", ..) => match label("answer") {
                "5xx" | "refused" => one.failed += value,
                _ => one.completed += value,
            },
            ("longshore_workers", ..) => {
                one.workers.insert(label("condition").to_owned(), value);
            }
            ("longshore_worker_gpus", ..) => one.gpus += value,
            _ => {}
        }
    }
    all
}

/// When the page was made, in seconds since 1970. `None` if the server does not report it. Requests within one
/// second get the same page.
pub(crate) fn taken_at_s(page: &str) -> Option<f64> {
    let mut samples = page.lines().filter_map(sample);
    samples.find(|(name, ..)| *name == "longshore_metrics_time_seconds").map(|(.., value)| value)
}

/// Parses one line into name, labels and value.
fn sample(line: &str) -> Option<(&str, BTreeMap<String, String>, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, labels)) = series.split_once('{') else { return Some((series, BTreeMap::new(), value)) };
    Some((name, read_labels(labels.strip_suffix('}')?)?, value))
}

/// Parses labels such as `a="b",c="d\"e"`.
fn read_labels(text: &str) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, tail) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = tail.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = tail[end + 1..].trim_start_matches(',');
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_numbers_by_endpoint() {
        let page = "# TYPE longshore_jobs gauge\n\
            longshore_endpoint_info{endpoint=\"e1\",name=\"a \\\"b\\\", c\",slug=\"\"} 1\n\
            longshore_jobs{endpoint=\"e1\",state=\"queued\"} 4\n\
            longshore_jobs_finished_total{endpoint=\"e1\",state=\"completed\"} 1e3\n\
            longshore_job_delay_seconds_bucket{endpoint=\"e1\",le=\"+Inf\"} 3\n\
            longshore_job_delay_seconds_sum{endpoint=\"e1\"} 0.5\n\
            longshore_workers{endpoint=\"e1\",condition=\"idle\"} 2\n\
            longshore_worker_gpus{endpoint=\"e1\",type=\"L4\"} 1\n\
            longshore_worker_gpus{endpoint=\"e1\",type=\"H100\"} 4\n\
            longshore_endpoint_info{endpoint=\"e2\",name=\"web\",slug=\"web\"} 1\n\
            longshore_lb_requests_total{endpoint=\"e2\",answer=\"2xx\"} 7\n\
            longshore_lb_requests_total{endpoint=\"e2\",answer=\"4xx\"} 1\n\
            longshore_lb_requests_total{endpoint=\"e2\",answer=\"5xx\"} 2\n\
            longshore_lb_requests_total{endpoint=\"e2\",answer=\"refused\"} 3\n\
            longshore_lb_queue_wait_seconds_sum{endpoint=\"e2\"} 0.25\n\
            process_resident_memory_bytes 5\nnonsense{\nno value\n";
        assert_eq!(
            (taken_at_s(page), taken_at_s("longshore_metrics_time_seconds 7.25\n")),
            (None, Some(7.25))
        );
        let all = endpoints(page);
        let one = &all["e1"];
        assert_eq!((one.name.as_str(), one.queued, one.completed), ("a \"b\", c", 4.0, 1_000.0));
        assert_eq!((one.delay_sum_s, one.workers["idle"], one.gpus, all.len()), (0.5, 2.0, 5.0, 2));
        let forwarded = &all["e2"];
        assert_eq!((forwarded.completed, forwarded.failed, forwarded.delay_sum_s), (8.0, 5.0, 0.25));
    }
}
