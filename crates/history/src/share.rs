//! Shares of good events, as objectives are stated in.

use crate::{Field, Record};

/// How many of some events were good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of good events.
    pub good: u64,
    /// The number of all events.
    pub total: u64,
}

impl Share {
    /// The events of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { good: self.good.saturating_add(other.good), total: self.total.saturating_add(other.total) }
    }

    /// The number of events that were not good.
    pub fn bad(self) -> u64 {
        self.total.saturating_sub(self.good)
    }

    /// The share of good events, from 0 to 1; `None` without an event.
    pub fn ratio(self) -> Option<f64> {
        (self.total > 0).then(|| self.good as f64 / self.total as f64)
    }

    /// The share of bad events, divided by the share that the target allows: above 1, the target is missed if it goes on.
    /// `None` without an event.
    pub fn burn(self, target: f64) -> Option<f64> {
        (self.total > 0).then(|| self.bad() as f64 / self.total as f64 / (1.0 - target))
    }
}

impl Record {
    /// The deliveries, of which those within this time in the queue are good. Off by the width of a cell of the histogram.
    pub fn in_time(&self, delay_ms: u64) -> Share {
        Share { good: self.delay.count_up_to(delay_ms), total: self.delay.count() }
    }

    /// The jobs that ended, of which the completed ones are good. Cancelled jobs do not count.
    pub fn succeeded(&self) -> Share {
        let count = |field| self.get(field);
        let good = count(Field::Completed);
        Share { good, total: good + count(Field::Failed) + count(Field::TimedOut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burn_of_one_uses_the_budget_up_exactly() {
        let share = Share { good: 95, total: 100 };
        assert_eq!(share.ratio(), Some(0.95));
        assert!((share.burn(0.95).unwrap() - 1.0).abs() < 1e-9);
        assert!((share.and(Share { good: 0, total: 100 }).burn(0.95).unwrap() - 10.5).abs() < 1e-9);
        assert_eq!((Share::default().ratio(), Share::default().burn(0.9)), (None, None));
    }

    #[test]
    fn cancelled_jobs_do_not_count_and_lost_time_does() {
        let mut record = Record::default();
        for (field, value) in
            [(Field::Completed, 7), (Field::Failed, 2), (Field::TimedOut, 1), (Field::Cancelled, 9)]
        {
            record.set(field, value);
        }
        for ms in [10, 20, 90_000] {
            record.delay.add(ms);
        }
        assert_eq!(record.succeeded(), Share { good: 7, total: 10 });
        assert_eq!(record.in_time(5_000), Share { good: 2, total: 3 });
    }
}
