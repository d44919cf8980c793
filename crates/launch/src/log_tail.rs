//! The last lines of a worker's log, as people read them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use crate::log::numbered;

/// The largest tail, in lines and bytes.
const TAIL_BYTES_MAX: usize = 4 * 1024;
const TAIL_LINES_MAX: usize = 20;
/// What is read for it, in bytes: lines of the SDK become shorter.
const READ_BYTES_MAX: usize = 16 * 1024;

/// A line that the official SDK prints.
#[derive(Deserialize)]
struct SdkLine {
    message: String,
    level: String,
    #[serde(rename = "requestId")]
    _job: Option<String>,
}

/// The last lines of a log, at most 20 lines and 4 KiB; empty without a log. Of the SDK's lines, which are JSON, the level and
/// the message are left; those for debugging are left out. A line that is repeated is there once, with the number.
pub fn tail(path: &Path) -> String {
    let mut bytes = last_bytes(path, READ_BYTES_MAX);
    if bytes.len() < READ_BYTES_MAX {
        let mut before = last_bytes(&numbered(path, 1), READ_BYTES_MAX - bytes.len());
        before.append(&mut bytes);
        bytes = before;
    }
    let is_cut = bytes.len() == READ_BYTES_MAX;
    // A character that is cut at the beginning would become a longer replacement character.
    let cut = bytes.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    let text = String::from_utf8_lossy(&bytes[cut..]);
    let whole = match text.split_once('\n') {
        Some((_, rest)) if is_cut && !rest.is_empty() => rest,
        _ => &text,
    };
    let lines = folded(whole.lines().filter_map(readable));
    let text = lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n");
    // Bytes that are no text grow when they become replacement characters.
    text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX))..].to_owned()
}

/// A line as people read it; `None` for one of the SDK that is for debugging it.
fn readable(line: &str) -> Option<String> {
    let Some(sdk) = line.starts_with('{').then(|| serde_json::from_str::<SdkLine>(line).ok()).flatten()
    else {
        return Some(line.to_owned());
    };
    (sdk.level != "DEBUG").then(|| format!("{:<5} {}", sdk.level, sdk.message))
}

/// The lines, each run of equal ones as one.
fn folded(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut runs: Vec<(String, u32)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((last, times)) if *last == line => *times += 1,
            _ => runs.push((line, 1)),
        }
    }
    let shown = runs.into_iter().map(|(line, times)| match times {
        1 => line,
        _ => format!("{line} ({times} times)"),
    });
    shown.collect()
}

fn last_bytes(path: &Path, most: usize) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let skip = file.metadata()?.len().saturating_sub(most as u64);
        file.seek(SeekFrom::Start(skip))?;
        let mut bytes = Vec::with_capacity(most);
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // An unreadable file counts as missing.
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_tail_has_at_most_twenty_lines_and_four_kib_of_valid_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(tail(&path), "");
        fs::write(&path, (0..50).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n")).unwrap();
        let lines = tail(&path);
        assert_eq!(
            (lines.lines().count(), lines.lines().next(), lines.lines().last()),
            (20, Some("line 30"), Some("line 49"))
        );
        fs::write(&path, "é".repeat(5_000) + "x").unwrap();
        let text = tail(&path);
        assert!(text.len() <= TAIL_BYTES_MAX && text.starts_with('é'), "{text}");
        fs::write(&path, b"bad \xff byte\n").unwrap();
        assert_eq!(tail(&path), "bad \u{fffd} byte");
        fs::write(&path, [0xff; 5_000]).unwrap();
        assert!((TAIL_BYTES_MAX - 3..=TAIL_BYTES_MAX).contains(&tail(&path).len()));
    }

    #[test]
    fn lines_of_the_sdk_are_read_by_people_and_repeated_ones_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let sdk = |level: &str, text: &str| {
            format!("{{\"requestId\": null, \"message\": \"{text}\", \"level\": \"{level}\"}}\n")
        };
        let lines = [
            sdk("INFO", "Started."),
            sdk("DEBUG", "JobScaler.status").repeat(50),
            sdk("ERROR", "no \\\"model\\\"").repeat(3),
            "{\"message\": \"a handler's own line\"}\n".to_owned(),
            "Traceback\n".to_owned(),
        ];
        fs::write(&path, lines.concat()).unwrap();
        assert_eq!(
            tail(&path),
            "INFO  Started.\nERROR no \"model\" (3 times)\n{\"message\": \"a handler's own line\"}\nTraceback"
        );
    }

    #[test]
    fn a_line_that_is_cut_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "x".repeat(READ_BYTES_MAX) + "\nlast\n").unwrap();
        assert_eq!(tail(&path), "last");
    }
}
