//! The jobs of a queue in memory: a slab of packed rows, with an index by id.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops;

use longshore_model::{JobId, JobRow, Millis, Submitter, TraceContext, limits};

use crate::idempotency::IdempotencyKey;
use crate::index::Index;
use crate::packed::PackedRow;
use crate::submitters::Submitters;

/// The number of a job's slot in the slab. Valid until the job is removed; then another job may get the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

impl Slot {
    /// Orders before every other slot.
    pub(crate) const MIN: Self = Self(u32::MIN);
    /// Orders after every slot of a job.
    pub(crate) const MAX: Self = Self(u32::MAX);

    /// The slot with this number, whether a slab has it or not.
    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        Self(number)
    }
}

/// Slots per page of the slab. A slab in one vector is copied when it doubles: tens of milliseconds at a million jobs.
const PAGE_SLOTS: usize = 256;

/// All jobs of the endpoint. Durable: the rows in the store have the same content.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Every page but the last has [`PAGE_SLOTS`] slots; `None` is a free slot.
    pages: Vec<Vec<Option<PackedRow>>>,
    /// The free slots.
    free: Vec<Slot>,
    by_id: Index<JobId>,
    /// The submitters that the packed rows refer to.
    pub(crate) submitters: Submitters,
    /// When the first chunks arrived ([`JobRow::first_chunk_at`]), of jobs that stream.
    first_chunks: BTreeMap<Slot, Millis>,
    /// The GPU types of workers ([`JobRow::gpu`]), of jobs that ran on one. Jobs share the texts in `gpu_types`.
    gpus: BTreeMap<Slot, Arc<str>>,
    /// Every type in `gpus` so far: an endpoint's workers have few.
    gpu_types: Vec<Arc<str>>,
    /// When progress values arrived ([`JobRow::progress`]), of jobs with any. Volatile until the end of the job.
    progress: BTreeMap<Slot, Vec<u32>>,
    /// The clients' traces ([`JobRow::trace`]). Few jobs have one.
    traces: BTreeMap<Slot, TraceContext>,
    /// Encoded fields of rows that this version does not know ([`JobRow::carried`]). Few jobs have any.
    carried: BTreeMap<Slot, Box<[u8]>>,
}

/// The fields of a row that its packed row does not contain.
#[derive(Clone, Copy, Default)]
pub(crate) struct UnpackedFields<'a> {
    /// The API key and the owner of the submit.
    pub(crate) submitter: Submitter,
    /// When the first chunk arrived; 0 without one.
    pub(crate) first_chunk_at: Millis,
    /// The type of the worker's first GPU; `None` without one.
    pub(crate) gpu: Option<&'a Arc<str>>,
    /// When progress values arrived; `None` without one.
    pub(crate) progress: Option<&'a [u32]>,
    /// The client's trace; `None` without one.
    pub(crate) trace: Option<&'a TraceContext>,
    /// Encoded fields that this version does not know; `None` if the row has none.
    pub(crate) carried: Option<&'a [u8]>,
}

impl Jobs {
    /// The number of jobs, in any state.
    pub(crate) fn len(&self) -> u64 {
        self.by_id.len()
    }

    /// The slot of the job with this id; `None` for an unknown id.
    pub(crate) fn find(&self, id: JobId) -> Option<Slot> {
        self.by_id.find(id)
    }

    /// Adds a row, whose submitter was counted by [`Submitters::add_job`]. Its id is new.
    pub(crate) fn insert(&mut self, row: PackedRow) -> Slot {
        let id = row.id;
        let slot = self.free.pop().unwrap_or_else(|| self.add_slot());
        *self.slot_mut(slot) = Some(row);
        assert!(self.by_id.insert(id, slot), "a free slot has no job");
        slot
    }

    /// Sets the encoded fields of the job's row that this version does not know.
    pub(crate) fn set_carried(&mut self, slot: Slot, fields: Box<[u8]>) {
        self.carried.insert(slot, fields);
    }

    /// When the first chunk of the job's present attempt arrived; `None` without one.
    pub(crate) fn first_chunk_at(&self, slot: Slot) -> Option<Millis> {
        if self.first_chunks.is_empty() { None } else { self.first_chunks.get(&slot).copied() }
    }

    /// Sets when the first chunk of the job's present attempt arrived; `None` without one.
    pub(crate) fn set_first_chunk_at(&mut self, slot: Slot, at: Option<Millis>) {
        match at {
            Some(at) => _ = self.first_chunks.insert(slot, at),
            None if self.first_chunks.is_empty() => {}
            None => _ = self.first_chunks.remove(&slot),
        }
    }

    /// The type of the GPU on which the job's present or last attempt runs or ran; `None` without one.
    pub(crate) fn gpu(&self, slot: Slot) -> Option<&Arc<str>> {
        if self.gpus.is_empty() { None } else { self.gpus.get(&slot) }
    }

    /// Sets the type of the GPU on which the job's present attempt runs; `None` without one.
    pub(crate) fn set_gpu(&mut self, slot: Slot, gpu: Option<&Arc<str>>) {
        let Some(gpu) = gpu else {
            if !self.gpus.is_empty() {
                self.gpus.remove(&slot);
            }
            return;
        };
        let known = self.gpu_types.iter().find(|known| *known == gpu).cloned();
        let shared = known.unwrap_or_else(|| {
            self.gpu_types.push(Arc::clone(gpu));
            Arc::clone(gpu)
        });
        self.gpus.insert(slot, shared);
    }

    /// When progress values of the job's present or last attempt arrived; `None` without one.
    pub(crate) fn progress(&self, slot: Slot) -> Option<&[u32]> {
        if self.progress.is_empty() { None } else { self.progress.get(&slot).map(Vec::as_slice) }
    }

    /// Notes a progress value of the job's present attempt, `ms` after its start; those after the first 32 do not count.
    pub(crate) fn add_progress(&mut self, slot: Slot, ms: u64) {
        let times = self.progress.entry(slot).or_default();
        if times.len() < limits::PROGRESS_TIMES_MAX {
            times.push(u32::try_from(ms).unwrap_or(u32::MAX));
        }
    }

    /// Sets what [`progress`](Self::progress) returns.
    pub(crate) fn set_progress(&mut self, slot: Slot, times: Option<Box<[u32]>>) {
        match times {
            Some(times) => _ = self.progress.insert(slot, times.into()),
            None if self.progress.is_empty() => {}
            None => _ = self.progress.remove(&slot),
        }
    }

    /// Forgets when the first chunk and the progress values of the last attempt arrived.
    pub(crate) fn forget_attempt(&mut self, slot: Slot) {
        self.set_first_chunk_at(slot, None);
        self.set_progress(slot, None);
    }

    /// Sets the client's trace of the job.
    pub(crate) fn set_trace(&mut self, slot: Slot, trace: TraceContext) {
        self.traces.insert(slot, trace);
    }

    /// Adds a slot at the end of the slab.
    fn add_slot(&mut self) -> Slot {
        if self.pages.last().is_none_or(|page| page.len() == PAGE_SLOTS) {
            self.pages.push(Vec::with_capacity(PAGE_SLOTS));
        }
        let last = self.pages.len() - 1;
        self.pages[last].push(None);
        Slot((last * PAGE_SLOTS + self.pages[last].len() - 1) as u32)
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut Option<PackedRow> {
        &mut self.pages[slot.0 as usize / PAGE_SLOTS][slot.0 as usize % PAGE_SLOTS]
    }

    /// Removes a job and returns its packed row. Its submitter has one job less.
    ///
    /// # Panics
    ///
    /// If the slot is free.
    pub(crate) fn remove(&mut self, slot: Slot) -> PackedRow {
        let row = self.slot_mut(slot).take().expect("a slot in an index holds a job");
        assert!(self.by_id.remove(row.id, slot), "a job is found by its id");
        self.submitters.remove_job(row.submitter);
        self.forget_attempt(slot);
        self.set_gpu(slot, None);
        if !self.traces.is_empty() {
            self.traces.remove(&slot);
        }
        if !self.carried.is_empty() {
            self.carried.remove(&slot);
        }
        self.free.push(slot);
        row
    }

    /// The row of a job, as it is stored.
    pub(crate) fn row(&self, slot: Slot) -> JobRow {
        let row = &self[slot];
        let submitter = self.submitters.get(row.submitter);
        let trace = if self.traces.is_empty() { None } else { self.traces.get(&slot) };
        let carried = if self.carried.is_empty() { None } else { self.carried.get(&slot) };
        let first_chunk_at = self.first_chunk_at(slot).unwrap_or_default();
        let progress = if row.state().is_terminal() { self.progress(slot) } else { None };
        let (gpu, carried) = (self.gpu(slot), carried.map(AsRef::as_ref));
        row.unpacked(UnpackedFields { submitter, first_chunk_at, gpu, progress, trace, carried })
    }

    /// The job's idempotency key; `None` if its submit had no `Idempotency-Key`.
    pub(crate) fn idempotency_key(&self, slot: Slot) -> Option<IdempotencyKey> {
        let row = &self[slot];
        let idempotency = row.idempotency()?;
        Some((self.submitters.get(row.submitter).key, idempotency.key.clone()))
    }

    /// The jobs with an id below `before` (`None`: all jobs), newest first.
    pub(crate) fn newest_first(&self, before: Option<JobId>) -> impl Iterator<Item = Slot> {
        self.by_id.descending(before).map(|(_, slot)| slot)
    }

    /// The jobs with an id above `after` (`None`: all jobs), oldest first.
    pub(crate) fn oldest_first(&self, after: Option<JobId>) -> impl Iterator<Item = Slot> {
        self.by_id.ascending(after).map(|(_, slot)| slot)
    }

    /// The job in the slot `number` modulo the number of slots; `None` if that slot is free or there are no slots.
    pub(crate) fn sample(&self, number: u32) -> Option<Slot> {
        let last = self.pages.len().checked_sub(1)?;
        let slots = last * PAGE_SLOTS + self.pages[last].len();
        let slot = number as usize % slots;
        self.pages[slot / PAGE_SLOTS][slot % PAGE_SLOTS].as_ref().map(|_| Slot(slot as u32))
    }

    /// Whether the index by id has the job.
    pub(crate) fn is_indexed(&self, slot: Slot) -> bool {
        self.by_id.contains(self[slot].id, slot)
    }

    /// Asserts that every slot has a job or is listed as free, and that submitters, first chunks and carried fields belong to
    /// jobs.
    #[cfg(test)]
    pub(crate) fn assert_slab(&self) {
        let slots: usize = self.pages.iter().map(Vec::len).sum();
        assert_eq!(slots, self.by_id.len() as usize + self.free.len(), "a slot leaked");
        let mut counts = BTreeMap::new();
        for (slot, _) in self.iter() {
            *counts.entry(self.row(slot).submitter).or_insert(0) += 1;
        }
        assert_eq!(self.submitters.counts(), counts, "submitters are counted by their jobs");
        let has_job = |slot: &Slot| self.iter().any(|(of, _)| of == *slot);
        assert!(self.first_chunks.keys().all(has_job), "first chunks belong to a job");
        assert!(self.carried.keys().all(has_job), "carried fields belong to a job");
    }

    /// Every job, by id.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &PackedRow)> {
        self.by_id.iter().map(|(_, slot)| (slot, &self[slot]))
    }

    /// The first `limit` jobs by id, or all of them if there are fewer.
    pub(crate) fn first(&self, limit: usize) -> Vec<Slot> {
        self.by_id.iter().take(limit).map(|(_, slot)| slot).collect()
    }
}

impl ops::Index<Slot> for Jobs {
    type Output = PackedRow;

    fn index(&self, slot: Slot) -> &PackedRow {
        // A job is removed from all indexes in the verb that frees its slot.
        self.pages[slot.0 as usize / PAGE_SLOTS][slot.0 as usize % PAGE_SLOTS]
            .as_ref()
            .expect("a slot in an index holds a job")
    }
}

impl ops::IndexMut<Slot> for Jobs {
    fn index_mut(&mut self, slot: Slot) -> &mut PackedRow {
        self.slot_mut(slot).as_mut().expect("a slot in an index holds a job")
    }
}
