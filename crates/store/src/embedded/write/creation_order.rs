//! The order of creation of what is in the catalog.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use longshore_model::EndpointNo;

/// What the writer must know of the catalog to write it: which values there are, in which order they were created, and the
/// largest endpoint number. It runs ahead of the index by the groups that are being written, and goes back when one
/// fails.
#[derive(Debug, Default)]
pub(in crate::embedded) struct CreationOrder {
    by_value: BTreeMap<(u8, Box<[u8]>), u64>,
    next: u64,
    last_endpoint: u32,
    /// How it was before, the last change last.
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Rank((u8, Box<[u8]>), Option<u64>),
    LastEndpoint(u32),
}

impl CreationOrder {
    /// As the values that are there have it.
    pub fn new(values: impl Iterator<Item = (u8, Box<[u8]>, u64)>, last_endpoint: u32) -> Self {
        let by_value: BTreeMap<_, _> = values.map(|(class, id, rank)| ((class, id), rank)).collect();
        let next = by_value.values().max().map_or(0, |last| last.saturating_add(1));
        Self { by_value, next, last_endpoint, undo: Vec::new() }
    }

    /// The oldest of what was noted is written: so many changes.
    pub fn keep(&mut self, changes: usize) {
        self.undo.drain(..changes.min(self.undo.len()));
    }

    /// The present state: how many changes were noted since what is kept.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Nothing of what was noted since the last [`Self::keep`] is written.
    pub fn forget(&mut self) {
        self.back_to(0);
    }

    /// Nothing of what was noted since the mark is written.
    pub fn back_to(&mut self, mark: usize) {
        for undo in self.undo.drain(mark..).rev() {
            match undo {
                Undo::Rank(key, Some(rank)) => _ = self.by_value.insert(key, rank),
                Undo::Rank(key, None) => _ = self.by_value.remove(&key),
                Undo::LastEndpoint(no) => self.last_endpoint = no,
            }
        }
    }

    /// The rank of a value that is written.
    pub fn rank(&mut self, class: u8, id: &[u8]) -> u64 {
        match self.by_value.entry((class, id.into())) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.undo.push(Undo::Rank(entry.key().clone(), None));
                let rank = self.next;
                entry.insert(rank);
                // Ranks that a failed group took are not given out again: nobody misses them.
                self.next = self.next.saturating_add(1);
                rank
            }
        }
    }

    /// The value is gone.
    pub fn remove(&mut self, class: u8, id: &[u8]) {
        if let Some((key, rank)) = self.by_value.remove_entry(&(class, Box::from(id))) {
            self.undo.push(Undo::Rank(key, Some(rank)));
        }
    }

    /// Whether this is a larger number than any so far.
    pub fn is_new(&mut self, endpoint: EndpointNo) -> bool {
        if endpoint.0 <= self.last_endpoint {
            return false;
        }
        self.undo.push(Undo::LastEndpoint(self.last_endpoint));
        self.last_endpoint = endpoint.0;
        true
    }
}
