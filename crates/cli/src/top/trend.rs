//! The number of queued jobs over the session, as a line of small bars.

use std::collections::{BTreeMap, VecDeque};

use super::reading::EndpointRow;

/// Most readings that are remembered for each endpoint.
const READINGS_MAX: usize = 60;
/// Bars for the smallest to the largest value.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The number of queued jobs of each endpoint at the last readings, by the endpoint's id.
#[derive(Default)]
pub(super) struct Trends {
    queued: BTreeMap<String, VecDeque<u64>>,
}

impl Trends {
    /// Adds the present values, and writes the last ones into the rows.
    pub(super) fn fill(&mut self, rows: &mut [EndpointRow]) {
        self.queued.retain(|id, _| rows.iter().any(|row| row.id == *id));
        for row in rows {
            let queued = self.queued.entry(row.id.clone()).or_default();
            if queued.len() == READINGS_MAX {
                queued.pop_front();
            }
            queued.push_back(row.queued);
            row.trend = queued.iter().copied().collect();
        }
    }
}

/// The last values as bars, at most `width` of them. The largest of these has the full height; 0 has the lowest bar, and
/// only 0.
pub(super) fn bars(values: &[u64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let max = values.iter().copied().max().unwrap_or(0).max(1);
    let highest = BARS.len() as u64 - 1;
    let bar =
        |value: &u64| BARS[(u128::from(*value) * u128::from(highest)).div_ceil(u128::from(max)) as usize];
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_largest_value_shown() {
        assert_eq!(bars(&[0, 1, 50, 100], 8), "▁▂▅█");
        assert_eq!(bars(&[0, 0], 8), "▁▁");
        assert_eq!(bars(&[1_000, 1, 2], 2), "▅█", "values that are not shown do not count");
        assert_eq!(bars(&[u64::MAX, u64::MAX / 2], 2), "█▅");
        assert_eq!(bars(&[], 8), "");
    }

    #[test]
    fn each_endpoint_keeps_its_last_values() {
        let mut trends = Trends::default();
        let row = |id: &str, queued| EndpointRow { id: id.to_owned(), queued, ..EndpointRow::default() };
        for queued in 0..70 {
            let mut rows = [row("a", queued), row("b", 1)];
            trends.fill(&mut rows);
            assert_eq!(rows[0].trend.last(), Some(&queued));
            assert!(rows[0].trend.len() <= READINGS_MAX);
        }
        let mut rows = [row("a", 7)];
        trends.fill(&mut rows);
        assert_eq!((rows[0].trend.len(), rows[0].trend[0]), (READINGS_MAX, 11));
        assert_eq!(trends.queued.len(), 1, "a deleted endpoint is forgotten");
    }
}
