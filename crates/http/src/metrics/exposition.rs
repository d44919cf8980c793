//! The Prometheus text format, version 0.0.4, and `OpenMetrics` 1.0: families of samples, each sample with its labels.
//!
//! `OpenMetrics` has examples: a value of a histogram's bucket, with the trace that it was measured in. Protocol buffers have
//! them too, and are written by [`Families`].

use std::fmt::{Display, Write as _};

use longshore_engine::{Exemplar, HistogramSnapshot};
use longshore_model::EndpointId;

use super::families::MS_PER_SECOND;
use super::format::Format;
use super::page::{About, MetricsPage};
use super::protobuf::Families;

/// Builds a page. The samples of a family must follow the head of the family.
#[derive(Debug)]
pub(super) struct Exposition {
    format: Format,
    text: String,
    /// In place of the text, for protocol buffers.
    families: Option<Families>,
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
    /// A counter whose name without `_total` is that of another family. `OpenMetrics` has no such counters, only values of an
    /// unknown type.
    OldCounter,
    /// A distribution in buckets.
    Histogram,
}

impl Exposition {
    /// Returns an empty page.
    pub fn new(format: Format) -> Self {
        let families = (format == Format::Protobuf).then(Families::default);
        Self { format, text: String::new(), families, parts: Vec::new() }
    }

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
        let length = self.families.as_mut().map_or(self.text.len(), Families::len);
        self.parts.push((length, about));
    }

    fn head(&mut self, name: &str, kind: MetricType, help: &str) {
        if let Some(families) = &mut self.families {
            return families.family(name, kind, help);
        }
        let (name, kind) = match kind {
            MetricType::Gauge => (name, "gauge"),
            MetricType::Counter if self.is_open() => (name.trim_end_matches("_total"), "counter"),
            MetricType::OldCounter if self.is_open() => (name, "unknown"),
            MetricType::Counter | MetricType::OldCounter => (name, "counter"),
            MetricType::Histogram => (name, "histogram"),
        };
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Adds one sample to the family.
    pub fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        if let Some(families) = &mut self.families {
            return families.sample(labels, value.to_string().parse().unwrap_or(f64::NAN));
        }
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
        if let Some(families) = &mut self.families {
            return families.histogram(labels, histogram, units_per_one);
        }
        let is_open = self.is_open();
        let bounds = histogram.bounds.iter().map(|bound| bound_text(*bound as f64 / units_per_one, is_open));
        let exemplars = histogram.exemplars.iter().chain(std::iter::repeat(&None));
        let buckets = bounds.chain(["+Inf".to_owned()]).zip(&histogram.cumulative).zip(exemplars);
        for ((bound, count), exemplar) in buckets {
            self.write(format_args!("{name}_bucket"));
            self.labels(labels, Some(("le", &bound)));
            self.write(format_args!(" {count}"));
            if let Some(exemplar) = exemplar.as_ref().filter(|_| is_open) {
                self.exemplar(exemplar, units_per_one);
            }
            self.text.push('\n');
        }
        self.write(format_args!("{name}_sum"));
        self.labels(labels, None);
        self.write(format_args!(" {}\n{name}_count", histogram.sum as f64 / units_per_one));
        self.labels(labels, None);
        self.write(format_args!(" {}\n", histogram.cumulative.last().unwrap_or(&0)));
    }

    /// Returns the page. `endpoints` are the ids of the endpoints by place.
    pub fn into_page(mut self, endpoints: &[EndpointId]) -> MetricsPage {
        if self.is_open() {
            self.begin(About::Endpoints);
            self.text.push_str("# EOF\n");
        }
        match self.families {
            Some(families) => MetricsPage::new(families.into_bytes(), self.parts, endpoints),
            None => MetricsPage::new(self.text, self.parts, endpoints),
        }
    }

    fn is_open(&self) -> bool {
        self.format == Format::OpenMetrics
    }

    fn exemplar(&mut self, exemplar: &Exemplar, units_per_one: f64) {
        let (trace, value) = (const_hex::encode(exemplar.trace), exemplar.value as f64 / units_per_one);
        let at = exemplar.at.0 as f64 / MS_PER_SECOND;
        self.write(format_args!(" # {{trace_id=\"{trace}\"}} {value} {at}"));
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

/// The bound of a bucket. In `OpenMetrics` it is a number with a point.
fn bound_text(bound: f64, is_open: bool) -> String {
    if is_open && bound.fract() == 0.0 { format!("{bound:.1}") } else { bound.to_string() }
}

#[cfg(test)]
mod tests {
    use longshore_model::Millis;

    use super::*;

    #[test]
    fn a_page_of_open_metrics_has_examples_and_an_end() {
        let mut page = Exposition::new(Format::OpenMetrics);
        page.family_of_endpoints("ends_total", MetricType::Counter, "ends");
        page.sample("ends_total", &[], 2);
        let example = Exemplar { trace: [0xab; 16], value: 1_500, at: Millis(1_700_000_000_123) };
        let waits = HistogramSnapshot {
            bounds: &[1_000, 2_500],
            cumulative: vec![1, 2, 4],
            sum: 9_001,
            exemplars: vec![None, Some(example), None],
            exponential: None,
        };
        page.histogram("wait_seconds", &[], &waits, 1_000.0);
        let expected = r#"# HELP ends ends
# TYPE ends counter
ends_total 2
wait_seconds_bucket{le="1.0"} 1
wait_seconds_bucket{le="2.5"} 2 # {trace_id="abababababababababababababababab"} 1.5 1700000000.123
wait_seconds_bucket{le="+Inf"} 4
wait_seconds_sum 9.001
wait_seconds_count 4
# EOF
"#;
        let page = page.into_page(&[]);
        assert_eq!(page.whole(), expected);
        assert_eq!(page.about([].into_iter()), expected, "a part of a page ends as the whole does");
    }

    #[test]
    fn a_page_reads_as_the_format_says() {
        let mut page = Exposition::new(Format::Text);
        page.family("jobs", MetricType::Gauge, "jobs by state");
        page.sample("jobs", &[("endpoint", "a\"\\\n"), ("state", "x")], 3);
        page.sample("up", &[], 1);
        let waits = HistogramSnapshot {
            bounds: &[1, 2_500],
            cumulative: vec![1, 2, 4],
            sum: 9_001,
            exemplars: vec![],
            exponential: None,
        };
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
