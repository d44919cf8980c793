//! Splits the chunk that a worker posts into chunks that, as clients see them, are within the limit.

use bytes::Bytes;
use longshore_engine::{Chunk, Seam};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::pieces::{Piece, PieceLimits, pieces};

/// The length of `{"output":` and `}`, in bytes.
const FRAME_BYTES: usize = 11;
/// The length of `,"metrics":`, in bytes.
const METRICS_FRAME_BYTES: usize = 11;
/// Least limit, in bytes; a lower one counts as this one.
const LIMIT_MIN: usize = 128;

/// An object with exactly these two members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Both<'a> {
    #[serde(borrow)]
    output: &'a RawValue,
    #[serde(borrow)]
    metrics: &'a RawValue,
}

/// The output and metrics of a value that is an object with exactly these two members, the second one an object.
pub(crate) fn within(value: &Bytes) -> Option<(Bytes, Bytes)> {
    // serde would accept a list as such an object, too.
    let both: Both<'_> = value.starts_with(b"{").then(|| serde_json::from_slice(value).ok())??;
    let share = |raw: &RawValue| value.slice_ref(raw.get().as_bytes());
    both.metrics.get().starts_with('{').then(|| (share(both.output), share(both.metrics)))
}

/// The chunk that a report stands for. The SDK posts what a handler yields as the `output`, even if the handler yields
/// a chunk with metrics.
pub(super) fn posted(output: Bytes, metrics: Option<Bytes>) -> Chunk {
    let (output, metrics) = match metrics {
        Some(metrics) => (output, Some(metrics)),
        None => match within(&output) {
            Some((output, metrics)) => (output, Some(metrics)),
            None => (output, None),
        },
    };
    Chunk { output, metrics, ..Chunk::default() }
}

/// Splits the chunk into parts of at most `limit` bytes as clients see them; returns the chunk itself if it is short
/// enough.
///
/// The metrics go with the first part. Metrics that are too long are split like an output. If output and metrics have
/// different numbers of parts, the missing outputs are empty values of the output's kind, and the missing metrics are
/// absent.
pub(crate) fn split(chunk: Chunk, limit: usize) -> Vec<Chunk> {
    let limit = limit.max(LIMIT_MIN);
    let metrics_bytes = chunk.metrics.as_ref().map_or(0, Bytes::len);
    let metrics_frame = chunk.metrics.as_ref().map_or(0, |_| METRICS_FRAME_BYTES);
    if chunk.bytes() + FRAME_BYTES + metrics_frame <= limit {
        return vec![chunk];
    }
    let room = limit - FRAME_BYTES - metrics_frame;
    let half = room / 2;
    let metrics_room = match (metrics_bytes <= half, chunk.output.len() <= half) {
        (true, _) => metrics_bytes,
        // The output of later parts may be `null`.
        (false, true) => room - chunk.output.len().max(4),
        (false, false) => half,
    };
    let first = room - metrics_room;
    let rest = if metrics_bytes <= metrics_room { limit - FRAME_BYTES } else { first };
    let outputs = pieces(chunk.output.clone(), PieceLimits { first, rest });
    let metrics =
        chunk.metrics.map(|metrics| pieces(metrics, PieceLimits { first: metrics_room, rest: metrics_room }));
    joined(outputs, metrics.unwrap_or_default(), &chunk.output)
}

/// Pairs the pieces of output and metrics.
fn joined(outputs: Vec<Piece>, metrics: Vec<Piece>, whole: &[u8]) -> Vec<Chunk> {
    let count = outputs.len().max(metrics.len());
    let (mut outputs, mut metrics) = (outputs.into_iter(), metrics.into_iter());
    let chunk = |at| {
        let output = outputs.next().unwrap_or_else(|| empty_like(whole));
        let metrics = metrics.next().map(|metrics| metrics.json);
        let bytes = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let seam = Seam {
            goes_on: at + 1 < count,
            after_comma: output.after_comma,
            head: bytes(output.head),
            tail: bytes(output.tail),
        };
        Chunk { output: output.json, metrics, seam }
    };
    (0..count).map(chunk).collect()
}

/// The empty value of the same kind as `whole`, which adds nothing to the joined output.
fn empty_like(whole: &[u8]) -> Piece {
    let json: &[u8] = match whole.first() {
        Some(b'"') => b"\"\"",
        Some(b'[') => b"[]",
        Some(b'{') => b"{}",
        _ => b"null",
    };
    Piece { json: Bytes::from_static(json), head: json.len(), tail: 0, after_comma: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn shown(chunk: &Chunk) -> String {
        let text = |json: &Bytes| String::from_utf8(json.to_vec()).unwrap();
        match &chunk.metrics {
            Some(metrics) => format!("{{\"output\":{},\"metrics\":{}}}", text(&chunk.output), text(metrics)),
            None => format!("{{\"output\":{}}}", text(&chunk.output)),
        }
    }

    fn parts(output: &str, metrics: Option<&str>) -> Vec<Chunk> {
        let parts = split(posted(bytes(output), metrics.map(bytes)), LIMIT_MIN);
        assert!(parts.iter().all(|part| shown(part).len() <= LIMIT_MIN), "{parts:?}");
        parts
    }

    #[test]
    fn metrics_come_beside_the_output_or_within_it() {
        for (output, metrics, expected) in [
            ("1.0", Some("{\"a\": 1e400}"), r#"{"output":1.0,"metrics":{"a": 1e400}}"#),
            (r#"{"output": [1.0], "metrics": {}}"#, None, r#"{"output":[1.0],"metrics":{}}"#),
            (r#"{ "metrics": {"b":2}, "output":null}"#, None, r#"{"output":null,"metrics":{"b":2}}"#),
            (
                r#"{"output":1,"metrics":{}}"#,
                Some("{\"a\":1}"),
                r#"{"output":{"output":1,"metrics":{}},"metrics":{"a":1}}"#,
            ),
        ] {
            assert_eq!(shown(&posted(bytes(output), metrics.map(bytes))), expected);
        }
    }

    #[test]
    fn what_only_looks_like_output_and_metrics_is_an_output() {
        for output in [
            r#"{"output":1}"#,
            r#"{"metrics":{}}"#,
            r#"{"output":1,"metrics":[]}"#,
            r#"{"output":1,"metrics":null}"#,
            r#"{"output":1,"metrics":{},"more":1}"#,
            r#"{"output":1,"output":2,"metrics":{}}"#,
            "[1,{}]",
        ] {
            assert_eq!(posted(bytes(output), None), Chunk::from(bytes(output)));
        }
    }

    #[test]
    fn a_chunk_is_as_long_as_the_limit_and_no_longer() {
        for metrics in [None, Some("{}")] {
            let frame = shown(&posted(bytes("\"\""), metrics.map(bytes))).len();
            let output = |more: usize| format!("\"{}\"", "x".repeat(LIMIT_MIN - frame + more));
            assert_eq!(parts(&output(0), metrics), [posted(bytes(&output(0)), metrics.map(bytes))]);
            assert_eq!(parts(&output(1), metrics).len(), 2);
        }
    }

    #[test]
    fn metrics_go_with_the_first_part() {
        let parts = parts(&format!("\"{}\"", "x".repeat(250)), Some("{\"a\":1}"));
        assert_eq!(parts.len(), 3);
        assert!(shown(&parts[0]).ends_with(",\"metrics\":{\"a\":1}}"));
        assert!(parts[1..].iter().all(|part| part.metrics.is_none()));
    }

    #[test]
    fn long_metrics_are_split_too() {
        let metrics = format!("{{\"long\":\"{}\",\"n\":1}}", "m".repeat(200));
        for (output, nothing) in
            [("\"x\"".to_owned(), "\"\""), ("[1]".to_owned(), "[]"), ("7".to_owned(), "null")]
        {
            let parts = parts(&output, Some(&metrics));
            assert_eq!((parts[0].output.as_ref(), parts.len()), (output.as_bytes(), 3));
            assert!(parts[1..].iter().all(|part| part.output == nothing));
            let texts = parts.iter().map(|part| {
                let metrics: serde_json::Value =
                    serde_json::from_slice(part.metrics.as_ref().unwrap()).unwrap();
                metrics["long"].as_str().unwrap().to_owned()
            });
            assert_eq!(texts.collect::<String>(), "m".repeat(200));
        }
        let both = parts(&format!("\"{}\"", "x".repeat(300)), Some(&metrics));
        assert_eq!(both.iter().filter(|part| part.metrics.is_some()).count(), 5);
    }
}
