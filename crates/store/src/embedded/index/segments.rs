//! The segments that belong to the log, and how much of each is still needed.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::record_ref::{RecordRef, SLOTS_MAX};

/// A segment of the log.
#[derive(Debug)]
pub(in super::super) struct Segment {
    /// Its number.
    pub number: u64,
    /// Makes its frames its own.
    pub salt: u64,
    /// The file. Readers share it.
    pub file: Arc<File>,
    /// Where its frames end.
    pub end: u32,
    /// What of it is needed, by [`RecordRef::bytes`].
    pub live_bytes: u64,
}

/// All of them: by slot for places, and in their order.
#[derive(Debug, Default)]
pub(in super::super) struct Segments {
    slots: Vec<Option<Segment>>,
    /// Slots, the oldest segment's first.
    order: VecDeque<usize>,
    bytes: u64,
    live_bytes: u64,
}

impl Segments {
    /// Adds the newest; answers its slot, or `None` if there are too many.
    pub fn push(&mut self, segment: Segment) -> Option<usize> {
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.slots.len() < SLOTS_MAX => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => return None,
        };
        self.bytes += u64::from(segment.end);
        self.slots[slot] = Some(segment);
        self.order.push_back(slot);
        Some(slot)
    }

    /// Takes the oldest away if its number is below this.
    pub fn pop_before(&mut self, number: u64) -> Option<Segment> {
        self.iter().next().filter(|oldest| oldest.number < number)?;
        let segment = self.slots[self.order.pop_front()?].take()?;
        self.bytes -= u64::from(segment.end);
        self.live_bytes -= segment.live_bytes;
        Some(segment)
    }

    /// The segment in a slot.
    pub fn get(&self, slot: usize) -> Option<&Segment> {
        self.slots.get(slot)?.as_ref()
    }

    /// Their slots, the oldest first.
    pub fn slots(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.order.iter().copied()
    }

    /// The oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.order.iter().filter_map(|&slot| self.get(slot))
    }

    /// Its frames now end here.
    pub fn set_end(&mut self, slot: usize, end: u32) {
        if let Some(segment) = self.slots[slot].as_mut() {
            self.bytes = self.bytes - u64::from(segment.end) + u64::from(end);
            segment.end = end;
        }
    }

    /// What is there is needed.
    pub fn needed(&mut self, place: RecordRef) {
        if let Some(segment) = self.slots[place.slot()].as_mut() {
            segment.live_bytes += place.bytes();
            self.live_bytes += place.bytes();
        }
    }

    /// What is there is needed no more.
    pub fn dead(&mut self, place: RecordRef) {
        if let Some(segment) = self.slots[place.slot()].as_mut() {
            segment.live_bytes -= place.bytes();
            self.live_bytes -= place.bytes();
        }
    }

    /// What all of them have, and what of it is needed.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes, self.live_bytes)
    }
}
