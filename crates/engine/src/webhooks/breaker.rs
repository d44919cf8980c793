//! Leaves a receiver in peace that does not answer.
//!
//! ```text
//! closed ── many calls in a row without an answer ──► open ── pause over ──► one call tries
//!    ▲                                                 ▲                         │
//!    └──────────────── any answer ─────────────────────┼─────── an answer ◄──────┤
//!                                                      └─ none: a longer pause ◄─┘
//! ```
//!
//! Any answer closes it, also one that is no 200: who answers holds nobody up. What waits meanwhile keeps its
//! attempts.

use std::time::Duration;

use tokio::time::Instant;

/// How much longer each pause is than the one before.
const PAUSE_GROWTH: u32 = 2;

/// When a breaker opens, and for how long.
#[derive(Clone, Debug)]
pub struct BreakerSettings {
    /// So many calls in a row without an answer open it; 0: it never opens.
    pub failures_max: u32,
    /// How long it stays open before one call tries.
    pub pause: Duration,
    /// The same after many tries that failed.
    pub pause_max: Duration,
    /// A call that has waited for so long is given up.
    pub patience: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures_max: 10,
            pause: Duration::from_secs(10),
            pause_max: Duration::from_mins(1),
            patience: Duration::from_hours(24),
        }
    }
}

/// What is known of one receiver.
#[derive(Default)]
pub(super) struct Breaker {
    /// Calls in a row without an answer.
    failures: u32,
    open: Option<Open>,
}

struct Open {
    until: Instant,
    pause: Duration,
    /// A call is trying.
    is_tried: bool,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerState {
    Closed,
    /// Another call is trying; its end decides.
    Probing,
    /// Not before this time.
    OpenUntil(Instant),
}

impl Breaker {
    /// Whether a call may be made now. The first one after a pause is the one that tries.
    pub fn admit(&self, now: Instant) -> BreakerState {
        match &self.open {
            Some(open) if open.is_tried => BreakerState::Probing,
            Some(open) if now < open.until => BreakerState::OpenUntil(open.until),
            _ => BreakerState::Closed,
        }
    }

    /// A call that was admitted is being made.
    pub fn begin(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_tried = true;
        }
    }

    /// A call ended without having been made to its end.
    pub fn abandon(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_tried = false;
        }
    }

    /// The receiver answered. Says whether that closed the breaker.
    pub fn answered(&mut self) -> bool {
        self.failures = 0;
        self.open.take().is_some()
    }

    /// The receiver did not answer.
    pub fn record_failure(&mut self, now: Instant, settings: &BreakerSettings) {
        self.failures = self.failures.saturating_add(1);
        let pause = match &self.open {
            // A call that began before it opened tells nothing new.
            Some(open) if !open.is_tried => return,
            Some(open) => (open.pause * PAUSE_GROWTH).min(settings.pause_max.max(settings.pause)),
            None if settings.failures_max == 0 || self.failures < settings.failures_max => return,
            None => settings.pause,
        };
        self.open = Some(Open { until: now + pause, pause, is_tried: false });
    }

    /// Whether nothing is known that is worth keeping.
    pub fn is_forgettable(&self, now: Instant) -> bool {
        self.open.as_ref().is_none_or(|open| !open.is_tried && open.until < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn settings() -> BreakerSettings {
        BreakerSettings { failures_max: 3, pause: 10 * MS, pause_max: 30 * MS, patience: Duration::MAX }
    }

    /// One that just opened, and the time when it did.
    fn opened() -> (Breaker, Instant) {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(breaker.admit(now), BreakerState::Closed);
            breaker.begin();
            breaker.record_failure(now, &settings());
        }
        (breaker, now)
    }

    #[test]
    fn it_opens_after_many_silences_in_a_row() {
        let (breaker, now) = opened();
        assert_eq!(breaker.admit(now), BreakerState::OpenUntil(now + 10 * MS));
    }

    #[test]
    fn an_answer_in_between_keeps_it_closed() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            breaker.record_failure(now, &settings());
            breaker.record_failure(now, &settings());
            assert!(!breaker.answered());
        }
        assert_eq!(breaker.admit(now), BreakerState::Closed);
    }

    #[test]
    fn one_call_tries_after_the_pause_and_its_answer_closes_it() {
        let (mut breaker, now) = opened();
        let later = now + 10 * MS;
        assert_eq!(breaker.admit(later), BreakerState::Closed);
        breaker.begin();
        assert_eq!(breaker.admit(later), BreakerState::Probing);
        assert!(breaker.answered());
        assert_eq!(breaker.admit(later), BreakerState::Closed);
    }

    #[test]
    fn each_try_that_fails_makes_the_pause_longer_up_to_the_longest() {
        let (mut breaker, mut now) = opened();
        now += 10 * MS;
        for pause in [20, 30, 30] {
            breaker.begin();
            breaker.record_failure(now, &settings());
            let until = now + pause * MS;
            assert_eq!(breaker.admit(now), BreakerState::OpenUntil(until));
            now = until;
        }
    }

    #[test]
    fn silences_of_calls_that_began_before_change_nothing() {
        let (mut breaker, now) = opened();
        breaker.record_failure(now + 5 * MS, &settings());
        assert_eq!(breaker.admit(now), BreakerState::OpenUntil(now + 10 * MS));
    }

    #[test]
    fn a_try_that_was_abandoned_can_be_made_by_another() {
        let (mut breaker, now) = opened();
        breaker.begin();
        assert_eq!(breaker.admit(now + 10 * MS), BreakerState::Probing);
        breaker.abandon();
        assert_eq!(breaker.admit(now + 10 * MS), BreakerState::Closed);
    }

    #[test]
    fn it_can_be_switched_off() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let never = BreakerSettings { failures_max: 0, ..settings() };
        for _ in 0..100 {
            breaker.record_failure(now, &never);
        }
        assert_eq!(breaker.admit(now), BreakerState::Closed);
    }
}
