//! Metrics as messages of protocol buffers, which have native histograms: each family of samples is a
//! `io.prometheus.client.MetricFamily` after its length. The numbers of fields are those of Prometheus' `metrics.proto`.

use longshore_engine::{EXPONENTIAL_SCHEMA, Exemplar, ExponentialSnapshot, HistogramSnapshot};

use super::exposition::{Label, MetricType};

/// Values at or below it are in the bucket of zeros.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// The families so far, and the one that samples are added to.
#[derive(Debug, Default)]
pub(super) struct Families {
    bytes: Vec<u8>,
    /// The name, help and type of the family.
    head: Message,
    kind: Option<MetricType>,
    /// The samples of the family that are not in `bytes`.
    metrics: Message,
}

impl Families {
    /// The number of bytes so far, with all samples that were added.
    pub(super) fn len(&mut self) -> usize {
        self.end_part();
        self.bytes.len()
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.end_part();
        self.bytes
    }

    /// Begins a metric family; the metrics that follow belong to it.
    pub(super) fn family(&mut self, name: &str, kind: MetricType, help: &str) {
        self.end_part();
        self.head = Message::default();
        self.head.bytes(1, name.as_bytes());
        self.head.bytes(2, help.as_bytes());
        self.head.number(
            3,
            match kind {
                MetricType::Counter | MetricType::OldCounter => 0,
                MetricType::Gauge => 1,
                MetricType::Histogram => 4,
            },
        );
        self.kind = Some(kind);
    }

    /// Adds a sample to the family.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        let mut inner = Message::default();
        inner.double(1, value);
        let field = if matches!(self.kind, Some(MetricType::Gauge)) { 2 } else { 3 };
        self.metric(labels, field, &inner);
    }

    /// Adds a histogram to the family: its buckets, and the native ones if it has them.
    pub(super) fn histogram(
        &mut self,
        labels: &[Label<'_>],
        histogram: &HistogramSnapshot,
        units_per_one: f64,
    ) {
        let HistogramSnapshot { bounds, cumulative, sum, exemplars, exponential } = histogram;
        let mut inner = Message::default();
        let count = exponential.as_ref().map(ExponentialSnapshot::count);
        inner.number(1, count.unwrap_or(cumulative.last().copied().unwrap_or_default()));
        inner.double(2, *sum as f64 / units_per_one);
        let bounds = bounds.iter().map(|bound| *bound as f64 / units_per_one).chain([f64::INFINITY]);
        let exemplars = exemplars.iter().chain(std::iter::repeat(&None));
        for ((bound, count), exemplar) in bounds.zip(cumulative).zip(exemplars) {
            let mut bucket = Message::default();
            bucket.number(1, *count);
            bucket.double(2, bound);
            if let Some(exemplar) = exemplar {
                bucket.bytes(3, &example(exemplar, units_per_one).0);
            }
            inner.bytes(3, &bucket.0);
        }
        if let Some(exponential) = exponential {
            native(&mut inner, exponential);
        }
        self.metric(labels, 7, &inner);
    }

    fn metric(&mut self, labels: &[Label<'_>], field: u64, inner: &Message) {
        let mut metric = Message::default();
        for (name, value) in labels {
            metric.bytes(1, &pair(name, value).0);
        }
        metric.bytes(field, &inner.0);
        self.metrics.bytes(4, &metric.0);
    }

    /// Writes the samples that were added since the last call as a message of their own. Readers take several of a family.
    fn end_part(&mut self) {
        if self.metrics.0.is_empty() {
            return;
        }
        varint(&mut self.bytes, (self.head.0.len() + self.metrics.0.len()) as u64);
        self.bytes.extend_from_slice(&self.head.0);
        self.bytes.append(&mut self.metrics.0);
    }
}

/// Adds the buckets of a native histogram: runs of neighbours, and the difference of each count from the one before.
fn native(inner: &mut Message, exponential: &ExponentialSnapshot) {
    inner.signed(5, i64::from(EXPONENTIAL_SCHEMA));
    inner.double(6, ZERO_THRESHOLD);
    inner.number(7, exponential.zeros);
    let mut spans: Vec<(i32, u64)> = Vec::new();
    let (mut next, mut before) = (0, 0);
    let mut deltas = Vec::new();
    for (bucket, count) in &exponential.counts {
        match spans.last_mut() {
            Some((_, length)) if *bucket == next => *length += 1,
            _ => spans.push((bucket - next, 1)),
        }
        varint(&mut deltas, zigzag(*count as i64 - before));
        (next, before) = (bucket + 1, *count as i64);
    }
    // Without a span it would be read as a histogram without native buckets.
    if spans.is_empty() {
        spans.push((0, 0));
    }
    for (offset, length) in spans {
        let mut span = Message::default();
        span.signed(1, i64::from(offset));
        span.number(2, length);
        inner.bytes(12, &span.0);
    }
    if !deltas.is_empty() {
        inner.bytes(13, &deltas);
    }
}

/// A value with the trace that it was measured in.
fn example(exemplar: &Exemplar, units_per_one: f64) -> Message {
    let mut at = Message::default();
    at.number(1, exemplar.at.0 / 1_000);
    at.number(2, exemplar.at.0 % 1_000 * 1_000_000);
    let mut message = Message::default();
    message.bytes(1, &pair("trace_id", &const_hex::encode(exemplar.trace)).0);
    message.double(2, exemplar.value as f64 / units_per_one);
    message.bytes(3, &at.0);
    message
}

fn pair(name: &str, value: &str) -> Message {
    let mut pair = Message::default();
    pair.bytes(1, name.as_bytes());
    pair.bytes(2, value.as_bytes());
    pair
}

/// The fields of a message.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u64, value: u64) {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value);
    }

    fn signed(&mut self, field: u64, value: i64) {
        self.number(field, zigzag(value));
    }

    fn double(&mut self, field: u64, value: f64) {
        varint(&mut self.0, field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A signed number as one of which the small ones are short.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_message_after_its_length() {
        let mut families = Families::default();
        families.family("up", MetricType::Gauge, "h");
        families.sample(&[("a", "b")], 1.0);
        let length = families.len();
        families.sample(&[], 1.0);
        let bytes = families.into_bytes();
        let head = b"\x0a\x02up\x12\x01h\x18\x01";
        let value = b"\x12\x09\x09\0\0\0\0\0\0\xf0\x3f";
        let first = [&[30][..], head, b"\x22\x13\x0a\x06\x0a\x01a\x12\x01b", value].concat();
        let second = [&[22][..], head, b"\x22\x0b", value].concat();
        assert_eq!(length, first.len());
        assert_eq!(bytes, [first, second].concat());
    }

    #[test]
    fn native_buckets_are_runs_with_differences() {
        let mut inner = Message::default();
        native(&mut inner, &ExponentialSnapshot { zeros: 3, counts: vec![(-2, 1), (-1, 4), (2, 2)] });
        // Two runs: two buckets from -2 on, then one after a gap of two; 1, +3, -2.
        assert!(
            inner
                .0
                .ends_with(b"\x38\x03\x62\x04\x08\x03\x10\x02\x62\x04\x08\x04\x10\x01\x6a\x03\x02\x06\x03"),
            "{inner:02x?}"
        );
        let mut none = Message::default();
        native(&mut none, &ExponentialSnapshot { zeros: 0, counts: vec![] });
        assert!(none.0.ends_with(b"\x62\x04\x08\x00\x10\x00"), "{none:02x?}");
    }
}
