//! When a call that failed is made again.

use std::time::Duration;

use longshore_model::JobId;

/// How often a call is made, and how long it is waited in between.
#[derive(Clone, Debug)]
pub struct WebhookRetries {
    /// The most attempts for one call.
    pub attempts_max: u32,
    /// From the end of the first attempt to the second.
    pub delay: Duration,
    /// By how much each further delay is longer than the one before; 1: all are the same.
    pub factor: u32,
    /// The longest delay, before the jitter.
    pub delay_max: Duration,
    /// By how much a delay may be longer than it is by the rules above, in percent.
    pub jitter_percent: u32,
}

impl Default for WebhookRetries {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            delay: Duration::from_secs(10),
            factor: 1,
            delay_max: Duration::from_hours(1),
            jitter_percent: 0,
        }
    }
}

impl WebhookRetries {
    /// How long to wait after so many attempts. Chance is taken from the job's id: the same call has the same
    /// delays at every start, and calls that fail together are not made together for ever.
    pub(super) fn delay_after(&self, attempts: u32, job: JobId) -> Duration {
        let delay = self.longest_after(attempts);
        let without = self.without_jitter(attempts);
        let text = format!("{job}{attempts}");
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let chance = digest.as_ref().iter().take(2).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        without + delay.saturating_sub(without) * chance / u32::from(u16::MAX)
    }

    /// The longest that [`WebhookRetries::delay_after`] can be, for any job.
    pub(super) fn longest_after(&self, attempts: u32) -> Duration {
        let without = self.without_jitter(attempts);
        without.saturating_add(without.saturating_mul(self.jitter_percent) / 100)
    }

    fn without_jitter(&self, attempts: u32) -> Duration {
        let growth = self.factor.max(1).saturating_pow(attempts.saturating_sub(1));
        // A first delay over the longest is meant as it is.
        self.delay.saturating_mul(growth).min(self.delay_max.max(self.delay))
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::Millis;

    use super::*;

    fn job(number: u128) -> JobId {
        JobId::mint(Millis(1), number, false)
    }

    #[test]
    fn attempts_are_ten_seconds_apart_where_nobody_says_otherwise() {
        for attempts in 1..5 {
            assert_eq!(WebhookRetries::default().delay_after(attempts, job(1)), Duration::from_secs(10));
        }
    }

    #[test]
    fn delays_grow_to_the_longest() {
        let retries = WebhookRetries { factor: 3, delay_max: Duration::from_mins(1), ..Default::default() };
        let delays: Vec<_> = (1..5).map(|attempts| retries.delay_after(attempts, job(1)).as_secs()).collect();
        assert_eq!(delays, [10, 30, 60, 60]);
        assert_eq!(retries.delay_after(u32::MAX, job(1)), Duration::from_mins(1));
        let slow = WebhookRetries { delay: Duration::from_hours(2), ..retries };
        assert_eq!(slow.delay_after(3, job(1)), Duration::from_hours(2));
    }

    #[test]
    fn jitter_makes_delays_longer_and_differs_from_call_to_call() {
        let retries = WebhookRetries { jitter_percent: 50, ..Default::default() };
        let delays: Vec<_> = (0..100).map(|number| retries.delay_after(1, job(number))).collect();
        assert!(delays.iter().all(|delay| (10..=15).contains(&delay.as_secs())), "{delays:?}");
        assert!(delays.iter().any(|delay| delay.as_secs() < 12));
        assert!(delays.iter().any(|delay| delay.as_secs() >= 13));
        assert_eq!(retries.delay_after(1, job(7)), retries.delay_after(1, job(7)));
    }
}
