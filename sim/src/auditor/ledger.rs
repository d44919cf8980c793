//! Counts checks and transitions, and collects violations.

use super::time_bounds::EventTime;
use super::transitions::Transition;
use super::{Promise, Violation};
use crate::observation::Moment;

/// Most violations that are collected.
const VIOLATIONS_MAX: usize = 100;

/// The counts of checks and transitions, and the violations.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The event that is being processed.
    pub now: EventTime,
    pub violations: Vec<Violation>,
    checked: Vec<u64>,
    transitions: Vec<u64>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            now: EventTime { seq: 0, ms: 0, wall_ms: 0 },
            violations: Vec::new(),
            checked: vec![0; Promise::ALL.len()],
            transitions: vec![0; Transition::ALL.len()],
        }
    }
}

impl Ledger {
    /// Starts the next event.
    pub fn advance(&mut self, at: Moment) {
        self.now = EventTime { seq: self.now.seq + 1, ms: at.ms, wall_ms: at.wall_ms };
    }

    /// Counts a check, and records a violation if the promise is broken.
    pub fn check(&mut self, promise: Promise, holds: bool, text: impl FnOnce() -> String) {
        self.checked[promise as usize] += 1;
        if !holds && self.violations.len() < VIOLATIONS_MAX {
            let at = Moment { ms: self.now.ms, wall_ms: self.now.wall_ms };
            self.violations.push(Violation { at, promise: promise.name(), text: text() });
        }
    }

    /// Records a violation without counting a check.
    pub fn fail(&mut self, promise: Promise, text: impl FnOnce() -> String) {
        self.check(promise, false, text);
    }

    /// Counts a transition that certainly happened.
    pub fn count_transition(&mut self, transition: Transition) {
        self.transitions[transition as usize] += 1;
    }

    pub fn checked(&self) -> Vec<(&'static str, u64)> {
        Promise::ALL.iter().map(|promise| (promise.name(), self.checked[*promise as usize])).collect()
    }

    pub fn transitions(&self) -> Vec<(Transition, u64)> {
        Transition::ALL
            .iter()
            .map(|transition| (*transition, self.transitions[*transition as usize]))
            .collect()
    }
}
