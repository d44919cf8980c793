//! Sliding-window rate limit: counts events of the last 10 s to the millisecond. Pure: time is an argument.

use std::collections::VecDeque;

use longshore_planted::{Bug, planted};

/// The length of the window, in ms.
pub(crate) const WINDOW_MS: u64 = 10_000;

/// The events of the last 10 s. Times are in ms from any fixed point.
///
/// Events of one millisecond share an entry, so there are at most 10 000 entries.
#[derive(Debug, Default)]
pub(crate) struct SlidingWindow {
    /// Pairs of millisecond and number of events, ascending.
    events: VecDeque<(u64, u32)>,
    total: u32,
}

/// Whether one more event fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowDecision {
    /// The event is counted; `left` further ones fit now.
    Admitted { left: u32 },
    /// The event is not counted; one fits after `wait_ms`.
    Refused { wait_ms: u64 },
}

impl SlidingWindow {
    /// Counts an event at `now_ms` if fewer than `limit` are in the 10 s before it.
    pub(crate) fn admit(&mut self, now_ms: u64, limit: u32) -> WindowDecision {
        self.forget(now_ms);
        if self.total >= limit + u32::from(planted(Bug::RateOneTooMany)) {
            return WindowDecision::Refused { wait_ms: self.wait_ms(now_ms, limit) };
        }
        self.total += 1;
        match self.events.back_mut() {
            // If the clock steps back, the latest millisecond is used.
            Some((at, count)) if *at >= now_ms => *count += 1,
            _ => self.events.push_back((now_ms, 1)),
        }
        WindowDecision::Admitted { left: limit.saturating_sub(self.total) }
    }

    /// Time until the oldest event leaves the window, in ms; 0 without events.
    pub(crate) fn oldest_leaves_ms(&self, now_ms: u64) -> u64 {
        self.events.front().map_or(0, |(at, _)| (at + WINDOW_MS).saturating_sub(now_ms))
    }

    /// Whether no event is in the window.
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

    /// When enough events will have left. The limit can be lower than when they were admitted.
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
        // The event at 9 000 still counts: no 10 s hold three.
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
    fn a_lowered_limit_reports_when_it_is_met_again() {
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
