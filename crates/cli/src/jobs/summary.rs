//! Shortens large and binary values of a job for a terminal.

use serde_json::value::RawValue;

use crate::exit::CommandResult;
use crate::human::size;
use crate::members::Members;

/// Longest text in bytes that a terminal gets whole, and the length of the start of a longer one.
const SHOWN_BYTES_MAX: usize = 4_096;
const START_BYTES: usize = 1_024;

/// Shortest string in bytes that is taken for binary data.
const BINARY_BYTES_MIN: usize = 256;

/// How to get what was left out.
const HOW: &str = "all of it: `--raw`, or `> output.json`";

/// The first characters of files in base64, and the kinds of these files.
const KINDS: &[(&str, &str)] = &[
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "RIFF, such as image/webp or audio/wav"),
    ("JVBERi0", "application/pdf"),
    ("SUQz", "audio/mpeg"),
    ("T2dnUw", "audio/ogg"),
    ("ZkxhQ", "audio/flac"),
    ("AAAAGGZ0eX", "video/mp4"),
    ("AAAAIGZ0eX", "video/mp4"),
    ("UEsDB", "application/zip"),
    ("H4sI", "application/gzip"),
];

/// Returns JSON text with a summary in place of each binary string, cut if it is still long. A last line says how to get
/// all of it.
pub(super) fn summary(json: &str) -> String {
    let (text, left_out) = without_binaries(json);
    if text.len() > SHOWN_BYTES_MAX {
        let start = &text[..text.floor_char_boundary(START_BYTES)];
        return format!("{start} …\n({} of JSON, the start is shown; {HOW})", size(json.len() as u64));
    }
    if left_out { format!("{text}\n(binary values are left out; {HOW})") } else { text }
}

/// Returns a chunk as one line that has a summary in place of each binary string, and of a long value the start; `None`
/// if the chunk is short and has no binary string.
pub(super) fn short_chunk(json: &str) -> Option<String> {
    let (text, left_out) = without_binaries(json);
    let text = serde_json::from_str::<String>(&text).unwrap_or(text);
    if text.len() > SHOWN_BYTES_MAX {
        let start = &text[..text.floor_char_boundary(START_BYTES)];
        return Some(format!("{start} … ({})", size(text.len() as u64)));
    }
    left_out.then_some(text)
}

/// Returns the members of a job's record, each at most [`SHOWN_BYTES_MAX`] long and without binary strings.
pub(super) fn short_record(record: &RawValue) -> CommandResult<String> {
    let mut members = Vec::new();
    for (name, value) in Members::of(record)?.iter() {
        let (text, left_out) = without_binaries(value.get());
        let value = if left_out || text.len() > SHOWN_BYTES_MAX {
            serde_json::Value::from(summary(value.get())).to_string()
        } else {
            text
        };
        members.push(format!("{}:{value}", serde_json::Value::from(name)));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// Replaces each binary string in JSON text by its summary. Returns the text, and whether a string was replaced.
fn without_binaries(json: &str) -> (String, bool) {
    let mut out = String::new();
    let (mut rest, mut left_out) = (json, false);
    while let Some((before, after)) = rest.split_once('"') {
        let end = end_of_string(after);
        let content = &after[..end];
        out.push_str(before);
        let shown = (content.len() >= BINARY_BYTES_MIN).then(|| binary(content)).flatten();
        left_out |= shown.is_some();
        out.push('"');
        out.push_str(shown.as_deref().unwrap_or(content));
        out.push('"');
        rest = after.get(end + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    (out, left_out)
}

/// Returns the length of a JSON string whose opening quote is before `text`.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    };
    text.bytes().position(is_end).unwrap_or(text.len())
}

/// Returns the summary of a string with binary data; `None` for any other string.
fn binary(content: &str) -> Option<String> {
    let data_url = content.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
    let (kind, data) = match data_url {
        Some((kind, data)) => (Some(kind), data),
        None if is_base64(content) => (None, content),
        None => return None,
    };
    let known = KINDS.iter().find(|(start, _)| data.starts_with(start)).map(|(_, kind)| *kind);
    let bytes = size(data.len() as u64 / 4 * 3);
    Some(match kind.filter(|kind| !kind.is_empty() && kind.len() < 64).or(known) {
        Some(kind) => format!("<{kind}, {bytes} as base64>"),
        None => format!("<{bytes} as base64>"),
    })
}

/// Whether a long text is base64: of its characters alone, and of each kind of them.
fn is_base64(text: &str) -> bool {
    let text = text.as_bytes();
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_'))
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_strings_are_summarized_and_everything_else_stays() {
        let image = format!("iVBORw0KGgo{}", "aB3+".repeat(500));
        let url = format!("data:audio/wav;base64,{}", "x".repeat(4_000));
        let words = "a long text \\\" with a quote and spaces ".repeat(20);
        let json = format!(r#"{{"n": 1.0, "image": "{image}", "sound": "{url}", "text": "{words}"}}"#);
        let shown = summary(&json);
        assert_eq!(
            shown,
            format!(
                "{{\"n\": 1.0, \"image\": \"<image/png, 1.5 kB as base64>\", \"sound\": \"<audio/wav, 3.0 kB as \
                 base64>\", \"text\": \"{words}\"}}\n(binary values are left out; {HOW})"
            )
        );
        let record = RawValue::from_string(format!(r#"{{"id":"a","output":{json},"delayTime":3}}"#)).unwrap();
        let short = short_record(&record).unwrap();
        assert!(short.contains("<image/png") && !short.contains("aB3+aB3+"), "{short}");
        let whole: serde_json::Value = serde_json::from_str(&short).unwrap();
        assert_eq!((&whole["id"], &whole["delayTime"]), (&"a".into(), &3.into()));
    }

    #[test]
    fn a_long_output_is_cut() {
        let cut = summary(&format!("\"{}\"", "ü".repeat(3_000)));
        assert!(cut.len() < 1_200 && cut.contains("6.0 kB") && cut.contains("> output.json"), "{cut}");
        let short = r#"{"hash": "d41d8cd98f00b204e9800998ecf8427e", "open": "no end"#;
        assert_eq!(summary(short).trim_end_matches('"'), short, "nothing to summarize");
    }
}
