//! Encodes spans as OTLP: the Protocol Buffers message `ExportTraceServiceRequest` of OpenTelemetry.
//!
//! The fields and their numbers are those of `opentelemetry/proto/trace/v1/trace.proto`, which no later version may change.

use super::span::{Attributes, Event, Span, Value};

/// Wire types of Protocol Buffers.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// The number of the status `ERROR`.
const STATUS_ERROR: u64 = 2;

/// Returns a request with these spans of the service.
pub(super) fn request(service: &str, spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spans.len() * 512);
    message(&mut out, 1, |resource_spans| {
        message(resource_spans, 1, |resource| {
            attributes(
                resource,
                1,
                &vec![
                    ("service.name", service.into()),
                    ("service.version", env!("CARGO_PKG_VERSION").into()),
                ],
            );
        });
        message(resource_spans, 2, |scope_spans| {
            message(scope_spans, 1, |scope| bytes(scope, 1, b"longshore"));
            for one in spans {
                message(scope_spans, 2, |out| span(out, one));
            }
        });
    });
    out
}

fn span(out: &mut Vec<u8>, span: &Span) {
    bytes(out, 1, &span.trace);
    bytes(out, 2, &span.id);
    if let Some(parent) = &span.parent {
        bytes(out, 4, parent);
    }
    bytes(out, 5, span.name.as_bytes());
    number(out, 6, span.kind as u64);
    fixed64(out, 7, span.start.0);
    fixed64(out, 8, span.end.0);
    attributes(out, 9, &span.attributes);
    for one in &span.events {
        message(out, 11, |out| event(out, one));
    }
    for (trace, id) in &span.links {
        message(out, 13, |link| {
            bytes(link, 1, trace);
            bytes(link, 2, id);
        });
    }
    if span.is_error {
        message(out, 15, |status| number(status, 3, STATUS_ERROR));
    }
}

fn event(out: &mut Vec<u8>, event: &Event) {
    fixed64(out, 1, event.at.0);
    bytes(out, 2, event.name.as_bytes());
    attributes(out, 3, &event.attributes);
}

fn attributes(out: &mut Vec<u8>, field: u64, attributes: &Attributes) {
    for (name, value) in attributes {
        message(out, field, |pair| {
            bytes(pair, 1, name.as_bytes());
            message(pair, 2, |any| match value {
                Value::Text(text) => bytes(any, 1, text.as_bytes()),
                Value::Truth(value) => number(any, 2, u64::from(*value)),
                Value::Number(value) => number(any, 3, *value),
            });
        });
    }
}

fn message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    bytes(out, field, &inner);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::super::span::{Nanos, SpanKind};
    use super::*;

    #[test]
    fn a_span_is_encoded_as_the_schema_says() {
        let span = Span {
            trace: [1; 16],
            id: [2; 8],
            parent: Some([3; 8]),
            name: "n".to_owned(),
            kind: SpanKind::Consumer,
            start: Nanos(1),
            end: Nanos(2),
            attributes: vec![("a", 300_u64.into())],
            events: vec![Event { at: Nanos(3), name: "e", attributes: vec![] }],
            links: vec![([4; 16], [5; 8])],
            is_error: true,
        };
        let mut out = Vec::new();
        super::span(&mut out, &span);
        let expected = [
            "0a1001010101010101010101010101010101",
            "12080202020202020202",
            "22080303030303030303",
            "2a016e",
            "3005",
            "390100000000000000",
            "410200000000000000",
            "4a080a01611203", // a pair, its name, its value
            "18ac02",
            "5a0c",
            "090300000000000000",
            "120165",
            "6a1c",
            "0a1004040404040404040404040404040404",
            "12080505050505050505",
            "7a021802",
        ];
        assert_eq!(const_hex::encode(out), expected.concat());
    }
}
