//! The delays between the attempts of a call.

use std::time::Duration;

use longshore_model::JobId;

/// How many attempts a call has, and the delays between them.
#[derive(Clone, Debug)]
pub struct WebhookRetries {
    /// Limit of the attempts of one call; then it is given up.
    pub attempts_max: u32,
    /// Delay from the end of the first attempt to the second.
    pub delay: Duration,
    /// Factor between two consecutive delays; with 0 or 1 all delays are equal.
    pub factor: u32,
    /// Limit of a delay, without the jitter. A first delay over the limit stays as it is.
    pub delay_max: Duration,
    /// Limit of the random addition to a delay, in percent of the delay.
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
    /// Returns the delay after `attempts` attempts.
    ///
    /// The jitter is derived from the job's id: a call has the same delays after a restart, and calls that fail
    /// together are retried at different times.
    pub(super) fn delay_after(&self, attempts: u32, job: JobId) -> Duration {
        let longest = self.longest_after(attempts);
        let base = self.without_jitter(attempts);
        let text = format!("{job}{attempts}");
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let random = digest.as_ref().iter().take(2).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        base + longest.saturating_sub(base) * random / u32::from(u16::MAX)
    }

    /// Returns the longest delay that [`WebhookRetries::delay_after`] returns for any job.
    pub(super) fn longest_after(&self, attempts: u32) -> Duration {
        let base = self.without_jitter(attempts);
        base.saturating_add(base.saturating_mul(self.jitter_percent) / 100)
    }

    fn without_jitter(&self, attempts: u32) -> Duration {
        let growth = self.factor.max(1).saturating_pow(attempts.saturating_sub(1));
        // A first delay over the limit is the operator's choice.
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
    fn attempts_are_ten_seconds_apart_by_default() {
        for attempts in 1..5 {
            assert_eq!(WebhookRetries::default().delay_after(attempts, job(1)), Duration::from_secs(10));
        }
    }

    #[test]
    fn delays_grow_up_to_the_limit() {
        let retries = WebhookRetries { factor: 3, delay_max: Duration::from_mins(1), ..Default::default() };
        let delays: Vec<_> = (1..5).map(|attempts| retries.delay_after(attempts, job(1)).as_secs()).collect();
        assert_eq!(delays, [10, 30, 60, 60]);
        assert_eq!(retries.delay_after(u32::MAX, job(1)), Duration::from_mins(1));
        let slow = WebhookRetries { delay: Duration::from_hours(2), ..retries };
        assert_eq!(slow.delay_after(3, job(1)), Duration::from_hours(2));
    }

    #[test]
    fn jitter_prolongs_delays_and_differs_between_jobs() {
        let retries = WebhookRetries { jitter_percent: 50, ..Default::default() };
        let delays: Vec<_> = (0..100).map(|number| retries.delay_after(1, job(number))).collect();
        assert!(delays.iter().all(|delay| (10..=15).contains(&delay.as_secs())), "{delays:?}");
        assert!(delays.iter().any(|delay| delay.as_secs() < 12));
        assert!(delays.iter().any(|delay| delay.as_secs() >= 13));
        assert_eq!(retries.delay_after(1, job(7)), retries.delay_after(1, job(7)));
    }
}
