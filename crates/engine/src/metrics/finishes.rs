//! How many jobs of an endpoint ended in the last 5 min, from which the start of a queued job is estimated.

use std::sync::atomic::{AtomicU64, Ordering};

use longshore_fleet::FinishRate;
use longshore_model::Millis;

/// The length of one slot, in ms.
const SLOT_MS: u64 = 10_000;
/// The number of full slots that the rate is of: 5 min.
const SLOTS: u64 = 30;
/// The number of slots of a minute.
const MINUTE_SLOTS: usize = 6;
/// The number of stored slots, more than [`SLOTS`] and the present one.
const STORED: usize = 32;
const HOUR_MS: u64 = 3_600_000;
/// The bits of a slot's count. Further ends in the 10 s of a slot are not counted.
const COUNT_BITS: u32 = 18;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// A rate over less time than this would be that of a burst, in ms.
const ELAPSED_MIN_MS: u64 = 1_000;

/// The ends of jobs in slots of 10 s. Written by the endpoint's actor alone, read by any task. Volatile.
#[derive(Debug, Default)]
pub(crate) struct Finishes {
    /// The slot's number in the upper half; in the lower half how many ms after its start the first job ended, and its count.
    slots: [AtomicU64; STORED],
}

impl Finishes {
    /// Counts a job that ended. Called by the actor alone.
    pub(crate) fn note(&self, now: Millis) {
        let number = now.0 / SLOT_MS;
        let slot = &self.slots[number as usize % STORED];
        let before = slot.load(Ordering::Relaxed);
        // The number of the slot fits into 32 bits until the year 3331.
        let present =
            if before >> 32 == number { before } else { number << 32 | (now.0 % SLOT_MS) << COUNT_BITS };
        slot.store(present + u64::from(present & COUNT_MAX < COUNT_MAX), Ordering::Relaxed);
    }

    /// How many jobs ended in a slot, and when the first of them did, in ms.
    fn slot(&self, number: u64) -> (u64, u64) {
        let slot = self.slots[number as usize % STORED].load(Ordering::Relaxed);
        let offset_ms = (slot & u64::from(u32::MAX)) >> COUNT_BITS;
        if slot >> 32 == number { (slot & COUNT_MAX, number * SLOT_MS + offset_ms) } else { (0, 0) }
    }

    fn count(&self, number: u64) -> u64 {
        self.slot(number).0
    }

    /// The rate of the last 5 min, or of the time since the first job in them ended. The end of that job begins the time: it is
    /// not counted, unless it is the only one.
    pub(crate) fn rate(&self, now: Millis) -> FinishRate {
        let present = now.0 / SLOT_MS;
        let numbers = present.saturating_sub(SLOTS)..=present;
        let Some(first) = numbers.clone().find(|number| self.count(*number) > 0) else {
            return FinishRate::default();
        };
        let count: u64 = numbers.map(|number| self.count(number)).sum();
        let (ends, elapsed_min_ms) = if count == 1 { (1, SLOT_MS) } else { (count - 1, ELAPSED_MIN_MS) };
        let elapsed_ms = now.0.saturating_sub(self.slot(first).1).max(elapsed_min_ms);
        let per_hour = ends * HOUR_MS / elapsed_ms;
        // The mean of few jobs is uncertain by about one part in the root of their number.
        let uncertain = (per_hour as f64 / (count as f64).sqrt()) as u64;
        let full: Vec<u64> = (first..present).map(|number| self.count(number)).collect();
        let mut minutes: Vec<u64> =
            full.windows(MINUTE_SLOTS).map(|slots| slots.iter().sum::<u64>() * 60).collect();
        minutes.sort_unstable();
        let percentile = |percent: usize| {
            minutes.get(minutes.len().saturating_sub(1) * percent / 100).copied().unwrap_or(per_hour)
        };
        FinishRate {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            per_hour,
            slow_per_hour: percentile(10).min(per_hour - uncertain),
            fast_per_hour: percentile(90).max(per_hour + uncertain),
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_fleet::finish_ms;

    use super::*;

    const BEGIN: u64 = 1_700_000_000_000 / SLOT_MS * SLOT_MS;

    #[test]
    fn a_steady_rate_has_a_narrow_range() {
        let finishes = Finishes::default();
        assert_eq!(finishes.rate(Millis(BEGIN)), FinishRate::default());
        // Two a second for ten minutes: the older half no longer counts.
        (0..1_200).for_each(|n| finishes.note(Millis(BEGIN + n * 500)));
        let rate = finishes.rate(Millis(BEGIN + 600_000));
        assert_eq!((rate.count, rate.per_hour), (600, 7_188));
        assert!(rate.slow_per_hour > 6_800 && rate.fast_per_hour < 7_600, "{rate:?}");
        assert_eq!(finishes.rate(Millis(BEGIN + 1_000_000)), FinishRate::default());
    }

    #[test]
    fn slow_and_fast_minutes_are_the_ends_of_the_range() {
        let finishes = Finishes::default();
        for minute in 0..5 {
            let jobs = if minute % 2 == 0 { 120 } else { 12 };
            (0..jobs).for_each(|n| finishes.note(Millis(BEGIN + minute * 60_000 + n * 60_000 / jobs)));
        }
        let rate = finishes.rate(Millis(BEGIN + 300_000));
        assert!(rate.slow_per_hour < 2_000 && rate.fast_per_hour > 6_000, "{rate:?}");
    }

    #[test]
    fn a_rate_of_few_jobs_is_uncertain() {
        let finishes = Finishes::default();
        (0..4).for_each(|n| finishes.note(Millis(BEGIN + n * 5_000)));
        let rate = finishes.rate(Millis(BEGIN + 15_000));
        let expected = FinishRate { count: 4, per_hour: 720, slow_per_hour: 360, fast_per_hour: 1_080 };
        assert_eq!(rate, expected);
    }

    #[test]
    fn a_rate_begins_with_the_first_end_also_within_a_slot() {
        let finishes = Finishes::default();
        (0..11).for_each(|n| finishes.note(Millis(BEGIN + 7_000 + n * 200)));
        assert_eq!(finishes.rate(Millis(BEGIN + 9_000)).per_hour, 18_000);
        assert_eq!(finishes.rate(Millis(BEGIN + 27_000)).per_hour, 1_800);
    }

    #[test]
    fn one_end_is_a_rate_too() {
        let finishes = Finishes::default();
        finishes.note(Millis(BEGIN + 7_000));
        for (after_ms, per_hour) in [(0, 360), (20_000, 180), (300_000, 12)] {
            assert_eq!(finishes.rate(Millis(BEGIN + 7_000 + after_ms)).per_hour, per_hour);
        }
    }

    #[test]
    fn a_slot_counts_no_further_than_its_bits() {
        let finishes = Finishes::default();
        (0..COUNT_MAX + 3).for_each(|_| finishes.note(Millis(BEGIN + 9_999)));
        assert_eq!(finishes.slot(BEGIN / SLOT_MS), (COUNT_MAX, BEGIN + 9_999));
    }

    /// A queue with these workers over half an hour: more and fewer jobs come than the workers can run. Returns the waits
    /// that were within the estimate at the submit, and all waits.
    fn estimated(seed: u64, workers: usize, mean_ms: u64) -> (u32, u32) {
        let mut random = seed;
        let mut share = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) as f64 / f64::from(1 << 24)
        };
        let finishes = Finishes::default();
        let (mut free, mut waiting, mut ends) = (vec![0_u64; workers], Vec::<u64>::new(), Vec::<u64>::new());
        let (mut now, mut within, mut all) = (0_u64, 0, 0);
        while now < 1_800_000 {
            let wave = 0.95 + 0.45 * (now as f64 / 120_000.0).sin();
            now += (-share().max(1e-9).ln() * mean_ms as f64 / (workers as f64 * wave)) as u64 + 1;
            ends.sort_unstable();
            ends.iter().filter(|end| **end <= now).for_each(|end| finishes.note(Millis(BEGIN + end)));
            ends.retain(|end| *end > now);
            waiting.retain(|start| *start > now);
            let worker = (0..workers).min_by_key(|worker| free[*worker]).unwrap();
            let start = free[worker].max(now);
            free[worker] = start + (mean_ms as f64 * (0.3 + 1.4 * share())) as u64;
            ends.push(free[worker]);
            let ahead = waiting.len() as u64;
            waiting.push(start);
            let rate = finishes.rate(Millis(BEGIN + now));
            if let Some((min_ms, max_ms)) = finish_ms(ahead + 1, &rate).filter(|_| start > now) {
                all += 1;
                within += u32::from((min_ms..=max_ms).contains(&(start - now)));
            }
        }
        (within, all)
    }

    #[test]
    fn four_of_five_jobs_start_within_their_estimate() {
        for (workers, mean_ms) in [(2, 2_000), (4, 8_000), (3, 500)] {
            for seed in 1..=5 {
                let (within, all) = estimated(seed, workers, mean_ms);
                assert!(all > 100, "{all} jobs waited");
                assert!(
                    within * 5 >= all * 4,
                    "{within} of {all}: {workers} workers, {mean_ms} ms, seed {seed}"
                );
            }
        }
    }
}
