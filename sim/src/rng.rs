//! Chance, from the seed alone.

use std::ops::RangeInclusive;

/// A source of chance. Two with the same seed answer alike.
#[derive(Clone, Debug)]
pub struct Rng {
    rng: fastrand::Rng,
}

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed) }
    }

    /// Another source, for somebody who must not disturb the order of this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self { rng: self.rng.fork() }
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// One of the numbers, each as likely.
    pub fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.rng.u64(range)
    }

    /// A number of the range whose order of magnitude is as likely as any other's: mostly small, at times large.
    pub fn skewed(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = ((*range.start() + 1) as f64, (*range.end() + 1) as f64);
        let power = low.ln() + self.rng.f64() * (high.ln() - low.ln());
        (power.exp() as u64 - 1).clamp(*range.start(), *range.end())
    }

    /// One of the items, each as likely. There must be one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.rng.usize(..items.len())]
    }

    /// 128 random bits.
    pub fn bits(&mut self) -> u128 {
        self.rng.u128(..)
    }
}
