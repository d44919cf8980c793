//! The jobs in memory: a slab with an index by id.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops;

use longshore_model::{JobId, JobRow, Submitter};

use crate::idempotent::Promise;
use crate::index::Index;
use crate::packed::PackedRow;
use crate::submitters::Submitters;

/// A job's place in the slab; valid until the job is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) const MIN: Self = Self(u32::MIN);
    pub(crate) const MAX: Self = Self(u32::MAX);

    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        Self(number)
    }
}

/// The places of one page of the slab. In one piece the slab would be copied whole whenever it doubles, which takes
/// tens of milliseconds at a million jobs.
const PAGE: usize = 256;

/// All jobs of the endpoint.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// All but the last have [`PAGE`] places.
    pages: Vec<Vec<Option<PackedRow>>>,
    free: Vec<Slot>,
    by_id: Index<JobId>,
    pub(crate) submitters: Submitters,
    /// Fields of rows that this version has no use for; few jobs have any.
    carried: BTreeMap<Slot, Box<[u8]>>,
}

/// What a row says that is not packed with it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    pub(crate) submitter: Submitter,
    pub(crate) carried: Option<&'a [u8]>,
}

impl Jobs {
    pub(crate) fn len(&self) -> u64 {
        self.by_id.len()
    }

    pub(crate) fn find(&self, id: JobId) -> Option<Slot> {
        self.by_id.find(id)
    }

    /// Takes in a row, whose submitter has been counted.
    pub(crate) fn insert(&mut self, row: PackedRow) -> Slot {
        let id = row.id;
        let slot = self.free.pop().unwrap_or_else(|| self.add_place());
        *self.place(slot) = Some(row);
        assert!(self.by_id.insert(id, slot), "a free slot is no job's");
        slot
    }

    /// Keeps fields of a stored row that this version has no use for.
    pub(crate) fn carry(&mut self, slot: Slot, fields: Box<[u8]>) {
        self.carried.insert(slot, fields);
    }

    /// A place that was not taken before.
    fn add_place(&mut self) -> Slot {
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        let last = self.pages.len() - 1;
        self.pages[last].push(None);
        Slot((last * PAGE + self.pages[last].len() - 1) as u32)
    }

    fn place(&mut self, slot: Slot) -> &mut Option<PackedRow> {
        &mut self.pages[slot.0 as usize / PAGE][slot.0 as usize % PAGE]
    }

    /// Takes out a job that is there.
    pub(crate) fn remove(&mut self, slot: Slot) -> PackedRow {
        let row = self.place(slot).take().expect("a slot in an index holds a job");
        assert!(self.by_id.remove(row.id, slot), "a job is found by its id");
        self.submitters.leave(row.submitter);
        if !self.carried.is_empty() {
            self.carried.remove(&slot);
        }
        self.free.push(slot);
        row
    }

    /// The whole row.
    pub(crate) fn row(&self, slot: Slot) -> JobRow {
        let row = &self[slot];
        let submitter = self.submitters.get(row.submitter);
        let carried = if self.carried.is_empty() { None } else { self.carried.get(&slot) };
        row.unpacked(Beside { submitter, carried: carried.map(AsRef::as_ref) })
    }

    /// What the job's `Idempotency-Key` promises, if it came with one.
    pub(crate) fn promise(&self, slot: Slot) -> Option<Promise> {
        let row = &self[slot];
        let idempotency = row.idempotency()?;
        Some((self.submitters.get(row.submitter).key, idempotency.key.clone()))
    }

    /// The jobs before `before` (none: all) by id, newest first.
    pub(crate) fn newest_first(&self, before: Option<JobId>) -> impl Iterator<Item = Slot> {
        self.by_id.descending(before).map(|(_, slot)| slot)
    }

    /// The job in a place of the slab, counted around it again and again; none where that is free.
    pub(crate) fn sample(&self, number: u32) -> Option<Slot> {
        let last = self.pages.len().checked_sub(1)?;
        let places = last * PAGE + self.pages[last].len();
        let place = number as usize % places;
        self.pages[place / PAGE][place % PAGE].as_ref().map(|_| Slot(place as u32))
    }

    /// Whether the job is found by its id.
    pub(crate) fn is_indexed(&self, slot: Slot) -> bool {
        self.by_id.contains(self[slot].id, slot)
    }

    /// Every place of the slab is taken or free to be taken again.
    #[cfg(test)]
    pub(crate) fn assert_slab(&self) {
        let places: usize = self.pages.iter().map(Vec::len).sum();
        assert_eq!(places, self.by_id.len() as usize + self.free.len(), "a place of the slab leaked");
        let mut counts = BTreeMap::new();
        for (slot, _) in self.iter() {
            *counts.entry(self.row(slot).submitter).or_insert(0) += 1;
        }
        assert_eq!(self.submitters.counts(), counts, "submitters are counted by their jobs");
        let has_job = |slot: &Slot| self.iter().any(|(of, _)| of == *slot);
        assert!(self.carried.keys().all(has_job), "fields belong to a job");
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &PackedRow)> {
        self.by_id.iter().map(|(_, slot)| (slot, &self[slot]))
    }

    /// Some jobs, at most `limit`, in no particular order.
    pub(crate) fn some(&self, limit: usize) -> Vec<Slot> {
        self.by_id.iter().take(limit).map(|(_, slot)| slot).collect()
    }
}

impl ops::Index<Slot> for Jobs {
    type Output = PackedRow;

    fn index(&self, slot: Slot) -> &PackedRow {
        // A slot leaves every index in the same step in which its job is removed.
        self.pages[slot.0 as usize / PAGE][slot.0 as usize % PAGE]
            .as_ref()
            .expect("a slot in an index holds a job")
    }
}

impl ops::IndexMut<Slot> for Jobs {
    fn index_mut(&mut self, slot: Slot) -> &mut PackedRow {
        self.place(slot).as_mut().expect("a slot in an index holds a job")
    }
}
