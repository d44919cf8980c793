//! Progress on standard error: a moving line on a terminal, else a line every few seconds.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use longshore_cli::size;

const LINES: Duration = Duration::from_secs(10);

/// The progress of one backup or restore.
pub(super) struct Progress {
    what: &'static str,
    /// Hidden if standard error is no terminal.
    line: ProgressBar,
    shown_at: Instant,
}

impl Progress {
    /// `total` is in bytes; 0 if it is unknown.
    pub(super) fn new(what: &'static str, total: u64) -> Self {
        let (line, place) = match total {
            0 => (ProgressBar::no_length(), "{decimal_bytes}"),
            total => (ProgressBar::new(total), "{decimal_bytes} of {decimal_total_bytes}"),
        };
        let style = ProgressStyle::with_template(&format!("{what} {place}"));
        let line = line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { what, line, shown_at: Instant::now() }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.line.inc(bytes);
        if self.line.is_hidden() && self.shown_at.elapsed() >= LINES {
            self.shown_at = Instant::now();
            self.show();
        }
    }

    fn show(&self) {
        let (what, done) = (self.what, self.line.position());
        let of = self.line.length().map_or_else(String::new, |total| {
            // The data may have grown since `total` was computed.
            format!(" of {}", size(total.max(done)))
        });
        // A failed write to standard error cannot be reported.
        let _ = writeln!(io::stderr(), "{what} {}{of}", size(done));
    }

    /// Removes the moving line.
    pub(super) fn end(&mut self) {
        self.line.finish_and_clear();
    }
}
