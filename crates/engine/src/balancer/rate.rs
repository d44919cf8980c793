//! The number of requests in each of the last seconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The seconds of which a rate is the average.
const SECONDS: u64 = 10;
/// The number of counters: one more for the second that has begun, up to a power of two.
const SLOTS: usize = 16;
/// The bits of a counter that hold a number of requests; those above hold the second that it counts.
const COUNT_BITS: u32 = 32;

/// Counts requests by the second.
#[derive(Debug)]
pub(super) struct Rate {
    began: Instant,
    slots: [AtomicU64; SLOTS],
}

impl Default for Rate {
    fn default() -> Self {
        Self { began: Instant::now(), slots: Default::default() }
    }
}

impl Rate {
    /// Counts a request at `now`.
    pub(super) fn count(&self, now: Instant) {
        self.count_at(now.duration_since(self.began).as_secs());
    }

    /// The average of the last 10 whole seconds, or of all whole seconds if there are fewer.
    pub(super) fn per_second(&self) -> f64 {
        self.per_second_at(self.began.elapsed().as_secs())
    }

    fn count_at(&self, second: u64) {
        // A slot of an earlier round begins anew.
        let next = |slot: u64| {
            let of_this = slot >> COUNT_BITS == second;
            Some(if of_this { slot + 1 } else { (second << COUNT_BITS) + 1 })
        };
        let slot = &self.slots[(second % SLOTS as u64) as usize];
        let _ = slot.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    fn per_second_at(&self, second: u64) -> f64 {
        let seconds = second.min(SECONDS);
        if seconds == 0 {
            return 0.0;
        }
        let counted = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|slot| {
            let of = slot >> COUNT_BITS;
            (second - seconds..second).contains(&of)
        });
        let requests: u64 = counted.map(|slot| slot & ((1 << COUNT_BITS) - 1)).sum();
        requests as f64 / seconds as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests in ten seconds at the rate of this second.
    fn of_ten(rate: &Rate, second: u64) -> u64 {
        (rate.per_second_at(second) * 10.0).round() as u64
    }

    #[test]
    fn a_rate_is_the_average_of_the_last_ten_whole_seconds() {
        let rate = Rate::default();
        for second in 0..100 {
            for _ in 0..second {
                rate.count_at(second);
            }
        }
        // The second that has begun does not count.
        assert_eq!(of_ten(&rate, 99), (89..99).sum::<u64>());
        assert_eq!(of_ten(&rate, 104), (94..100).sum::<u64>());
        assert_eq!(of_ten(&rate, 200), 0);
    }

    #[test]
    fn a_young_server_has_fewer_seconds() {
        let rate = Rate::default();
        rate.count_at(0);
        rate.count_at(0);
        assert_eq!([0, 1, 4].map(|second| of_ten(&rate, second)), [0, 20, 5]);
    }
}
