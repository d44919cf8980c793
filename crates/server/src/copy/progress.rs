//! Progress on standard error: a moving line on a terminal, else a line every few seconds.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use longshore_cli::{count, size};

const LINES: Duration = Duration::from_secs(5);

/// How much of a copy is done.
pub(super) struct CopyProgress {
    what: &'static str,
    jobs: u64,
    bytes: u64,
    /// Hidden if standard error is no terminal.
    line: ProgressBar,
    shown_at: Instant,
}

impl CopyProgress {
    /// `what` is what is done to jobs, such as `copied`.
    pub(super) fn new(what: &'static str) -> Self {
        let style = ProgressStyle::with_template("{msg}");
        let line =
            ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { what, jobs: 0, bytes: 0, line, shown_at: Instant::now() }
    }

    pub(super) fn add(&mut self, jobs: u64, bytes: u64) {
        self.jobs += jobs;
        self.bytes += bytes;
        if !self.line.is_hidden() {
            self.line.set_message(self.text());
        } else if self.shown_at.elapsed() >= LINES {
            self.shown_at = Instant::now();
            self.show();
        }
    }

    fn text(&self) -> String {
        format!("{}: {}, {}", self.what, count(self.jobs, "job"), size(self.bytes))
    }

    fn show(&self) {
        // A failed write to standard error cannot be reported.
        let _ = writeln!(io::stderr(), "{}", self.text());
    }

    /// Removes the moving line, or prints the last one.
    pub(super) fn end(&mut self) {
        if self.line.is_hidden() {
            self.show();
        }
        self.line.finish_and_clear();
    }
}
