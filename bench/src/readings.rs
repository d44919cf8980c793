//! Measured numbers of each repetition, and their summary.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::load::Times;

/// The numbers of one repetition by name. A name ends with its unit.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Readings {
    values: BTreeMap<String, f64>,
}

impl Readings {
    /// Stores a number. A value that is not finite, such as 0/0, is ignored and counts as missing.
    pub fn put(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.values.insert(name.into(), value);
        }
    }

    /// Stores the quantiles of a histogram.
    pub fn put_times(&mut self, name: &str, times: &Times) {
        self.put(format!("{name}.mean_us"), times.mean_us());
        for (quantile, share) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
            self.put(format!("{name}.{quantile}"), times.quantile_us(share));
        }
        self.put(format!("{name}.max_us"), times.longest_us());
    }

    /// Stores all numbers of another measurement, each as `name.NUMBER`.
    pub fn put_all(&mut self, name: &str, others: &Self) {
        for (other, value) in &others.values {
            self.put(format!("{name}.{other}"), *value);
        }
    }

    /// Returns a number; `None` if it was not measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// Returns the ratio of two numbers; `None` if one is missing.
    pub fn ratio(&self, over: &str, under: &str) -> Option<f64> {
        Some(self.get(over)? / self.get(under)?)
    }

    /// Returns the names of all numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}

/// One number over all repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value of the repetitions.
    pub min: f64,
    /// The median; of an even number of values the mean of the middle two.
    pub median: f64,
    /// The largest value of the repetitions.
    pub max: f64,
    /// Number of values that are summarized.
    pub repetitions: usize,
}

impl Spread {
    /// Returns the summary; `None` without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { min, median: f64::midpoint(low, high), max, repetitions: values.len() })
    }
}

/// Summarizes every number over all repetitions, by name.
pub fn spreads(repetitions: &[Readings]) -> BTreeMap<&str, Spread> {
    let names = repetitions.iter().flat_map(Readings::names);
    let spread = |name: &str| Spread::of(repetitions.iter().filter_map(|readings| readings.get(name)));
    names.filter_map(|name| Some((name, spread(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_median_in_the_middle() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.min, spread.median, spread.max, spread.repetitions), (1.0, 2.0, 3.0, 3));
        assert!((Spread::of([1.0, 4.0]).unwrap().median - 2.5).abs() < 1e-9);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
    }

    #[test]
    fn another_measurement_keeps_its_numbers_apart() {
        let (mut own, mut other) = (Readings::default(), Readings::default());
        own.put("a", 1.0);
        other.put("a", 2.0);
        own.put_all("log", &other);
        assert_eq!((own.get("a"), own.get("log.a")), (Some(1.0), Some(2.0)));
    }

    #[test]
    fn ratios_need_both_numbers() {
        let mut readings = Readings::default();
        readings.put("a_per_s", 10.0);
        assert_eq!(readings.ratio("a_per_s", "b_per_s"), None);
        readings.put("b_per_s", f64::NAN);
        assert_eq!(readings.get("b_per_s"), None);
        readings.put("b_per_s", 20.0);
        assert_eq!(readings.ratio("a_per_s", "b_per_s"), Some(0.5));
    }

    #[test]
    fn numbers_are_spread_over_the_repetitions_that_have_them() {
        let mut repetitions = vec![Readings::default(), Readings::default()];
        repetitions[0].put("a", 1.0);
        repetitions[1].put("a", 3.0);
        repetitions[0].put("once", 7.0);
        let spreads = spreads(&repetitions);
        assert_eq!((spreads["a"].median, spreads["once"].repetitions), (2.0, 1));
    }
}
