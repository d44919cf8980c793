//! Consumers that take one job at a time, each on its own connection, as queues without batches are used.

use std::rc::Rc;
use std::time::Instant;

use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::tally::Tally;
use super::target::Target;
use crate::http::Answer;

/// The protocol of a queue without batches.
pub struct SlotProtocol {
    /// The request of this slot for one job; the response waits for a job.
    pub take: fn(slot: usize) -> Vec<u8>,
    /// The report that a taken job is done, built from the response that delivered it.
    pub done: fn(slot: usize, taken: &[u8]) -> Vec<u8>,
    /// The server's address and protocol.
    pub dial: Target,
}

/// Consumers with one slot each.
pub struct Slots {
    manner: SlotProtocol,
    tally: Rc<Tally>,
    first_line: ConnectionId,
    /// Whether the request in flight of each slot is a report.
    reports: Vec<bool>,
}

impl Slots {
    /// Creates `count` consumers, numbered from 0.
    pub fn new(manner: SlotProtocol, count: usize, tally: Rc<Tally>) -> Self {
        Self { manner, tally, first_line: 0, reports: vec![false; count] }
    }
}

impl Role for Slots {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.reports.len(), self.manner.dial)?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, _: Instant) -> Result<(), String> {
        let mut slots = 0..self.reports.len();
        slots.try_for_each(|slot| event_loop.send(self.first_line + slot, &(self.manner.take)(slot)))
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        let slot = line - self.first_line;
        self.reports[slot] = !self.reports[slot];
        if self.reports[slot] {
            return event_loop.send(line, &(self.manner.done)(slot, &answer.body));
        }
        self.tally.finish();
        event_loop.send(line, &(self.manner.take)(slot))
    }

    fn is_done(&self) -> bool {
        self.tally.is_settled()
    }
}
