//! What commands show of their work: steps with a moving line while they run, worker logs, and the end of it.
//!
//! Everything goes to standard error except the sample's result, so that the result can be piped.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(100);
/// Without a terminal, a step is announced only when it takes longer than this.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);
/// The moving line must not wrap, or it could not be erased.
const COLUMNS: usize = 79;

/// Where `dev` writes. Clones write to the same place.
#[derive(Clone)]
pub(crate) struct Screen {
    live: Arc<Mutex<Option<Live>>>,
    /// A terminal that understands colours and a moving line.
    fancy: bool,
}

/// The step that is running.
struct Live {
    text: String,
    detail: String,
    since: Instant,
    frame: usize,
    announced: bool,
    drawn: bool,
}

/// A running step. It ends with [`Step::done`] or [`Step::failed`], or silently when it is dropped.
pub(crate) struct Step {
    screen: Screen,
    since: Instant,
}

impl Screen {
    /// `plain` turns colours and movement off. Must be called inside a tokio runtime.
    pub(crate) fn new(plain: bool) -> Self {
        let dumb = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let fancy = !plain && !dumb && std::io::stderr().is_terminal();
        let screen = Self { live: Arc::new(Mutex::new(None)), fancy };
        tokio::spawn(animate(Arc::downgrade(&screen.live), fancy));
        screen
    }

    /// Begins a step.
    pub(crate) fn step(&self, text: impl Into<String>) -> Step {
        let since = Instant::now();
        let live = Live {
            text: text.into(),
            detail: String::new(),
            since,
            frame: 0,
            announced: false,
            drawn: false,
        };
        *self.lock() = Some(live);
        Step { screen: self.clone(), since }
    }

    /// Writes a line above the moving one.
    pub(crate) fn line(&self, text: &str) {
        let mut live = self.lock();
        let mut out = std::io::stderr().lock();
        // Nowhere to report to when standard error is gone.
        let _ = match live.as_mut().filter(|live| live.drawn) {
            Some(live) => {
                live.drawn = false;
                writeln!(out, "\r\x1b[2K{text}")
            }
            None => writeln!(out, "{text}"),
        };
    }

    /// Something that is as it should be.
    pub(crate) fn good(&self, text: &str) {
        self.line(&format!("  {} {text}", self.green("✓")));
    }

    /// Something that should be known.
    pub(crate) fn note(&self, text: &str) {
        self.line(&format!("  {} {text}", self.yellow("!")));
    }

    /// Something that went wrong.
    pub(crate) fn bad(&self, text: &str) {
        self.line(&format!("  {} {text}", self.red("✗")));
    }

    /// The sample's result: the one thing on standard output.
    pub(crate) fn result(&self, text: &str) {
        let mut live = self.lock();
        if let Some(live) = live.as_mut().filter(|live| live.drawn) {
            live.drawn = false;
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
        let _ = writeln!(std::io::stdout(), "{text}");
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

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    /// Says how far it is.
    pub(crate) fn detail(&self, text: impl Into<String>) {
        if let Some(live) = self.screen.lock().as_mut() {
            live.detail = text.into();
        }
    }

    /// How long it has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends well.
    pub(crate) fn done(self, text: &str) {
        let screen = self.screen.clone();
        drop(self);
        screen.good(text);
    }

    /// Ends badly.
    pub(crate) fn failed(self, text: &str) {
        let screen = self.screen.clone();
        drop(self);
        screen.bad(text);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.screen.lock().take().is_some_and(|live| live.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// Keeps the moving line moving for as long as its screen exists.
async fn animate(live: Weak<Mutex<Option<Live>>>, fancy: bool) {
    let mut ticks = tokio::time::interval(FRAME);
    loop {
        ticks.tick().await;
        let Some(live) = live.upgrade() else { return };
        let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = live.as_mut() {
            if fancy {
                live.draw();
            } else if !live.announced && live.since.elapsed() >= ANNOUNCE_AFTER {
                live.announced = true;
                let _ = writeln!(std::io::stderr(), "  … {}", live.text);
            }
        }
    }
}

impl Live {
    fn draw(&mut self) {
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        let mut text = self.text.clone();
        let seconds = self.since.elapsed().as_secs();
        if seconds > 0 {
            let _ = write!(text, " · {seconds} s");
        }
        if !self.detail.is_empty() {
            let _ = write!(text, " · {}", self.detail);
        }
        let text: String = text.chars().filter(|c| !c.is_control()).take(COLUMNS - 4).collect();
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r\x1b[2K  \x1b[36m{}\x1b[0m {text}", FRAMES[self.frame]);
        let _ = out.flush();
    }
}

/// A span as people say it: `4 ms`, `2.3 s`, `1 min 12 s`.
pub(crate) fn span(span: Duration) -> String {
    match span.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", span.as_secs_f64()),
        _ => format!("{} min {} s", span.as_secs() / 60, span.as_secs() % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        let said = |ms| span(Duration::from_millis(ms));
        assert_eq!([said(4), said(2_340), said(72_000)], ["4 ms", "2.3 s", "1 min 12 s"]);
    }
}
