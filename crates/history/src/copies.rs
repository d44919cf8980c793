//! Copies of minutes for other servers: as bytes, so that a server that goes on with the same endpoints can add them to its own files.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::files::Block;
use crate::history::lock;

/// Copies that wait for a place outside of this server: those of 12 h. Older ones are dropped.
const COPIES_MAX: usize = 720;

/// A minute of all endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteCopy {
    /// The number of the minute since 1970.
    pub minute: u64,
    /// The minute in the format of the files.
    pub bytes: Vec<u8>,
}

/// The copies that were not taken yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<VecDeque<MinuteCopy>>);

impl Copies {
    pub(crate) fn keep(&self, block: &Block) {
        self.keep_all([MinuteCopy { minute: block.unit, bytes: block.encode() }]);
    }

    fn keep_all(&self, more: impl IntoIterator<Item = MinuteCopy>) {
        let mut copies = lock(&self.0);
        copies.extend(more);
        let excess = copies.len().saturating_sub(COPIES_MAX);
        copies.drain(..excess);
    }

    pub(crate) fn take(&self) -> Vec<MinuteCopy> {
        std::mem::take(&mut *lock(&self.0)).into()
    }

    pub(crate) fn give_back(&self, taken: Vec<MinuteCopy>) {
        let later = self.take();
        self.keep_all(taken.into_iter().chain(later));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_back_in_their_order_and_the_oldest_are_dropped() {
        let copies = Copies::default();
        let block = |unit| Block { unit, ..Block::default() };
        copies.keep(&block(0));
        let taken = copies.take();
        (1..=COPIES_MAX as u64).for_each(|unit| copies.keep(&block(unit)));
        copies.give_back(taken);
        let minutes: Vec<_> = copies.take().iter().map(|copy| copy.minute).collect();
        assert_eq!(minutes, (1..=COPIES_MAX as u64).collect::<Vec<_>>());
    }
}
