//! Times of events, and bounds of the server's clock.

use crate::observation::Moment;

/// Time of an observation: its place in the order of all events, and both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventTime {
    /// Number of the event.
    pub seq: u64,
    /// Milliseconds since the start of the world.
    pub ms: u64,
    /// The wall clock in ms since 1970.
    pub wall_ms: u64,
}

/// Range of events in which an effect happened; `None` as the end if it may still happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub from: EventTime,
    pub until: Option<EventTime>,
}

impl Span {
    /// Whether the effect may have happened at `then` or before.
    pub fn may_precede(&self, then: EventTime) -> bool {
        self.from.seq <= then.seq
    }

    /// Whether the effect may have happened at `then` or after.
    pub fn may_follow(&self, then: EventTime) -> bool {
        self.until.is_none_or(|until| until.seq >= then.seq)
    }
}

/// The wall clock of the server's computer. The server's own clock never shows less than the wall clock. When the
/// wall clock is set back, the server's clock continues at its own pace while the process lives.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    /// From this millisecond on, the wall clock was ahead by this number of ms.
    offsets: Vec<(u64, u64)>,
    /// Start times of server processes, in ms.
    processes: Vec<u64>,
}

impl WallClock {
    /// Records the clock's value. Returns whether the clock jumped.
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

    /// A server process starts.
    pub fn restart(&mut self, at: Moment) {
        self.processes.push(at.ms);
    }

    /// The largest possible value of the server's clock between the events.
    pub fn most(&self, from: EventTime, until: EventTime) -> u64 {
        let first = self.processes.partition_point(|began| *began <= from.ms).saturating_sub(1);
        let processes = self.processes.iter().skip(first);
        let ends = processes.clone().skip(1).copied().chain([until.ms]);
        let shown =
            processes.zip(ends).filter_map(|(began, end)| self.most_of_process(*began, end.min(until.ms)));
        shown.max().map_or(until.wall_ms, |most| most.max(until.wall_ms))
    }

    /// The largest possible value of the clock of a process that lived between these times.
    fn most_of_process(&self, began_ms: u64, end_ms: u64) -> Option<u64> {
        let first = self.offsets.partition_point(|(start, _)| *start <= began_ms).saturating_sub(1);
        let met = self.offsets.iter().skip(first).take_while(|(start, _)| *start <= end_ms);
        met.map(|(_, offset)| offset.wrapping_add(end_ms)).max().filter(|_| began_ms <= end_ms)
    }

    /// The smallest possible value of the server's clock between the events.
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
