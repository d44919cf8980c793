//! Random numbers that depend on the seed only.

use std::ops::RangeInclusive;

/// A source of random numbers. Sources with the same seed return the same numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    rng: fastrand::Rng,
}

impl Rng {
    /// Creates the source of a seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed) }
    }

    /// Returns an independent source, for a party that must not change this one's order.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self { rng: self.rng.fork() }
    }

    /// Returns true with this probability, 0 to 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Returns a number of the range, uniformly.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.rng.u64(range)
    }

    /// Returns a number of the range whose order of magnitude is uniform: small numbers are more likely.
    pub fn skewed(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = ((*range.start() + 1) as f64, (*range.end() + 1) as f64);
        let power = low.ln() + self.rng.f64() * (high.ln() - low.ln());
        (power.exp() as u64 - 1).clamp(*range.start(), *range.end())
    }

    /// Returns a random item of a nonempty slice.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.rng.usize(..items.len())]
    }

    /// Returns 128 random bits.
    pub fn bits(&mut self) -> u128 {
        self.rng.u128(..)
    }
}
