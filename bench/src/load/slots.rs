//! Consumers that take one job at a time, each on a connection of its own: how queues without batches are used.

use std::rc::Rc;
use std::time::Instant;

use super::dial::Dial;
use super::tally::Tally;
use super::wire::{LineId, Role, Wire, must_be_200};
use crate::http::Answer;

/// How such a queue is spoken to.
pub struct Manner {
    /// Asks for a job and waits until there is one; in this slot.
    pub take: fn(slot: usize) -> Vec<u8>,
    /// Reports that the taken job is done, from the answer that brought it.
    pub done: fn(slot: usize, taken: &[u8]) -> Vec<u8>,
    /// Where both are said.
    pub dial: Dial,
}

/// Some consumers.
pub struct Slots {
    manner: Manner,
    tally: Rc<Tally>,
    first_line: LineId,
    /// Whether the open question of each slot is a report.
    reports: Vec<bool>,
}

impl Slots {
    /// So many of them.
    pub fn new(manner: Manner, count: usize, tally: Rc<Tally>) -> Self {
        Self { manner, tally, first_line: 0, reports: vec![false; count] }
    }
}

impl Role for Slots {
    fn open(&mut self, wire: &mut Wire) -> Result<(), String> {
        for slot in 0..self.reports.len() {
            let line = wire.open(self.manner.dial)?;
            if slot == 0 {
                self.first_line = line;
            }
        }
        Ok(())
    }

    fn begin(&mut self, wire: &mut Wire, _: Instant) -> Result<(), String> {
        let mut slots = 0..self.reports.len();
        slots.try_for_each(|slot| wire.send(self.first_line + slot, &(self.manner.take)(slot)))
    }

    fn answered(&mut self, wire: &mut Wire, line: LineId, answer: &Answer<'_>) -> Result<(), String> {
        must_be_200(answer)?;
        let slot = line - self.first_line;
        self.reports[slot] = !self.reports[slot];
        if self.reports[slot] {
            return wire.send(line, &(self.manner.done)(slot, &answer.body));
        }
        self.tally.finish();
        wire.send(line, &(self.manner.take)(slot))
    }

    fn is_done(&self) -> bool {
        self.tally.is_settled()
    }
}
