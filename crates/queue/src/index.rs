//! An index over the jobs, in little memory.
//!
//! There is one by id, one by place in the queue and one by deadline, and in all three most entries come in
//! their order. A `BTreeMap` that is filled in order leaves its nodes half empty: of a million waiting jobs, these
//! three took 105 MB. Here the nodes are full then, and an entry has no padding: they take 47 MB.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::jobs::Slot;

/// The most entries of a chunk.
const CHUNK: usize = 64;

/// Slots of jobs in the order of their keys. Jobs can have the same key.
#[derive(Debug)]
pub(crate) struct Index<K: Copy> {
    /// The entries in order, in chunks; none is empty. A million jobs have 16 000: to move them all in order to
    /// make place for one takes microseconds, and happens once in 32 inserts at most.
    chunks: VecDeque<Vec<Entry<K>>>,
    len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(Rust, packed)]
struct Entry<K> {
    key: K,
    slot: Slot,
}

impl<K: Copy> Default for Index<K> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), len: 0 }
    }
}

impl<K: Copy + Ord> Index<K> {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry with the least key.
    pub(crate) fn first(&self) -> Option<(K, Slot)> {
        self.chunks.front()?.first().map(|entry| (entry.key, entry.slot))
    }

    /// How many entries have a key below this one. It adds up the lengths of the chunks, which takes 40 µs at a million
    /// entries.
    pub(crate) fn len_below(&self, key: K) -> u64 {
        let end = Entry { key, slot: Slot::MIN };
        let chunks = self.chunks.partition_point(|chunk| chunk[0] < end);
        let Some(cut) = chunks.checked_sub(1) else { return 0 };
        let whole: usize = self.chunks.range(..cut).map(Vec::len).sum();
        (whole + self.chunks[cut].partition_point(|entry| *entry < end)) as u64
    }

    /// The job with this key; the one in the last slot, if there are several.
    pub(crate) fn find(&self, key: K) -> Option<Slot> {
        let last = Entry { key, slot: Slot::MAX };
        let chunk = &self.chunks[self.chunks_up_to(last).checked_sub(1)?];
        let up_to =
            if *chunk.last()? <= last { chunk.len() } else { chunk.partition_point(|entry| *entry <= last) };
        let Entry { key: found, slot } = chunk[up_to - 1];
        (key == found).then_some(slot)
    }

    /// The entries before a key (none: all), the last one first.
    pub(crate) fn descending(&self, before: Option<K>) -> impl Iterator<Item = (K, Slot)> {
        let end = before.map(|key| Entry { key, slot: Slot::MIN });
        let chunks = end.map_or(self.chunks.len(), |end| self.chunks_up_to(end));
        let until = move |entry: &Entry<K>| end.is_none_or(|end| *entry < end);
        let chunks = self.chunks.range(..chunks).rev();
        chunks
            .flat_map(move |chunk| chunk[..chunk.partition_point(until)].iter().rev())
            .map(|entry| (entry.key, entry.slot))
    }

    /// Whether there is an entry of this job with this key.
    pub(crate) fn contains(&self, key: K, slot: Slot) -> bool {
        let entry = Entry { key, slot };
        let at = self.chunks_up_to(entry).checked_sub(1);
        at.is_some_and(|at| self.chunks[at].binary_search(&entry).is_ok())
    }

    /// Adds an entry; whether it was missing.
    pub(crate) fn insert(&mut self, key: K, slot: Slot) -> bool {
        let entry = Entry { key, slot };
        let above = self.chunks_up_to(entry);
        let chunk = above.checked_sub(1).map(|at| &mut self.chunks[at]);
        let Some(chunk) = chunk.filter(|chunk| chunk.len() < CHUNK || chunk[CHUNK - 1] >= entry) else {
            self.insert_at_edge(above, entry);
            return true;
        };
        if chunk[chunk.len() - 1] < entry {
            chunk.push(entry);
            self.len += 1;
            return true;
        }
        let Err(at) = chunk.binary_search(&entry) else { return false };
        self.len += 1;
        if chunk.len() < CHUNK {
            chunk.insert(at, entry);
            return true;
        }
        // What comes next in an order goes on filling the lower part.
        let upper = chunk_of(&chunk[at..]);
        chunk.truncate(at);
        chunk.push(entry);
        self.chunks.insert(above, upper);
        true
    }

    /// Inserts what comes after a full chunk, or before all of them: into the next one, if that has room.
    fn insert_at_edge(&mut self, above: usize, entry: Entry<K>) {
        match self.chunks.get_mut(above) {
            Some(chunk) if chunk.len() < CHUNK => chunk.insert(0, entry),
            _ => self.chunks.insert(above, chunk_of(&[entry])),
        }
        self.len += 1;
    }

    /// Removes an entry; whether it was there.
    pub(crate) fn remove(&mut self, key: K, slot: Slot) -> bool {
        let entry = Entry { key, slot };
        let Some(at) = self.chunks_up_to(entry).checked_sub(1) else { return false };
        let chunk = &mut self.chunks[at];
        let place = if chunk[0] == entry { Ok(0) } else { chunk.binary_search(&entry) };
        let Ok(place) = place else { return false };
        chunk.remove(place);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        } else if chunk.len() <= CHUNK / 4 && chunk.len().is_power_of_two() {
            // Not at each step: jobs come and go in their order, so that the first chunk is mostly a small one.
            self.join(at);
            self.join(at.saturating_sub(1));
        }
        true
    }

    /// Moves the next chunk into this one, if together they leave room to grow.
    fn join(&mut self, at: usize) {
        let len = self.chunks.range(at..).take(2).map(Vec::len).sum::<usize>();
        if len <= CHUNK / 2
            && let Some(next) = self.chunks.remove(at + 1)
        {
            self.chunks[at].extend(next);
        }
    }

    /// Every entry, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, Slot)> {
        self.chunks.iter().flatten().map(|entry| (entry.key, entry.slot))
    }

    /// How many chunks begin with this entry or one before it. Most questions are about either end, as jobs come and go
    /// in their order: those are answered without a search, which misses the processor's cache at every step.
    fn chunks_up_to(&self, entry: Entry<K>) -> usize {
        if self.chunks.back().is_some_and(|last| last[0] <= entry) {
            return self.chunks.len();
        }
        if self.chunks.get(1).is_some_and(|second| entry < second[0]) {
            return usize::from(self.chunks[0][0] <= entry);
        }
        self.chunks.partition_point(|chunk| chunk[0] <= entry)
    }
}

fn chunk_of<K: Copy>(entries: &[Entry<K>]) -> Vec<Entry<K>> {
    let mut chunk = Vec::with_capacity(CHUNK);
    chunk.extend_from_slice(entries);
    chunk
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    fn slot(number: u64) -> Slot {
        Slot::numbered(number as u32)
    }

    fn filled(keys: impl Iterator<Item = u64>) -> Index<u64> {
        let mut index = Index::default();
        for key in keys {
            index.insert(key, slot(key));
        }
        index
    }

    /// The index must hold these, in any question.
    fn compare(index: &Index<u64>, expected: &BTreeSet<(u64, Slot)>) {
        assert!(index.iter().eq(expected.iter().copied()));
        assert_eq!((index.len(), index.first()), (expected.len() as u64, expected.first().copied()));
        assert!(index.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK));
        for key in 0..40 {
            let with_key = expected.range((key, Slot::MIN)..=(key, Slot::MAX)).next_back();
            assert_eq!(index.find(key), with_key.map(|(_, slot)| *slot));
            let before = expected.range(..(key, Slot::MIN)).rev().copied();
            assert!(index.descending(Some(key)).eq(before.clone()));
            assert_eq!(index.len_below(key), before.count() as u64);
        }
        assert!(index.descending(None).eq(expected.iter().rev().copied()));
    }

    #[test]
    fn holds_what_a_set_would_whatever_comes_and_goes() {
        let (mut index, mut expected) = (Index::default(), BTreeSet::new());
        let mut dice = 7_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % sides
        };
        for round in 0..40_000 {
            let (key, slot) = (roll(40), slot(roll(30)));
            // It swells and shrinks, so that chunks are split and joined.
            let inserts = if round / 4_000 % 2 == 0 { 7 } else { 3 };
            if roll(10) < inserts {
                index.insert(key, slot);
                expected.insert((key, slot));
            } else {
                index.remove(key, slot);
                expected.remove(&(key, slot));
            }
            if round % 100 == 0 {
                compare(&index, &expected);
            }
        }
    }

    #[test]
    fn what_comes_in_order_fills_the_chunks() {
        let chunks = 1000;
        let count = (CHUNK * chunks) as u64;
        assert_eq!(filled(0..count).chunks.len(), chunks);
        assert_eq!(filled((0..count).rev()).chunks.len(), chunks);
        // Nearly in order.
        let nearly = filled((0..count).map(|number| number ^ 3)).chunks.len();
        assert!(nearly <= chunks * 11 / 10, "{nearly}");
        // Two kinds that come in order, one before the other.
        let both = filled((0..count).map(|number| number / 2 + number % 2 * count)).chunks.len();
        assert!(both <= chunks * 11 / 10, "{both}");
    }

    #[test]
    fn few_that_are_left_take_few_chunks() {
        let count = CHUNK as u64 * 1000;
        let is_left = |key: &u64| key.is_multiple_of(100);
        let gone: Vec<u64> = (0..count).filter(|key| !is_left(key)).collect();
        for gone in [gone.clone(), gone.into_iter().rev().collect()] {
            let mut index = filled(0..count);
            for key in gone {
                index.remove(key, slot(key));
            }
            assert!(index.iter().map(|(key, _)| key).eq((0..count).filter(is_left)));
            assert!(index.chunks.len() <= 10 + 8 * index.len() as usize / CHUNK, "{}", index.chunks.len());
        }
    }

    #[test]
    fn an_entry_has_no_padding() {
        assert_eq!(size_of::<Entry<u64>>(), 12);
        assert_eq!(size_of::<Entry<longshore_model::JobId>>(), 21);
    }
}
