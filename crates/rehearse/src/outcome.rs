//! What a rehearsal saw.

use std::time::Duration;

/// What happened in a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How long each delivered job waited, in ms, ascending.
    pub(crate) waits_ms: Vec<u64>,
    /// The number of jobs of the trace.
    pub jobs: u64,
    /// The number of jobs that were not run: they waited until their time to live ended.
    pub expired: u64,
    /// The number of workers that were started.
    pub starts: u64,
    /// The most workers at a time.
    pub workers_most: u32,
    /// The time of all workers from their starts to their ends, in ms.
    pub paid_ms: u64,
    /// The part of it in which they had a job, in ms.
    pub busy_ms: u64,
}

impl Outcome {
    /// The wait that `share` of the delivered jobs did not exceed; `None` if none was delivered.
    pub fn wait(&self, share: f64) -> Option<Duration> {
        let at = (share * self.waits_ms.len() as f64).ceil() as usize;
        let ms = self.waits_ms.get(at.saturating_sub(1).min(self.waits_ms.len().saturating_sub(1)))?;
        Some(Duration::from_millis(*ms))
    }

    /// The share of the workers' time in which they had a job, from 0 to 1; `None` without any.
    pub fn busy_share(&self) -> Option<f64> {
        (self.paid_ms > 0).then(|| self.busy_ms as f64 / self.paid_ms as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let outcome = Outcome { waits_ms: (1..=100).collect(), ..Outcome::default() };
        for (share, ms) in [(0.0, 1), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)] {
            assert_eq!(outcome.wait(share), Some(Duration::from_millis(ms)), "{share}");
        }
        assert_eq!((Outcome::default().wait(0.5), Outcome::default().busy_share()), (None, None));
    }
}
