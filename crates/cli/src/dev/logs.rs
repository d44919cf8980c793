//! Prints the log lines of workers as they are written.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use super::server_host::RunningServer;
use crate::screen::Screen;
use crate::traceback::readable;

const PERIOD: Duration = Duration::from_millis(150);
/// Most bytes that are read of one log per pass.
const READ_BYTES_MAX: u64 = 256 * 1024;
/// Characters of a worker's id that are shown.
const WORKER_CHARS: usize = 8;

/// Follows the logs of all workers.
pub(crate) struct Logs {
    tails: BTreeMap<String, LogCursor>,
}

/// How far one log has been read.
#[derive(Default)]
struct LogCursor {
    offset: u64,
    /// The start of a line whose end is not written yet.
    rest: Vec<u8>,
}

impl Logs {
    /// Starts at the current ends of the logs, so that lines of earlier runs are not shown.
    pub(crate) fn from_now(server: &dyn RunningServer) -> Self {
        let ends = server.worker_logs().into_iter().map(|log| {
            let offset = std::fs::metadata(&log.path).map_or(0, |facts| facts.len());
            (log.worker, LogCursor { offset, rest: Vec::new() })
        });
        Self { tails: ends.collect() }
    }

    /// Prints new lines while the future is polled.
    pub(crate) async fn follow(&mut self, server: &dyn RunningServer, screen: &Screen) -> Infallible {
        loop {
            self.show_news(server, screen);
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Prints the lines that were added since the last call.
    pub(crate) fn show_news(&mut self, server: &dyn RunningServer, screen: &Screen) {
        for log in server.worker_logs() {
            let shown: String = log.worker.chars().take(WORKER_CHARS).collect();
            let tail = self.tails.entry(log.worker).or_default();
            for line in tail.news(&log.path) {
                for line in record(&line).lines() {
                    screen.line(&format!("  {} {line}", screen.dim(&format!("{shown} │"))));
                }
            }
        }
    }
}

impl LogCursor {
    /// Returns the complete lines that were added since the last call.
    fn news(&mut self, path: &Path) -> Vec<String> {
        let Ok(mut file) = File::open(path) else { return Vec::new() };
        let length = file.metadata().map_or(0, |facts| facts.len());
        if length < self.offset {
            // The log was rotated: the new file is read from its start.
            self.offset = 0;
        }
        if length == self.offset || file.seek(SeekFrom::Start(self.offset)).is_err() {
            return Vec::new();
        }
        let before = self.rest.len();
        let read = file.take(READ_BYTES_MAX).read_to_end(&mut self.rest);
        self.offset += read.map_or(self.rest.len() - before, |bytes| bytes) as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect()
    }
}

/// Shortens a JSON log line of the SDK to level, message and job id.
pub(crate) fn record(line: &str) -> String {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Record {
        message: String,
        level: String,
        #[serde(default)]
        request_id: Option<String>,
    }
    match serde_json::from_str::<Record>(line) {
        Ok(record) => {
            let job = record.request_id.map(|id| format!(" [{id}]")).unwrap_or_default();
            format!("{:<5} {}{job}", record.level, readable(&record.message))
        }
        Err(_) => readable(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_whole_new_lines_are_shown_and_a_rotated_log_starts_over() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = LogCursor::default();
        let write = |text: &str| file.as_file().write_all(text.as_bytes()).unwrap();
        write("one\ntw");
        assert_eq!(tail.news(file.path()), ["one"]);
        write("o\n");
        assert_eq!(tail.news(file.path()), ["two"]);
        assert!(tail.news(file.path()).is_empty());
        std::fs::write(file.path(), "new\n").unwrap();
        assert_eq!(tail.news(file.path()), ["new"]);
    }

    #[test]
    fn the_sdks_log_records_are_readable() {
        let line = r#"{"requestId": "abc", "message": "Started.", "level": "INFO"}"#;
        assert_eq!(record(line), "INFO  Started. [abc]");
        assert_eq!(record("print output "), "print output");
    }
}
