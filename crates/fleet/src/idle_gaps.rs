//! The lengths of the times in which an endpoint had no job, and how long they suggest to keep an idle worker.

use longshore_model::Millis;

use crate::FleetLoad;

/// The upper bounds of the cells in ms: ten for each power of ten, from 1 s to 10 000 s.
const BOUNDS_MS: [u64; CELLS] = bounds();
const CELLS: usize = 40;
/// The bounds between 1 s and 10 s, in ms: the tenth powers of the tenth root of ten.
const FIRST_MS: [u64; 10] = [1_259, 1_585, 1_996, 2_512, 3_163, 3_982, 5_012, 6_310, 7_944, 10_000];
/// A shorter time without a job is no gap.
const GAP_MS_MIN: u64 = 1_000;
/// With fewer gaps nothing is concluded.
const GAPS_MIN: u64 = 10;
/// With this number of gaps, each counts half from then on, so that new ones count more than old ones.
const GAPS_MAX: u64 = 1_000;
/// A worker is kept for this share of the gaps, in hundredths.
const KEPT_OF_100: u64 = 99;

const fn bounds() -> [u64; CELLS] {
    let (mut bounds, mut at, mut factor) = ([0; CELLS], 0, 1);
    while at < CELLS {
        bounds[at] = FIRST_MS[at % 10] * factor;
        at += 1;
        if at % 10 == 0 {
            factor *= 10;
        }
    }
    bounds
}

/// The gaps between the jobs of an endpoint: the times of at least a second in which it had neither a queued nor a running
/// job. Volatile; one per supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleGaps {
    cells: [u64; CELLS],
    /// When the endpoint last had a job; `None` before the first observation.
    active_at: Option<Millis>,
    /// It had one at the last observation, and so until `active_at` of the next.
    was_busy: bool,
}

impl Default for IdleGaps {
    fn default() -> Self {
        Self { cells: [0; CELLS], active_at: None, was_busy: false }
    }
}

impl IdleGaps {
    /// Notes whether the endpoint has a job now. If not, `idle_ms` is how long ago a worker ended one, as far as it is known.
    pub fn observe(&mut self, now: Millis, load: &FleetLoad, idle_ms: Option<u64>) {
        let is_busy = load.queued_normal > 0 || load.running > 0;
        let Some(idle_ms) = (if is_busy { Some(0) } else { idle_ms }) else { return };
        let active_at = self.active_at.map_or(now - idle_ms, |before| before.max(now - idle_ms));
        let before = self.active_at.replace(active_at);
        if !core::mem::replace(&mut self.was_busy, is_busy) {
            self.add(before.map_or(0, |before| active_at.since(before)));
        }
    }

    fn add(&mut self, gap_ms: u64) {
        if gap_ms < GAP_MS_MIN {
            return;
        }
        // A gap beyond the last cell is longer than any worker is kept.
        let Some(cell) = BOUNDS_MS.iter().position(|bound| gap_ms <= *bound) else { return };
        self.cells[cell] += 1;
        if self.cells.iter().sum::<u64>() >= GAPS_MAX {
            self.cells.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// How long an idle worker is kept, in ms: for 99 % of the gaps that are not longer than `max_ms`, but at least `min_ms`.
    /// It is `min_ms` with fewer than ten such gaps. Longer gaps do not count, because a worker that is kept for `max_ms`
    /// would still end in them.
    pub fn keep_ms(&self, min_ms: u64, max_ms: u64) -> u64 {
        let bridged = BOUNDS_MS.iter().zip(&self.cells).take_while(|(bound, _)| **bound <= max_ms);
        let count: u64 = bridged.clone().map(|(_, count)| count).sum();
        if count < GAPS_MIN {
            return min_ms;
        }
        let needed = (count * KEPT_OF_100).div_ceil(100);
        let mut seen = 0;
        let kept = bridged.clone().find(|(_, count)| {
            seen += **count;
            seen >= needed
        });
        kept.map_or(min_ms, |(bound, _)| *bound).max(min_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps of these lengths, in s.
    fn gaps(lengths_s: impl IntoIterator<Item = u64>) -> IdleGaps {
        let mut gaps = IdleGaps::default();
        lengths_s.into_iter().for_each(|length_s| gaps.add(length_s * 1_000));
        gaps
    }

    #[test]
    fn the_bounds_are_ten_for_each_power_of_ten() {
        assert_eq!(
            (BOUNDS_MS[0], BOUNDS_MS[9], BOUNDS_MS[10], BOUNDS_MS[39]),
            (1_259, 10_000, 12_590, 10_000_000)
        );
        assert!(BOUNDS_MS.is_sorted());
    }

    #[test]
    fn a_worker_is_kept_over_the_usual_gap() {
        assert_eq!(gaps([60; 9]).keep_ms(5_000, 3_600_000), 5_000, "too few to conclude from");
        assert_eq!(gaps([60; 10]).keep_ms(5_000, 3_600_000), 63_100, "within a cell, 26 %");
        assert_eq!(gaps([60; 10]).keep_ms(90_000, 3_600_000), 90_000);
        // One in a hundred is longer: it is not bridged, two in a hundred are.
        assert_eq!(gaps((0..100).map(|n| if n == 50 { 600 } else { 60 })).keep_ms(5_000, 3_600_000), 63_100);
        assert_eq!(
            gaps((0..100).map(|n| if n % 50 == 0 { 600 } else { 60 })).keep_ms(5_000, 3_600_000),
            631_000
        );
    }

    #[test]
    fn gaps_that_no_kept_worker_bridges_do_not_count() {
        let daily = gaps((0..50).map(|n| if n % 2 == 0 { 5_000 } else { 20 }));
        assert_eq!(daily.keep_ms(5_000, 3_600_000), 25_120);
        assert_eq!(daily.keep_ms(5_000, 10_000), 5_000, "no gap of 20 s is bridged in 10 s");
        assert_eq!(gaps([40_000; 50]).keep_ms(5_000, 3_600_000), 5_000, "beyond the last cell");
    }

    #[test]
    fn new_gaps_count_more_than_old_ones() {
        let changed = gaps((0..8_000).map(|n| if n < 1_000 { 900 } else { 30 }));
        assert!(changed.keep_ms(5_000, 3_600_000) < 60_000, "the long ones are forgotten");
    }

    #[test]
    fn a_gap_ends_with_the_next_job_and_begins_when_the_last_one_ended() {
        let (busy, idle) = (FleetLoad { running: 1, ..FleetLoad::default() }, FleetLoad::default());
        let mut gaps = IdleGaps::default();
        for round in 0..10 {
            let now = Millis(100_000 * (round + 1));
            gaps.observe(now, &busy, Some(0));
            gaps.observe(now + 5_000, &busy, Some(0));
            gaps.observe(now + 30_000, &idle, Some(10_000));
            gaps.observe(now + 60_000, &idle, Some(40_000));
        }
        // 20 s of work and 80 s without.
        assert_eq!(gaps.keep_ms(5_000, 3_600_000), 5_000, "nine gaps");
        gaps.observe(Millis(1_100_000), &busy, Some(0));
        assert_eq!(gaps.keep_ms(5_000, 3_600_000), 100_000);
        // A job that came and went between two observations ends a gap too, and a time that goes back ends none.
        gaps.observe(Millis(1_150_000), &idle, Some(20_000));
        gaps.observe(Millis(1_150_500), &idle, Some(10));
        gaps.observe(Millis(900_000), &idle, Some(10));
        assert_eq!(gaps.cells.iter().sum::<u64>(), 11);
        let mut external = IdleGaps::default();
        external.observe(Millis(5_000), &idle, None);
        assert_eq!(external, IdleGaps::default());
    }
}
