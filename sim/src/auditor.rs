//! Checks the promises from outside: it knows what clients, workers and receivers saw, and nothing else.

use crate::seen::{Moment, Seen};

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it showed.
    pub at: Moment,
    /// Which promise, in short.
    pub promise: &'static str,
    /// What was seen.
    pub text: String,
}

/// Checks the promises.
#[derive(Default)]
pub struct Auditor {
    violations: Vec<Violation>,
}

impl Auditor {
    /// Takes note of what was seen.
    pub fn see(&mut self, _at: Moment, _seen: &Seen) {}

    /// What was not kept, in the order in which it showed.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
