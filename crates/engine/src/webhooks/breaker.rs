//! The circuit breaker of one receiver: stops calls while the receiver does not respond.
//!
//! ```text
//! closed ── failures_max calls in a row without a response ──► open ── pause over ──► half-open: one probe call
//!    ▲                                                         ▲                         │
//!    └──────────────── any response ───────────────────────────┼────── a response ◄──────┤
//!                                                              └─ none: a longer pause ◄─┘
//! ```
//!
//! A response of any status closes the breaker: a receiver that responds does not use up the limit of concurrent calls.
//! Calls that wait for an open breaker use up no attempt. Time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Factor between two consecutive pauses.
const PAUSE_GROWTH: u32 = 2;

/// When a circuit breaker opens, and for how long.
#[derive(Clone, Debug)]
pub struct BreakerSettings {
    /// Consecutive calls without a response after which the breaker opens; 0: the breaker never opens.
    pub failures_max: u32,
    /// How long the breaker stays open before the first probe call.
    pub pause: Duration,
    /// Limit of the pause, which doubles with each failed probe call.
    pub pause_max: Duration,
    /// How long a call waits for an open breaker before it is given up, counted from when it was enqueued.
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

/// The breaker of one receiver. Volatile: closed after a start.
#[derive(Default)]
pub(super) struct Breaker {
    /// Consecutive calls without a response.
    failures: u32,
    /// `None` while the breaker is closed.
    open: Option<Open>,
}

struct Open {
    since: Instant,
    until: Instant,
    pause: Duration,
    /// A probe call is in flight.
    is_probing: bool,
}

/// Whether a call may be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerState {
    /// A call may be made. If the pause of an open breaker is over, this call is the probe call.
    Closed,
    /// A probe call is in flight; its result closes or opens the breaker.
    Probing,
    /// No call may be made before this time.
    OpenUntil(Instant),
}

impl Breaker {
    /// Returns whether a call may be made now. Changes nothing: [`Breaker::begin`] starts the call.
    pub fn state(&self, now: Instant) -> BreakerState {
        match &self.open {
            Some(open) if open.is_probing => BreakerState::Probing,
            Some(open) if now < open.until => BreakerState::OpenUntil(open.until),
            _ => BreakerState::Closed,
        }
    }

    /// Returns since when the breaker is open, and when its pause ends; `None` if it is closed.
    pub fn open(&self) -> Option<(Instant, Instant)> {
        self.open.as_ref().map(|open| (open.since, open.until))
    }

    /// Starts a call, which [`BreakerState::Closed`] allowed. With an open breaker it is the probe call.
    pub fn begin(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
    }

    /// Ends a call that shows neither a response nor a failure. Another call may be the probe call.
    pub fn abandon(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }

    /// Counts a response of the receiver. Returns whether the response closed the breaker.
    pub fn record_response(&mut self) -> bool {
        self.failures = 0;
        self.open.take().is_some()
    }

    /// Counts a call without a response: opens the breaker at the limit, or prolongs its pause after a probe call.
    pub fn record_failure(&mut self, now: Instant, settings: &BreakerSettings) {
        self.failures = self.failures.saturating_add(1);
        let (since, pause) = match &self.open {
            // This call started before the breaker opened.
            Some(open) if !open.is_probing => return,
            Some(open) => {
                (open.since, (open.pause * PAUSE_GROWTH).min(settings.pause_max.max(settings.pause)))
            }
            None if settings.failures_max == 0 || self.failures < settings.failures_max => return,
            None => (now, settings.pause),
        };
        self.open = Some(Open { since, until: now + pause, pause, is_probing: false });
    }

    /// Returns whether the breaker can be dropped: it is closed, or its pause is over and no probe call is in flight.
    pub fn is_evictable(&self, now: Instant) -> bool {
        self.open.as_ref().is_none_or(|open| !open.is_probing && open.until < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn settings() -> BreakerSettings {
        BreakerSettings { failures_max: 3, pause: 10 * MS, pause_max: 30 * MS, patience: Duration::MAX }
    }

    /// Returns a breaker that just opened, and the time when it did.
    fn opened() -> (Breaker, Instant) {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(breaker.state(now), BreakerState::Closed);
            breaker.begin();
            breaker.record_failure(now, &settings());
        }
        (breaker, now)
    }

    #[test]
    fn the_breaker_opens_after_consecutive_failures() {
        let (breaker, now) = opened();
        assert_eq!(breaker.state(now), BreakerState::OpenUntil(now + 10 * MS));
    }

    #[test]
    fn a_response_in_between_keeps_the_breaker_closed() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            breaker.record_failure(now, &settings());
            breaker.record_failure(now, &settings());
            assert!(!breaker.record_response());
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
    }

    #[test]
    fn one_probe_call_is_made_after_the_pause_and_its_response_closes_the_breaker() {
        let (mut breaker, now) = opened();
        let later = now + 10 * MS;
        assert_eq!(breaker.state(later), BreakerState::Closed);
        breaker.begin();
        assert_eq!(breaker.state(later), BreakerState::Probing);
        assert!(breaker.record_response());
        assert_eq!(breaker.state(later), BreakerState::Closed);
    }

    #[test]
    fn each_failed_probe_call_doubles_the_pause_up_to_the_limit() {
        let (mut breaker, mut now) = opened();
        now += 10 * MS;
        for pause in [20, 30, 30] {
            breaker.begin();
            breaker.record_failure(now, &settings());
            let until = now + pause * MS;
            assert_eq!(breaker.state(now), BreakerState::OpenUntil(until));
            now = until;
        }
    }

    #[test]
    fn failures_of_calls_that_started_before_the_opening_change_nothing() {
        let (mut breaker, now) = opened();
        breaker.record_failure(now + 5 * MS, &settings());
        assert_eq!(breaker.state(now), BreakerState::OpenUntil(now + 10 * MS));
    }

    #[test]
    fn another_call_can_replace_an_abandoned_probe_call() {
        let (mut breaker, now) = opened();
        breaker.begin();
        assert_eq!(breaker.state(now + 10 * MS), BreakerState::Probing);
        breaker.abandon();
        assert_eq!(breaker.state(now + 10 * MS), BreakerState::Closed);
    }

    #[test]
    fn a_limit_of_0_disables_the_breaker() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let never = BreakerSettings { failures_max: 0, ..settings() };
        for _ in 0..100 {
            breaker.record_failure(now, &never);
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
    }
}
