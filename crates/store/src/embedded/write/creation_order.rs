//! The order in which the values of the catalog were created.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use longshore_model::EndpointNo;

/// The rank of each value of the catalog, and the largest endpoint number: what the writer needs to encode a value.
///
/// Runs ahead of the index by the groups in flight, and is rolled back when one fails.
#[derive(Debug, Default)]
pub(in crate::embedded) struct CreationOrder {
    by_value: BTreeMap<(u8, Box<[u8]>), u64>,
    next: u64,
    last_endpoint: u32,
    /// What each unconfirmed change replaced, oldest first.
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Rank((u8, Box<[u8]>), Option<u64>),
    LastEndpoint(u32),
}

impl CreationOrder {
    /// Takes over stored values as class, id and rank, and the largest endpoint number.
    pub fn new(values: impl Iterator<Item = (u8, Box<[u8]>, u64)>, last_endpoint: u32) -> Self {
        let by_value: BTreeMap<_, _> = values.map(|(class, id, rank)| ((class, id), rank)).collect();
        let next = by_value.values().max().map_or(0, |last| last.saturating_add(1));
        Self { by_value, next, last_endpoint, undo: Vec::new() }
    }

    /// Confirms the oldest `changes` changes: they are durable and cannot be rolled back.
    pub fn confirm(&mut self, changes: usize) {
        self.undo.drain(..changes.min(self.undo.len()));
    }

    /// Returns the number of unconfirmed changes, for [`Self::roll_back_to`].
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Undoes all changes that were not confirmed.
    pub fn roll_back(&mut self) {
        self.roll_back_to(0);
    }

    /// Undoes the changes since the mark.
    pub fn roll_back_to(&mut self, mark: usize) {
        debug_assert!(mark <= self.undo.len(), "a mark is not older than the last confirmed change");
        for undo in self.undo.drain(mark..).rev() {
            match undo {
                Undo::Rank(key, Some(rank)) => _ = self.by_value.insert(key, rank),
                Undo::Rank(key, None) => _ = self.by_value.remove(&key),
                Undo::LastEndpoint(no) => self.last_endpoint = no,
            }
        }
    }

    /// Returns the rank of a value; a new value gets the next one.
    pub fn rank(&mut self, class: u8, id: &[u8]) -> u64 {
        match self.by_value.entry((class, id.into())) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.undo.push(Undo::Rank(entry.key().clone(), None));
                let rank = self.next;
                entry.insert(rank);
                // Ranks that a failed group took stay unused. Only the order of ranks has a meaning.
                self.next = self.next.saturating_add(1);
                rank
            }
        }
    }

    /// Removes a value. A value that is created again later gets a new rank.
    pub fn remove(&mut self, class: u8, id: &[u8]) {
        if let Some((key, rank)) = self.by_value.remove_entry(&(class, Box::from(id))) {
            self.undo.push(Undo::Rank(key, Some(rank)));
        }
    }

    /// Notes an endpoint number. Returns whether it is larger than every one before.
    pub fn note_endpoint(&mut self, endpoint: EndpointNo) -> bool {
        if endpoint.0 <= self.last_endpoint {
            return false;
        }
        self.undo.push(Undo::LastEndpoint(self.last_endpoint));
        self.last_endpoint = endpoint.0;
        true
    }
}
