//! How far it is, on standard error: a moving line on a terminal, elsewhere a line now and then.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const MOVING: Duration = Duration::from_millis(200);
const LINES: Duration = Duration::from_secs(10);
const MILLION: f64 = 1e6;

/// See the module.
pub(super) struct Progress {
    what: &'static str,
    done: u64,
    /// 0 where nobody knows.
    total: u64,
    moves: bool,
    shown_at: Instant,
    shown: bool,
}

impl Progress {
    pub(super) fn new(what: &'static str, total: u64) -> Self {
        let moves = io::stderr().is_terminal();
        Self { what, done: 0, total, moves, shown_at: Instant::now(), shown: false }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let pause = if self.moves { MOVING } else { LINES };
        if self.shown_at.elapsed() >= pause {
            self.shown_at = Instant::now();
            self.show();
        }
    }

    fn show(&mut self) {
        self.shown = true;
        let done = self.done as f64 / MILLION;
        let text = match self.total {
            0 => format!("{} {done:.0} MB", self.what),
            // It may have grown meanwhile.
            total => {
                let total = total.max(self.done) as f64 / MILLION;
                format!("{} {done:.0} of {total:.0} MB", self.what)
            }
        };
        // Nowhere to report to when standard error is gone.
        let _ = if self.moves {
            write!(io::stderr(), "\r\x1b[2K{text}")
        } else {
            writeln!(io::stderr(), "{text}")
        };
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        if self.moves && self.shown {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}
