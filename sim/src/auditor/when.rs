//! Points in time, and what the server's clock may have shown.

use crate::seen::Moment;

/// When something was seen: its place in the order of all events, and both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct When {
    /// Counts events.
    pub seq: u64,
    /// Milliseconds since the world began.
    pub ms: u64,
    /// What the wall clock showed.
    pub wall_ms: u64,
}

/// An effect happened at some time from here on, and not after there; none: perhaps it is still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: When,
    pub until: Option<When>,
}

impl Span {
    /// Whether it may have happened at `then` or before.
    pub fn may_precede(&self, then: When) -> bool {
        self.from.seq <= then.seq
    }

    /// Whether it may have happened at `then` or after.
    pub fn may_follow(&self, then: When) -> bool {
        self.until.is_none_or(|until| until.seq >= then.seq)
    }
}

/// What the wall clock of the server's machine did. The server's own clock never shows less than the wall
/// clock, and never goes back while the process lives.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    /// From this millisecond on, the wall clock was ahead by so much.
    offsets: Vec<(u64, u64)>,
    /// When server processes began.
    processes: Vec<u64>,
}

impl WallClock {
    /// Notes what the clock shows. Answers whether it jumped.
    pub fn note(&mut self, at: Moment) -> bool {
        let offset = at.wall_ms.wrapping_sub(at.ms);
        match self.offsets.last() {
            Some((_, known)) if *known == offset => false,
            last => {
                let jumped = last.is_some();
                self.offsets.push((at.ms, offset));
                jumped
            }
        }
    }

    /// A server process begins.
    pub fn restart(&mut self, at: Moment) {
        self.processes.push(at.ms);
    }

    /// The most that the server's clock can have shown between `from` and `until`.
    pub fn most(&self, from: When, until: When) -> u64 {
        let process = self.processes.partition_point(|began| *began <= from.ms).checked_sub(1);
        let since = process.map_or(0, |process| self.processes[process]);
        let mut most = until.wall_ms;
        let mut end = until.ms;
        for (start, offset) in self.offsets.iter().rev() {
            if *start <= until.ms {
                most = most.max(offset.wrapping_add(end));
                end = *start;
            }
            if *start <= since {
                break;
            }
        }
        most
    }

    /// The least that the server's clock can have shown between `from` and `until`.
    pub fn least(&self, from: When, until: When) -> u64 {
        let mut least = from.wall_ms.min(until.wall_ms);
        for (start, offset) in self.offsets.iter().rev() {
            if *start <= from.ms {
                break;
            }
            if *start <= until.ms {
                least = least.min(offset.wrapping_add(*start));
            }
        }
        least
    }
}
