//! A sliding window: how many events there were in the last ten seconds, to the millisecond.

use std::collections::VecDeque;

use longshore_planted::{Bug, planted};

/// The span over which rates are counted.
pub(crate) const WINDOW_MS: u64 = 10_000;

/// The events of the last ten seconds. Time is an argument, in milliseconds from any fixed point.
///
/// Events of one millisecond share an entry, so it holds at most 10 000 of them at any rate.
#[derive(Debug, Default)]
pub(crate) struct SlidingWindow {
    /// Millisecond and number of events, ascending.
    events: VecDeque<(u64, u32)>,
    total: u32,
}

/// Whether one more event fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowDecision {
    /// It does, and is counted; so many more fit at this moment.
    Admitted { left: u32 },
    /// It does not, and is not counted; one will fit after this time.
    Refused { wait_ms: u64 },
}

impl SlidingWindow {
    /// Counts an event at `now_ms` if there are fewer than `limit` in the ten seconds up to it.
    pub(crate) fn admit(&mut self, now_ms: u64, limit: u32) -> WindowDecision {
        self.forget(now_ms);
        if self.total >= limit + u32::from(planted(Bug::RateOneTooMany)) {
            return WindowDecision::Refused { wait_ms: self.wait_ms(now_ms, limit) };
        }
        self.total += 1;
        match self.events.back_mut() {
            // A clock that stepped back counts on at its latest millisecond.
            Some((at, count)) if *at >= now_ms => *count += 1,
            _ => self.events.push_back((now_ms, 1)),
        }
        WindowDecision::Admitted { left: limit.saturating_sub(self.total) }
    }

    /// How long until the oldest event leaves; 0 if there is none.
    pub(crate) fn oldest_leaves_ms(&self, now_ms: u64) -> u64 {
        self.events.front().map_or(0, |(at, _)| (at + WINDOW_MS).saturating_sub(now_ms))
    }

    /// Whether nothing is counted any more.
    pub(crate) fn is_idle(&mut self, now_ms: u64) -> bool {
        self.forget(now_ms);
        self.events.is_empty()
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some((at, count)) = self.events.front().copied() {
            if at + WINDOW_MS > now_ms {
                return;
            }
            self.total -= count;
            self.events.pop_front();
        }
    }

    /// When enough events will have left. The limit can have sunk since they were admitted.
    fn wait_ms(&self, now_ms: u64, limit: u32) -> u64 {
        let mut left = self.total;
        for (at, count) in &self.events {
            left -= count;
            if left < limit {
                return (at + WINDOW_MS).saturating_sub(now_ms);
            }
        }
        WINDOW_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_the_limit_in_any_ten_seconds() {
        let mut window = SlidingWindow::default();
        assert_eq!(window.admit(0, 2), WindowDecision::Admitted { left: 1 });
        assert_eq!(window.admit(9_000, 2), WindowDecision::Admitted { left: 0 });
        assert_eq!(window.admit(9_999, 2), WindowDecision::Refused { wait_ms: 1 });
        assert_eq!(window.admit(10_000, 2), WindowDecision::Admitted { left: 0 });
        // The one of 9 000 still counts: no ten seconds hold three.
        assert_eq!(window.admit(18_999, 2), WindowDecision::Refused { wait_ms: 1 });
        assert_eq!(window.admit(19_000, 2), WindowDecision::Admitted { left: 0 });
    }

    #[test]
    fn never_more_than_the_limit_in_any_span() {
        let mut window = SlidingWindow::default();
        let mut admitted = Vec::new();
        let mut seed = 7_u64;
        let mut now = 0;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += seed >> 57;
            if matches!(window.admit(now, 50), WindowDecision::Admitted { .. }) {
                admitted.push(now);
            }
        }
        assert!(admitted.len() > 1_000);
        assert!(admitted.windows(51).all(|span| span[50] - span[0] >= WINDOW_MS));
    }

    #[test]
    fn a_sunken_limit_says_when_it_is_met_again() {
        let mut window = SlidingWindow::default();
        for at in [0, 1_000, 2_000] {
            window.admit(at, 10);
        }
        assert_eq!(window.admit(3_000, 1), WindowDecision::Refused { wait_ms: 9_000 });
    }

    #[test]
    fn is_idle_once_everything_left() {
        let mut window = SlidingWindow::default();
        window.admit(5, 10);
        window.admit(5, 10);
        assert!(!window.is_idle(10_004));
        assert!(window.is_idle(10_005));
    }

    #[test]
    fn a_clock_that_steps_back_does_no_harm() {
        let mut window = SlidingWindow::default();
        window.admit(20_000, 2);
        assert_eq!(window.admit(5_000, 2), WindowDecision::Admitted { left: 0 });
        assert!(matches!(window.admit(5_001, 2), WindowDecision::Refused { .. }));
    }
}
