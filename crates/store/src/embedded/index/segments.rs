//! The segments of the log, with the live bytes of each.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::record_ref::{RecordRef, SLOTS_MAX};

/// A segment of the log.
#[derive(Debug)]
pub(in super::super) struct Segment {
    /// The segment's number, from 1 without a gap.
    pub number: u64,
    /// The random number that seeds the hashes of its frames.
    pub salt: u64,
    /// The file. Readers share it.
    pub file: Arc<File>,
    /// The offset at which its frames end, in bytes.
    pub end: u32,
    /// The sum of [`RecordRef::bytes`] of its live records.
    pub live_bytes: u64,
}

/// The segments by slot, which places refer to, and in the order of their numbers.
#[derive(Debug, Default)]
pub(in super::super) struct Segments {
    slots: Vec<Option<Segment>>,
    /// Slots, the oldest segment's first.
    order: VecDeque<usize>,
    /// The sum of `end` over all segments.
    bytes: u64,
    /// The sum of `live_bytes` over all segments.
    live_bytes: u64,
}

impl Segments {
    /// Adds the newest segment. Returns its slot; `None` if [`SLOTS_MAX`] are in use.
    pub fn push(&mut self, segment: Segment) -> Option<usize> {
        let newest = self.iter().next_back().map_or(0, |newest| newest.number);
        assert!(segment.number > newest, "segment {} is added behind segment {newest}", segment.number);
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

    /// Removes the oldest segment if its number is below `number`. The caller must find no live record in it.
    pub fn pop_before(&mut self, number: u64) -> Option<Segment> {
        self.iter().next().filter(|oldest| oldest.number < number)?;
        let segment = self.slots[self.order.pop_front()?].take()?;
        self.bytes -= u64::from(segment.end);
        self.live_bytes -= segment.live_bytes;
        Some(segment)
    }

    /// Returns the segment in a slot.
    pub fn get(&self, slot: usize) -> Option<&Segment> {
        self.slots.get(slot)?.as_ref()
    }

    /// Returns the slots, the oldest segment's first.
    pub fn slots(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.order.iter().copied()
    }

    /// Returns the segments, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.order.iter().filter_map(|&slot| self.get(slot))
    }

    /// Sets the offset at which a segment's frames end.
    pub fn set_end(&mut self, slot: usize, end: u32) {
        if let Some(segment) = self.slots[slot].as_mut() {
            self.bytes = self.bytes - u64::from(segment.end) + u64::from(end);
            segment.end = end;
        }
    }

    /// Adds a record to the live bytes of its segment.
    pub fn add_live(&mut self, place: RecordRef) {
        if let Some(segment) = self.slots[place.slot()].as_mut() {
            segment.live_bytes += place.bytes();
            self.live_bytes += place.bytes();
        }
    }

    /// Removes a record that was replaced or deleted from the live bytes of its segment.
    pub fn remove_live(&mut self, place: RecordRef) {
        if let Some(segment) = self.slots[place.slot()].as_mut() {
            assert!(segment.live_bytes >= place.bytes(), "segment {} has live bytes", segment.number);
            segment.live_bytes -= place.bytes();
            self.live_bytes -= place.bytes();
        }
    }

    /// Returns the bytes of all segments and the live bytes among them.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes, self.live_bytes)
    }
}
