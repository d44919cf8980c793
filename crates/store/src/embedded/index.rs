//! What is where: everything that the store knows without reading the log.
//!
//! Jobs, payloads and chunks are places. Small things that are read as a whole are kept as values, each with the place of
//! its record, so that its segment is known to be needed. The same code fills it when the log is replayed and when
//! a commit is durable.

mod job_table;
mod record_ref;
mod segments;
mod values;

use std::collections::BTreeMap;

use longshore_model::{Counters, EndpointNo, Epoch, JobKey, ShardId};

pub(super) use self::job_table::Column;
use self::job_table::JobTable;
pub(super) use self::record_ref::RecordRef;
pub(super) use self::segments::{Segment, Segments};
pub(super) use self::values::Value;
use self::values::{ValueEntry, Values};
use super::log::coding::Malformed;
use super::log::format::class;
use super::log::record::{RawRecord, Record, each};
use crate::{StreamRow, WebhookRow};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The segments.
    pub segments: Segments,
    pages: JobTable,
    chunks: BTreeMap<(JobKey, u64), RecordRef>,
    streams: BTreeMap<JobKey, ValueEntry<StreamRow>>,
    hooks: BTreeMap<JobKey, ValueEntry<WebhookRow>>,
    counters: BTreeMap<EndpointNo, ValueEntry<Counters>>,
    epochs: BTreeMap<ShardId, ValueEntry<Epoch>>,
    last_endpoint: Option<ValueEntry<u32>>,
    /// What is in the catalog.
    pub values: Values,
}

impl Index {
    /// Takes in the records of a frame, which begin at this place of a segment.
    pub fn apply(&mut self, slot: usize, at: u32, records: &[u8]) -> Result<(), (u32, Malformed)> {
        for raw in each(records, 0) {
            let raw = raw.map_err(|malformed| (at, malformed))?;
            let place = at + raw.at as u32;
            self.take_in(slot, place, raw).map_err(|malformed| (place, malformed))?;
        }
        Ok(())
    }

    fn take_in(&mut self, slot: usize, at: u32, raw: RawRecord<'_>) -> Result<(), Malformed> {
        let record = raw.parse()?;
        let place = Self::place(slot, at, raw, &record)?;
        let before = match record {
            Record::Job(job, _) => self.pages.put(job, Column::Row, place),
            Record::Input(job, _) => self.pages.put(job, Column::Input, place),
            Record::Outcome(job, _) => self.pages.put(job, Column::Outcome, place),
            Record::Chunk(job, offset, _) => self.chunks.insert((job, offset), place),
            Record::Stream(job, stream) => put(&mut self.streams, job, stream, place),
            Record::Webhook(hook) => put(&mut self.hooks, hook.job, hook, place),
            Record::Counters(endpoint, counters) => put(&mut self.counters, endpoint, counters, place),
            Record::Epoch(shard, epoch) => put(&mut self.epochs, shard, epoch, place),
            Record::LastEndpoint(no) => {
                self.last_endpoint.replace(ValueEntry { value: no, place }).map(|before| before.place)
            }
            Record::Value { class, id, rank, value } => self.values.put(class, id, rank, value, place),
            gone => {
                self.forget(&gone);
                return Ok(());
            }
        };
        self.segments.needed(place);
        if let Some(before) = before {
            self.segments.dead(before);
        }
        Ok(())
    }

    fn forget(&mut self, gone: &Record<'_>) {
        let before = match *gone {
            Record::JobsDeleted(first, count) => return self.forget_jobs(first, count),
            Record::ChunksDeleted(job) => return self.forget_chunks(job, job),
            Record::StreamDeleted(job) => {
                self.forget_chunks(job, job);
                self.streams.remove(&job).map(|stream| stream.place)
            }
            Record::OutcomeDeleted(job) => self.pages.remove(job, Column::Outcome),
            Record::WebhookDeleted(job) => self.hooks.remove(&job).map(|hook| hook.place),
            Record::ValueDeleted(class, id) => {
                if let (class::ENDPOINT, Ok(no)) = (class, id.try_into())
                    && let Some(counters) = self.counters.remove(&EndpointNo(u32::from_be_bytes(no)))
                {
                    self.segments.dead(counters.place);
                }
                self.values.remove(class, id)
            }
            _ => None,
        };
        if let Some(place) = before {
            self.segments.dead(place);
        }
    }

    fn forget_jobs(&mut self, first: JobKey, count: u64) {
        let last = JobKey { seq: first.seq + (count - 1), ..first };
        self.pages.remove_all(first, last, |place| self.segments.dead(place));
        self.forget_chunks(first, last);
        for (_, stream) in self.streams.extract_if(first..=last, |_, _| true) {
            self.segments.dead(stream.place);
        }
        for (_, hook) in self.hooks.extract_if(first..=last, |_, _| true) {
            self.segments.dead(hook.place);
        }
    }

    fn forget_chunks(&mut self, first: JobKey, last: JobKey) {
        for (_, place) in self.chunks.extract_if((first, 0)..=(last, u64::MAX), |_, _| true) {
            self.segments.dead(place);
        }
    }

    fn place(slot: usize, at: u32, raw: RawRecord<'_>, record: &Record<'_>) -> Result<RecordRef, Malformed> {
        let beside = record.out_of_line().map_or(0, |beside| u64::from(beside.bytes));
        RecordRef::new(slot, at, raw.bytes.len() as u64 + beside).ok_or(Malformed("a place"))
    }

    /// Whether what a record at this place says is still so. What says that something is gone is not needed: it
    /// is only asked of the oldest segment, before which there is nothing.
    pub fn is_needed(&self, slot: usize, at: u32, record: &Record<'_>) -> bool {
        let place = match *record {
            Record::Job(job, _) => self.pages.get(job, Column::Row),
            Record::Input(job, _) => self.pages.get(job, Column::Input),
            Record::Outcome(job, _) => self.pages.get(job, Column::Outcome),
            Record::Chunk(job, offset, _) => self.chunks.get(&(job, offset)).copied(),
            Record::Stream(job, _) => self.streams.get(&job).map(|stream| stream.place),
            Record::Webhook(hook) => self.hooks.get(&hook.job).map(|hook| hook.place),
            Record::Counters(endpoint, _) => self.counters.get(&endpoint).map(|counters| counters.place),
            Record::Epoch(shard, _) => self.epochs.get(&shard).map(|epoch| epoch.place),
            Record::LastEndpoint(_) => self.last_endpoint.as_ref().map(|no| no.place),
            Record::Value { class, id, .. } => self.values.place(class, id),
            _ => None,
        };
        place.is_some_and(|place| (place.slot(), place.at()) == (slot, at))
    }

    /// Where something of a job is.
    pub fn get(&self, job: JobKey, column: Column) -> Option<RecordRef> {
        self.pages.get(job, column)
    }

    /// The rows of an endpoint's jobs behind this one, ascending.
    pub fn rows_after(&self, after: JobKey) -> impl Iterator<Item = (JobKey, RecordRef)> {
        self.pages.rows_after(after)
    }

    /// All jobs that have a row, ascending, and where it is.
    pub fn rows(&self) -> impl Iterator<Item = (JobKey, RecordRef)> {
        self.pages.rows()
    }

    /// A job's chunks from an offset on.
    pub fn chunks(&self, job: JobKey, from: u64) -> impl Iterator<Item = (u64, RecordRef)> {
        self.chunks.range((job, from)..=(job, u64::MAX)).map(|(&(_, offset), &place)| (offset, place))
    }

    /// Where a job's stream stands.
    pub fn stream(&self, job: JobKey) -> Option<StreamRow> {
        self.streams.get(&job).map(|stream| stream.value)
    }

    /// The webhook calls that an endpoint owes, ascending by job.
    pub fn hooks(&self, endpoint: EndpointNo) -> Vec<WebhookRow> {
        self.hooks.range(JobTable::keys_of(endpoint)).map(|(_, hook)| hook.value).collect()
    }

    /// An endpoint's counters.
    pub fn counters(&self, endpoint: EndpointNo) -> Option<Counters> {
        self.counters.get(&endpoint).map(|counters| counters.value)
    }

    /// The epochs of all shards that ever had an owner.
    pub fn epochs(&self) -> impl Iterator<Item = (ShardId, Epoch)> {
        self.epochs.iter().map(|(&shard, epoch)| (shard, epoch.value))
    }

    /// The largest endpoint number that was ever given out; 0 before the first.
    pub fn last_endpoint(&self) -> u32 {
        self.last_endpoint.as_ref().map_or(0, |no| no.value)
    }
}

/// Replaces a value; answers where the one before is.
fn put<K: Ord, V>(
    map: &mut BTreeMap<K, ValueEntry<V>>,
    key: K,
    value: V,
    place: RecordRef,
) -> Option<RecordRef> {
    map.insert(key, ValueEntry { value, place }).map(|before| before.place)
}
