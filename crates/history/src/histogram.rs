//! A histogram of times with ten cells a decade, of which only those with a value are stored.
//!
//! Histograms of parts add up exactly to the histogram of the whole. A percentile is off by at most 12.3 %, because the
//! bounds of a cell differ by a factor of 1.26 and the value between them is returned.

use crate::varint;

/// The number of cells: one for 0, then those up to 10^9.4 ms (29 days). Longer times count in the last one.
pub const CELLS: usize = 96;

/// Ten to the power of k tenths, for k from 0 to 9, times 10^9.
const TENTHS: [u64; 10] = [
    1_000_000_000,
    1_258_925_411,
    1_584_893_192,
    1_995_262_314,
    2_511_886_431,
    3_162_277_660,
    3_981_071_705,
    5_011_872_336,
    6_309_573_444,
    7_943_282_347,
];

/// The inclusive upper bound of each cell, in ms. Low cells are narrower than 1 ms; some of them have no whole number.
const BOUNDS: [u64; CELLS] = bounds();

const fn bounds() -> [u64; CELLS] {
    let mut bounds = [0; CELLS];
    let mut cell = 1;
    while cell < CELLS {
        let (decade, tenth) = ((cell - 1) / 10, (cell - 1) % 10);
        bounds[cell] = (TENTHS[tenth] as u128 * 10_u128.pow(decade as u32) / 1_000_000_000) as u64;
        cell += 1;
    }
    bounds
}

/// The first cell whose bound has this number of bits or more.
const FIRST: [u8; 65] = first();

const fn first() -> [u8; 65] {
    let mut first = [(CELLS - 1) as u8; 65];
    let mut bits = 0;
    while bits <= 64 {
        let mut cell = 0;
        while cell < CELLS {
            if 64 - BOUNDS[cell].leading_zeros() as usize >= bits {
                first[bits] = cell as u8;
                break;
            }
            cell += 1;
        }
        bits += 1;
    }
    first
}

/// The cell of a time in ms. Compares at most five bounds.
pub fn cell_of(ms: u64) -> usize {
    let mut cell = usize::from(FIRST[64 - ms.leading_zeros() as usize]);
    while cell < CELLS - 1 && BOUNDS[cell] < ms {
        cell += 1;
    }
    cell
}

/// The counts of times by cell, without the empty cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The cell and its count, by cell.
    cells: Vec<(u8, u64)>,
}

impl Histogram {
    /// The histogram of these counts by cell; at most [`CELLS`] of them count.
    pub fn of_counts(counts: impl IntoIterator<Item = u64>) -> Self {
        let cells = counts.into_iter().take(CELLS).enumerate();
        Self { cells: cells.filter(|(_, n)| *n > 0).map(|(cell, n)| (cell as u8, n)).collect() }
    }

    /// Counts a time in ms.
    pub fn add(&mut self, ms: u64) {
        self.merge(&Self { cells: vec![(cell_of(ms) as u8, 1)] });
    }

    /// Adds the counts of another histogram, saturating.
    pub fn merge(&mut self, other: &Self) {
        for (cell, count) in &other.cells {
            match self.cells.binary_search_by_key(cell, |(cell, _)| *cell) {
                Ok(at) => self.cells[at].1 = self.cells[at].1.saturating_add(*count),
                Err(at) => self.cells.insert(at, (*cell, *count)),
            }
        }
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.cells.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cells that have a time, the shortest times first: the longest time of the cell in ms, and the number of its times.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64)> {
        self.cells.iter().map(|(cell, count)| (range(*cell).1, *count))
    }

    /// The number of times of at most `ms`. A cell that `ms` is inside of counts in proportion.
    pub fn count_up_to(&self, ms: u64) -> u64 {
        let within = |(cell, count): &(u8, u64)| {
            let (low, high) = range(*cell);
            match () {
                () if high <= ms => *count,
                () if low > ms => 0,
                () => (*count as f64 * (ms - low + 1) as f64 / (high - low + 1) as f64) as u64,
            }
        };
        self.cells.iter().map(within).sum()
    }

    /// The smallest time that at least `share` (0 to 1) of the times do not exceed, in ms, off by at most 12.3 %. `None`
    /// without a time.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut below = 0_u64;
        let found = self.cells.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank
        });
        let (cell, _) = found.or(self.cells.last())?;
        let (low, high) = range(*cell);
        Some(((low as f64 * high as f64).sqrt().round()) as u64)
    }

    /// Appends the histogram: the number of cells, then of each the distance from the cell before and the count.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        varint::put(bytes, self.cells.len() as u64);
        let mut last = 0;
        for (cell, count) in &self.cells {
            varint::put(bytes, u64::from(cell - last));
            varint::put(bytes, *count);
            last = *cell;
        }
    }

    /// Takes a histogram from the start of `bytes`; `None` for bytes that are none.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let len = varint::take(bytes)?;
        let mut cells: Vec<(u8, u64)> = Vec::new();
        for at in 0..len {
            let last = cells.last().map_or(0, |(cell, _)| u64::from(*cell));
            let distance = varint::take(bytes)?;
            let cell = last.checked_add(distance).filter(|cell| *cell < CELLS as u64)?;
            let count = varint::take(bytes)?;
            if (at > 0 && distance == 0) || count == 0 {
                return None;
            }
            cells.push((cell as u8, count));
        }
        Some(Self { cells })
    }
}

/// The smallest and the largest whole number of a cell.
fn range(cell: u8) -> (u64, u64) {
    let high = BOUNDS[usize::from(cell)];
    let low = if cell == 0 { 0 } else { BOUNDS[usize::from(cell) - 1] + 1 };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_cell_whose_bounds_it_is_between() {
        for ms in (0..100_000).chain((17..32).map(|bits| (1 << bits) - 1)) {
            let cell = cell_of(ms);
            assert!(BOUNDS[cell] >= ms && (cell == 0 || BOUNDS[cell - 1] < ms), "{ms} in {cell}");
        }
        assert_eq!(cell_of(u64::MAX), CELLS - 1);
    }

    #[test]
    fn percentiles_are_within_an_eighth_of_the_exact_ones() {
        // A few distributions: even, with a long tail, constant, and of two heaps.
        let mut seed = 1_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let cases: [Vec<u64>; 4] = [
            (0..5_000).map(|_| next() % 30_000).collect(),
            (0..5_000).map(|_| (1.003_f64.powi((next() % 5_000) as i32)) as u64).collect(),
            vec![1_234; 100],
            (0..5_000)
                .map(|n| if n % 10 == 0 { 240_000 + next() % 60_000 } else { 40 + next() % 9 })
                .collect(),
        ];
        for mut times in cases {
            let mut histogram = Histogram::default();
            for ms in &times {
                histogram.add(*ms);
            }
            times.sort_unstable();
            for share in [0.01, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let exact = times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
                let found = histogram.percentile(share).unwrap();
                let off = (found as f64 - exact as f64).abs();
                // A whole number of ms can be half a millisecond off besides.
                assert!(off <= exact as f64 * 0.123 + 0.5, "{share}: {found}, exactly {exact}");
            }
        }
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let (mut whole, mut odd, mut even) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for ms in 0..3_000_u64 {
            let ms = ms * ms;
            whole.add(ms);
            if ms % 2 == 0 { even.add(ms) } else { odd.add(ms) }
        }
        even.merge(&odd);
        assert_eq!(even, whole);
        assert_eq!(whole.count(), 3_000);
        assert_eq!(whole.count_up_to(u64::MAX), 3_000);
        let exact = 1_001.0;
        assert!((whole.count_up_to(1_000_000) as f64 - exact).abs() / exact < 0.05);
    }

    #[test]
    fn bytes_come_back() {
        let mut histogram = Histogram::default();
        for ms in [0, 0, 1, 7, 900, 86_400_000, u64::MAX] {
            histogram.add(ms);
        }
        let mut bytes = Vec::new();
        histogram.encode(&mut bytes);
        assert_eq!(Histogram::decode(&mut bytes.as_slice()), Some(histogram));
    }
}
