//! Points in time, and what the server's clock may have shown.

use crate::observation::Moment;

/// When something was seen: its place in the order of all events, and both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventTime {
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
    pub from: EventTime,
    pub until: Option<EventTime>,
}

impl Span {
    /// Whether it may have happened at `then` or before.
    pub fn may_precede(&self, then: EventTime) -> bool {
        self.from.seq <= then.seq
    }

    /// Whether it may have happened at `then` or after.
    pub fn may_follow(&self, then: EventTime) -> bool {
        self.until.is_none_or(|until| until.seq >= then.seq)
    }
}

/// What the wall clock of the server's machine did. The server's own clock never shows less than the wall clock, and
/// where that one is set back it goes on at its own pace, for as long as the process lives.
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
    pub fn most(&self, from: EventTime, until: EventTime) -> u64 {
        let first = self.processes.partition_point(|began| *began <= from.ms).saturating_sub(1);
        let processes = self.processes.iter().skip(first);
        let ends = processes.clone().skip(1).copied().chain([until.ms]);
        let shown =
            processes.zip(ends).filter_map(|(began, end)| self.most_of_process(*began, end.min(until.ms)));
        shown.max().map_or(until.wall_ms, |most| most.max(until.wall_ms))
    }

    /// The most that a process can have shown that lives between these milliseconds.
    fn most_of_process(&self, began_ms: u64, end_ms: u64) -> Option<u64> {
        let first = self.offsets.partition_point(|(start, _)| *start <= began_ms).saturating_sub(1);
        let met = self.offsets.iter().skip(first).take_while(|(start, _)| *start <= end_ms);
        met.map(|(_, offset)| offset.wrapping_add(end_ms)).max().filter(|_| began_ms <= end_ms)
    }

    /// The least that the server's clock can have shown between `from` and `until`.
    pub fn least(&self, from: EventTime, until: EventTime) -> u64 {
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
