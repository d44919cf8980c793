//! Progress of commands on the terminal: steps with a moving line, worker logs and the result.
//!
//! Everything goes to standard error, except the sample's result. So the result can be piped.

use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::task::AbortHandle;

const FRAME: Duration = Duration::from_millis(100);
/// Without a terminal, a step is announced only after this time.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);
/// Spinner, name, elapsed time and detail of a step. A detail that is too long for the terminal is cut.
const TEMPLATE: &str = "  {spinner:.cyan} {prefix}{seconds}{wide_msg}";

/// The terminal of a command. Clones write to the same terminal.
#[derive(Clone)]
pub(crate) struct Screen {
    /// The line of the running step; hidden if the terminal cannot redraw lines.
    lines: MultiProgress,
    /// Whether the terminal supports colours and redrawn lines.
    fancy: bool,
    /// Whether standard output ends inside a line, which [`Screen::part`] began.
    is_line_open: Arc<AtomicBool>,
}

/// A running step. It ends with [`Step::done`] or [`Step::failed`], or silently when it is dropped.
pub(crate) struct Step {
    screen: Screen,
    since: Instant,
    line: ProgressBar,
    /// Task that announces the step if no line moves.
    announcement: Option<AbortHandle>,
}

impl Screen {
    /// `plain` disables colours and moving lines.
    pub(crate) fn new(plain: bool) -> Self {
        let dumb = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let fancy = !plain && !dumb && std::io::stderr().is_terminal();
        let target = if fancy { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let lines = MultiProgress::with_draw_target(target);
        Self { lines, fancy, is_line_open: Arc::default() }
    }

    /// Starts a step. Must be called inside a tokio runtime.
    pub(crate) fn step(&self, text: impl Into<String>) -> Step {
        let text = text.into();
        let line = self.lines.add(ProgressBar::new_spinner().with_style(style()));
        let announcement = if self.fancy {
            line.set_prefix(printable(&text));
            line.enable_steady_tick(FRAME);
            None
        } else {
            let announce = async move {
                tokio::time::sleep(ANNOUNCE_AFTER).await;
                let _ = writeln!(std::io::stderr(), "  … {text}");
            };
            Some(tokio::spawn(announce).abort_handle())
        };
        Step { screen: self.clone(), since: Instant::now(), line, announcement }
    }

    /// Writes a line above the moving one.
    pub(crate) fn line(&self, text: &str) {
        self.end_part();
        // A failed write to standard error cannot be reported.
        let _ = self.lines.suspend(|| writeln!(std::io::stderr(), "{text}"));
    }

    /// Writes a line about a success.
    pub(crate) fn good(&self, text: &str) {
        self.line(&format!("  {} {text}", self.green("✓")));
    }

    /// Writes a line with a notice.
    pub(crate) fn note(&self, text: &str) {
        self.line(&format!("  {} {text}", self.yellow("!")));
    }

    /// Writes a line about a failure.
    pub(crate) fn bad(&self, text: &str) {
        self.line(&format!("  {} {text}", self.red("✗")));
    }

    /// Writes text to standard output, without a line break after it. The moving line is away while the text ends inside a
    /// line: it would overwrite that line.
    pub(crate) fn part(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let is_open = !text.ends_with('\n');
        let was_open = self.is_line_open.swap(is_open, Ordering::Relaxed);
        if is_open && !was_open {
            self.hide_moving_line();
        }
        let written = self.lines.suspend(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        });
        if was_open && !is_open {
            self.show_moving_line();
        }
        written
    }

    /// Ends the line that [`Screen::part`] began, if one is open.
    pub(crate) fn end_part(&self) {
        if self.is_line_open.load(Ordering::Relaxed) {
            // The text before it was written, or its error was reported.
            let _ = self.part("\n");
        }
    }

    fn hide_moving_line(&self) {
        // A failed write to standard error cannot be reported.
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
        if self.fancy {
            // The timer may have drawn the line again in between.
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    fn show_moving_line(&self) {
        if self.fancy {
            self.lines.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Writes the sample's result, the only text on standard output.
    pub(crate) fn result(&self, text: &str) {
        self.end_part();
        let _ = self.lines.suspend(|| writeln!(std::io::stdout(), "{text}"));
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn green(&self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn red(&self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn yellow(&self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(&self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.fancy { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Step {
    /// Sets the progress text of the step.
    pub(crate) fn detail(&self, text: impl Into<String>) {
        self.line.set_message(format!(" · {}", printable(&text.into())));
    }

    /// Time since the start of the step.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends the step with a success.
    pub(crate) fn done(self, text: &str) {
        let screen = self.screen.clone();
        drop(self);
        screen.good(text);
    }

    /// Ends the step with a failure.
    pub(crate) fn failed(self, text: &str) {
        let screen = self.screen.clone();
        drop(self);
        screen.bad(text);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.line.finish_and_clear();
        if let Some(announcement) = &self.announcement {
            announcement.abort();
        }
    }
}

fn style() -> ProgressStyle {
    let seconds = |state: &ProgressState, text: &mut dyn Write| {
        let seconds = state.elapsed().as_secs();
        if seconds > 0 {
            let _ = write!(text, " · {seconds} s");
        }
    };
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("seconds", seconds)
}

/// Removes control characters: a detail may be another program's output.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Formats a duration: `4 ms`, `2.3 s`, `1 min 12 s`, `10 min`, `2 h 5 min`, `7 days`.
pub(crate) fn span(span: Duration) -> String {
    match span.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", span.as_secs_f64()),
        _ => match span.as_secs() {
            s @ 0..3_600 => pair((s / 60, "min"), (s % 60, "s")),
            s @ 3_600..172_800 => pair((s / 3_600, "h"), (s / 60 % 60, "min")),
            s => pair((s / 86_400, "days"), (s / 3_600 % 24, "h")),
        },
    }
}

/// `1 min 12 s`; the smaller unit is left out if it is 0.
fn pair((large, unit): (u64, &str), (small, smaller): (u64, &str)) -> String {
    if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {smaller}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        let said = |ms| span(Duration::from_millis(ms));
        assert_eq!([said(4), said(2_340), said(72_000)], ["4 ms", "2.3 s", "1 min 12 s"]);
        let long = [said(600_000), said(7_500_000), said(172_800_000), said(180_000_000)];
        assert_eq!(long, ["10 min", "2 h 5 min", "2 days", "2 days 2 h"]);
    }
}
