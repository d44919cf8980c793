//! The Prometheus text format, version 0.0.4: families of samples, each sample with its labels.

use std::fmt::{Display, Write as _};

use longshore_engine::HistogramSnapshot;
use longshore_model::EndpointId;

use super::page::{About, MetricsPage};

/// The content type of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Builds a page. The samples of a family must follow the head of the family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    parts: Vec<(usize, About)>,
}

/// A label: name and value.
pub(super) type Label<'a> = (&'a str, &'a str);

/// The type of a family.
#[derive(Clone, Copy, Debug)]
pub(super) enum MetricType {
    /// A value that can go up and down.
    Gauge,
    /// A value that only goes up, from zero at the start of the server.
    Counter,
    /// A distribution in buckets.
    Histogram,
}

impl Exposition {
    /// Begins a family about the whole process.
    pub fn family(&mut self, name: &str, kind: MetricType, help: &str) {
        self.begin(About::Server);
        self.head(name, kind, help);
    }

    /// Begins a family whose samples are of endpoints.
    pub fn family_of_endpoints(&mut self, name: &str, kind: MetricType, help: &str) {
        self.begin(About::Endpoints);
        self.head(name, kind, help);
    }

    /// Begins the samples of one endpoint, by its place in the list of endpoints.
    pub fn endpoint(&mut self, place: usize) {
        self.begin(About::Endpoint(place));
    }

    fn begin(&mut self, about: About) {
        self.parts.push((self.text.len(), about));
    }

    fn head(&mut self, name: &str, kind: MetricType, help: &str) {
        let kind = match kind {
            MetricType::Gauge => "gauge",
            MetricType::Counter => "counter",
            MetricType::Histogram => "histogram",
        };
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Adds one sample to the family.
    pub fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        self.text.push_str(name);
        self.labels(labels, None);
        self.write(format_args!(" {value}\n"));
    }

    /// Adds the samples of one histogram. `units_per_one` is the number of the histogram's units in one unit of the family.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[Label<'_>],
        histogram: &HistogramSnapshot,
        units_per_one: f64,
    ) {
        let bounds = histogram.bounds.iter().map(|bound| (*bound as f64 / units_per_one).to_string());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.cumulative) {
            self.write(format_args!("{name}_bucket"));
            self.labels(labels, Some(("le", &bound)));
            self.write(format_args!(" {count}\n"));
        }
        self.write(format_args!("{name}_sum"));
        self.labels(labels, None);
        self.write(format_args!(" {}\n{name}_count", histogram.sum as f64 / units_per_one));
        self.labels(labels, None);
        self.write(format_args!(" {}\n", histogram.cumulative.last().unwrap_or(&0)));
    }

    /// Returns the page. `endpoints` are the ids of the endpoints by place.
    pub fn into_page(self, endpoints: &[EndpointId]) -> MetricsPage {
        MetricsPage::new(self.text, self.parts, endpoints)
    }

    fn labels(&mut self, labels: &[Label<'_>], last: Option<Label<'_>>) {
        let mut opener = '{';
        for (name, value) in labels.iter().copied().chain(last) {
            let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
            self.write(format_args!("{opener}{name}=\"{value}\""));
            opener = ',';
        }
        if opener == ',' {
            self.text.push('}');
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _infallible = self.text.write_fmt(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_the_format_says() {
        let mut page = Exposition::default();
        page.family("jobs", MetricType::Gauge, "jobs by state");
        page.sample("jobs", &[("endpoint", "a\"\\\n"), ("state", "x")], 3);
        page.sample("up", &[], 1);
        let waits = HistogramSnapshot { bounds: &[1, 2_500], cumulative: vec![1, 2, 4], sum: 9_001 };
        page.histogram("wait_seconds", &[("endpoint", "a")], &waits, 1_000.0);
        let expected = r#"# HELP jobs jobs by state
# TYPE jobs gauge
jobs{endpoint="a\"\\\n",state="x"} 3
up 1
wait_seconds_bucket{endpoint="a",le="0.001"} 1
wait_seconds_bucket{endpoint="a",le="2.5"} 2
wait_seconds_bucket{endpoint="a",le="+Inf"} 4
wait_seconds_sum{endpoint="a"} 9.001
wait_seconds_count{endpoint="a"} 4
"#;
        assert_eq!(page.into_page(&[]).whole(), expected);
    }
}
