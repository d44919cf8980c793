//! The latest steps of one endpoint, in a bounded number of bytes.

use std::collections::VecDeque;

use crate::{Record, varint};

/// Steps of one length, the oldest first. Steps in which nothing happened are not stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    /// Each step: its distance from the one before, the length of its record, and the record.
    bytes: VecDeque<u8>,
    /// The number of the oldest stored step.
    first: u64,
    last: u64,
    len: usize,
    /// Steps before this one were removed, so that nothing is known of them.
    known_from: u64,
}

impl Ring {
    /// A ring that knows of no step before `step`.
    pub(crate) fn from_step(step: u64) -> Self {
        Self { known_from: step, ..Self::default() }
    }

    /// Appends a step, and removes those before `oldest` and as many as do not fit in `bytes_max`. Steps ascend.
    pub(crate) fn push(&mut self, step: u64, record: &Record, oldest: u64, bytes_max: usize) {
        if !record.is_idle() {
            let (mut encoded, mut entry) = (Vec::new(), Vec::new());
            record.encode(&mut encoded);
            if self.len == 0 {
                (self.first, self.last) = (step, step);
            }
            varint::put(&mut entry, step - self.last);
            varint::put(&mut entry, encoded.len() as u64);
            self.bytes.extend(entry.into_iter().chain(encoded));
            self.last = step;
            self.len += 1;
        }
        while self.len > 0 && (self.first < oldest || self.bytes.len() > bytes_max) {
            self.remove_first();
        }
        self.known_from = self.known_from.max(oldest);
    }

    fn remove_first(&mut self) {
        let mut rest: &[u8] = self.bytes.make_contiguous();
        let before = rest.len();
        let parsed = varint::take(&mut rest).and_then(|_| varint::take_bytes(&mut rest));
        debug_assert!(parsed.is_some(), "only whole steps are stored");
        let taken = before - rest.len();
        let next = varint::take(&mut rest);
        self.known_from = self.first + 1;
        self.bytes.drain(..taken);
        self.len -= 1;
        self.first += next.unwrap_or_default();
    }

    /// The first step of which something is known.
    pub(crate) fn known_from(&self) -> u64 {
        self.known_from
    }

    /// The number of stored bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The stored steps with their records, the oldest first.
    pub(crate) fn steps(&self) -> Vec<(u64, Record)> {
        self.steps_from(0)
    }

    /// The same without the steps before `from`, which are not decoded.
    pub(crate) fn steps_from(&self, from: u64) -> Vec<(u64, Record)> {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let (mut rest, mut steps) = (bytes.as_slice(), Vec::new());
        let (mut step, mut is_first) = (self.first, true);
        while let Some(distance) = varint::take(&mut rest) {
            step += if std::mem::take(&mut is_first) { 0 } else { distance };
            let Some(record) = varint::take_bytes(&mut rest) else { break };
            if step >= from {
                let Some(record) = Record::decode(record) else { break };
                steps.push((step, record));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::busy;

    #[test]
    fn the_latest_steps_stay_within_the_bytes() {
        let mut ring = Ring::from_step(100);
        for step in 100..1_000 {
            let record = if step % 3 == 0 { Record::default() } else { busy(step % 7) };
            ring.push(step, &record, step.saturating_sub(450), 4_000);
            assert!(ring.len_bytes() <= 4_000);
        }
        let steps = ring.steps();
        assert!(steps.len() > 30 && steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(steps.last().map(|(step, record)| (*step, record.clone())), Some((998, busy(998 % 7))));
        assert!(ring.known_from() <= steps[0].0 && ring.known_from() > 100);
        for from in [0, steps[0].0, steps[7].0, 998, 999] {
            let later: Vec<_> = steps.iter().filter(|(step, _)| *step >= from).cloned().collect();
            assert_eq!(ring.steps_from(from), later, "{from}");
        }
    }

    #[test]
    fn old_steps_leave_even_when_nothing_happens() {
        let mut ring = Ring::from_step(0);
        ring.push(1, &busy(3), 0, 4_000);
        ring.push(2, &busy(4), 0, 4_000);
        ring.push(9, &Record::default(), 2, 4_000);
        assert_eq!(ring.steps(), [(2, busy(4))]);
        ring.push(90, &Record::default(), 80, 4_000);
        assert!(ring.steps().is_empty() && ring.known_from() == 80);
    }
}
