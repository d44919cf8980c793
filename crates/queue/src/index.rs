//! An ordered index of jobs that takes little memory: a list of sorted chunks.
//!
//! A queue has one by id, one by position in the queue and one by deadline. In all three, most keys arrive in ascending
//! order, and chunks then stay full. Entries have no padding. The three indexes of a million queued jobs take 47 MB; with
//! `BTreeMap`, whose nodes stay half empty when filled in order, they take 105 MB.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::jobs::Slot;

/// The largest number of entries of a chunk.
const CHUNK: usize = 64;

/// A set of pairs of key and slot, ordered by key, then by slot. Several jobs can have the same key.
#[derive(Debug)]
pub(crate) struct Index<K: Copy> {
    /// The entries in order. No chunk is empty. A million jobs have 16 000 chunks; inserting one into the list moves up to
    /// half of the list, which takes microseconds.
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
    /// The number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether the index has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry; `None` if the index is empty.
    pub(crate) fn first(&self) -> Option<(K, Slot)> {
        self.chunks.front()?.first().map(|entry| (entry.key, entry.slot))
    }

    /// The number of entries with a key below this one. Sums the lengths of the chunks: 40 µs at a million entries.
    pub(crate) fn len_below(&self, key: K) -> u64 {
        let end = Entry { key, slot: Slot::MIN };
        let chunks = self.chunks.partition_point(|chunk| chunk[0] < end);
        let Some(cut) = chunks.checked_sub(1) else { return 0 };
        let whole: usize = self.chunks.range(..cut).map(Vec::len).sum();
        (whole + self.chunks[cut].partition_point(|entry| *entry < end)) as u64
    }

    /// The job with this key: of several, the one with the highest slot. `None` if there is none.
    pub(crate) fn find(&self, key: K) -> Option<Slot> {
        let last = Entry { key, slot: Slot::MAX };
        let chunk = &self.chunks[self.chunks_up_to(last).checked_sub(1)?];
        let up_to =
            if *chunk.last()? <= last { chunk.len() } else { chunk.partition_point(|entry| *entry <= last) };
        let Entry { key: found, slot } = chunk[up_to - 1];
        (key == found).then_some(slot)
    }

    /// The entries with a key below `before` (`None`: all entries), in descending order.
    pub(crate) fn descending(&self, before: Option<K>) -> impl Iterator<Item = (K, Slot)> {
        let end = before.map(|key| Entry { key, slot: Slot::MIN });
        let chunks = end.map_or(self.chunks.len(), |end| self.chunks_up_to(end));
        let until = move |entry: &Entry<K>| end.is_none_or(|end| *entry < end);
        let chunks = self.chunks.range(..chunks).rev();
        chunks
            .flat_map(move |chunk| chunk[..chunk.partition_point(until)].iter().rev())
            .map(|entry| (entry.key, entry.slot))
    }

    /// The entries with a key above `after` (`None`: all entries), in ascending order.
    pub(crate) fn ascending(&self, after: Option<K>) -> impl Iterator<Item = (K, Slot)> {
        let start = after.map(|key| Entry { key, slot: Slot::MAX });
        let first = start.map_or(0, |start| self.chunks_up_to(start).saturating_sub(1));
        let before = move |entry: &Entry<K>| start.is_some_and(|start| *entry <= start);
        let chunks = self.chunks.range(first.min(self.chunks.len())..);
        chunks
            .flat_map(move |chunk| chunk[chunk.partition_point(before)..].iter())
            .map(|entry| (entry.key, entry.slot))
    }

    /// Whether the job has an entry with this key.
    pub(crate) fn contains(&self, key: K, slot: Slot) -> bool {
        let entry = Entry { key, slot };
        let at = self.chunks_up_to(entry).checked_sub(1);
        at.is_some_and(|at| self.chunks[at].binary_search(&entry).is_ok())
    }

    /// Adds the entry and returns `true`; returns `false` if the index has it already.
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
        // The lower part ends with the new entry, so that ascending keys that follow are appended to it.
        let upper = chunk_of(&chunk[at..]);
        chunk.truncate(at);
        chunk.push(entry);
        self.chunks.insert(above, upper);
        true
    }

    /// Inserts an entry that belongs between two chunks, or before the first: into the chunk `above` if that is not full,
    /// else as a new chunk.
    fn insert_at_edge(&mut self, above: usize, entry: Entry<K>) {
        match self.chunks.get_mut(above) {
            Some(chunk) if chunk.len() < CHUNK => chunk.insert(0, entry),
            _ => self.chunks.insert(above, chunk_of(&[entry])),
        }
        self.len += 1;
    }

    /// Removes the entry and returns whether the index had it.
    pub(crate) fn remove(&mut self, key: K, slot: Slot) -> bool {
        let entry = Entry { key, slot };
        let Some(at) = self.chunks_up_to(entry).checked_sub(1) else { return false };
        let chunk = &mut self.chunks[at];
        let found = if chunk[0] == entry { Ok(0) } else { chunk.binary_search(&entry) };
        let Ok(found) = found else { return false };
        chunk.remove(found);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        } else if chunk.len() <= CHUNK / 4 && chunk.len().is_power_of_two() {
            // Not at every length: jobs are usually removed in order, so the first chunk passes all short lengths.
            self.join(at);
            self.join(at.saturating_sub(1));
        }
        true
    }

    /// Moves the entries of the next chunk into this one if both together have at most half of a chunk's entries.
    fn join(&mut self, at: usize) {
        let len = self.chunks.range(at..).take(2).map(Vec::len).sum::<usize>();
        if len <= CHUNK / 2
            && let Some(next) = self.chunks.remove(at + 1)
        {
            self.chunks[at].extend(next);
        }
    }

    /// Every entry, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, Slot)> {
        self.chunks.iter().flatten().map(|entry| (entry.key, entry.slot))
    }

    /// The number of chunks whose first entry is not above this one. Most calls concern the first or the last chunk; these
    /// need no binary search, which misses the processor's cache at every step.
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

    /// Asserts that every query of the index returns the same as the expected set.
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
    fn random_inserts_and_removes_match_a_set() {
        let (mut index, mut expected) = (Index::default(), BTreeSet::new());
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for round in 0..40_000 {
            let (key, slot) = (below(40), slot(below(30)));
            // The index grows and shrinks in turn, so that chunks are split and joined.
            let inserts = if round / 4_000 % 2 == 0 { 7 } else { 3 };
            if below(10) < inserts {
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
    fn keys_that_arrive_in_order_fill_the_chunks() {
        let chunks = 1000;
        let count = (CHUNK * chunks) as u64;
        assert_eq!(filled(0..count).chunks.len(), chunks);
        assert_eq!(filled((0..count).rev()).chunks.len(), chunks);
        // Neighbours are swapped.
        let nearly = filled((0..count).map(|number| number ^ 3)).chunks.len();
        assert!(nearly <= chunks * 11 / 10, "{nearly}");
        // Two ascending ranges arrive in turn, one below the other.
        let both = filled((0..count).map(|number| number / 2 + number % 2 * count)).chunks.len();
        assert!(both <= chunks * 11 / 10, "{both}");
    }

    #[test]
    fn chunks_are_joined_when_most_entries_are_removed() {
        let count = CHUNK as u64 * 1000;
        let is_left = |key: &u64| key.is_multiple_of(100);
        let removed: Vec<u64> = (0..count).filter(|key| !is_left(key)).collect();
        for removed in [removed.clone(), removed.into_iter().rev().collect()] {
            let mut index = filled(0..count);
            for key in removed {
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
