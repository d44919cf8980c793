//! The index: the place of every live record, in memory. Derived from the log.
//!
//! Job rows, payloads and chunks are indexed by place. Small rows are kept as values, each with the place of its record,
//! so that the live bytes of its segment are known. The same code fills the index when the log is replayed and when a
//! commit is settled.

mod job_table;
mod record_ref;
mod segments;
mod values;

use std::collections::BTreeMap;

use longshore_model::{Attempt, Counters, EndpointNo, Epoch, JobKey, ShardId, limits};

pub(super) use self::job_table::Column;
use self::job_table::JobTable;
pub(super) use self::record_ref::{RecordRef, SLOTS_MAX};
pub(super) use self::segments::{Segment, Segments};
pub(super) use self::values::Value;
use self::values::{ValueEntry, Values};
use super::log::coding::Malformed;
use super::log::format::class;
use super::log::record::{RawRecord, Record, each};
use crate::{PAYLOADS_AT, StreamRow, WebhookRow};

/// The index of one log. The live bytes of each segment are the sum over the places in the index.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub segments: Segments,
    pages: JobTable,
    chunks: BTreeMap<(JobKey, u64), RecordRef>,
    attempts: BTreeMap<(JobKey, Attempt), RecordRef>,
    streams: BTreeMap<JobKey, ValueEntry<StreamRow>>,
    hooks: BTreeMap<JobKey, ValueEntry<WebhookRow>>,
    counters: BTreeMap<EndpointNo, ValueEntry<Counters>>,
    epochs: BTreeMap<ShardId, ValueEntry<Epoch>>,
    last_endpoint: Option<ValueEntry<u32>>,
    /// Resources, JSON rows and settings.
    pub values: Values,
}

impl Index {
    /// Whether the large payloads are outside of the computer, so that none of them is in the data directory.
    pub fn has_remote_payloads(&self) -> bool {
        self.values.place(class::SETTING, PAYLOADS_AT.as_bytes()).is_some()
    }

    /// Applies the records of a frame, which begin at offset `at` of the segment in `slot`.
    ///
    /// # Errors
    /// The offset of a malformed record. The records before it are applied.
    pub fn apply(&mut self, slot: usize, at: u32, records: &[u8]) -> Result<(), (u32, Malformed)> {
        for raw in each(records, 0) {
            let raw = raw.map_err(|malformed| (at, malformed))?;
            let place = at + raw.at as u32;
            self.apply_record(slot, place, raw).map_err(|malformed| (place, malformed))?;
        }
        Ok(())
    }

    fn apply_record(&mut self, slot: usize, at: u32, raw: RawRecord<'_>) -> Result<(), Malformed> {
        let record = raw.parse()?;
        let place = Self::place(slot, at, raw, &record)?;
        let before = match record {
            Record::Job(job, _) => self.pages.put(job, Column::Row, place),
            Record::Input(job, _) => self.pages.put(job, Column::Input, place),
            Record::Outcome(job, _) => self.pages.put(job, Column::Outcome, place),
            Record::Chunk(job, offset, _) => self.chunks.insert((job, offset), place),
            Record::Attempt(job, n, _) => self.attempts.insert((job, n), place),
            Record::Stream(job, stream) => put(&mut self.streams, job, stream, place),
            Record::Webhook(hook) => put(&mut self.hooks, hook.job, hook, place),
            Record::Counters(endpoint, counters) => put(&mut self.counters, endpoint, counters, place),
            Record::Epoch(shard, epoch) => put(&mut self.epochs, shard, epoch, place),
            Record::LastEndpoint(no) => {
                self.last_endpoint.replace(ValueEntry { value: no, place }).map(|before| before.place)
            }
            Record::Value { class, id, rank, value } => self.values.put(class, id, rank, value, place),
            deletion => {
                self.apply_deletion(&deletion);
                return Ok(());
            }
        };
        self.segments.add_live(place);
        if let Some(before) = before {
            self.segments.remove_live(before);
        }
        if let Record::Attempt(job, ..) = record {
            self.remove_old_attempts(job);
        }
        Ok(())
    }

    fn apply_deletion(&mut self, deletion: &Record<'_>) {
        let before = match *deletion {
            Record::JobsDeleted(first, count) => return self.remove_jobs(first, count),
            Record::ChunksDeleted(job) => return self.remove_chunks(job, job),
            Record::StreamDeleted(job) => {
                self.remove_chunks(job, job);
                self.streams.remove(&job).map(|stream| stream.place)
            }
            Record::OutcomeDeleted(job) => self.pages.remove(job, Column::Outcome),
            Record::WebhookDeleted(job) => self.hooks.remove(&job).map(|hook| hook.place),
            Record::ValueDeleted(class, id) => {
                if let (class::ENDPOINT, Ok(no)) = (class, id.try_into())
                    && let Some(counters) = self.counters.remove(&EndpointNo(u32::from_be_bytes(no)))
                {
                    self.segments.remove_live(counters.place);
                }
                self.values.remove(class, id)
            }
            _ => None,
        };
        if let Some(place) = before {
            self.segments.remove_live(place);
        }
    }

    fn remove_jobs(&mut self, first: JobKey, count: u64) {
        let last = JobKey { seq: first.seq + (count - 1), ..first };
        self.pages.remove_all(first, last, |place| self.segments.remove_live(place));
        self.remove_chunks(first, last);
        let attempts = (first, Attempt(0))..=(last, Attempt(u32::MAX));
        for (_, place) in self.attempts.extract_if(attempts, |_, _| true) {
            self.segments.remove_live(place);
        }
        for (_, stream) in self.streams.extract_if(first..=last, |_, _| true) {
            self.segments.remove_live(stream.place);
        }
        for (_, hook) in self.hooks.extract_if(first..=last, |_, _| true) {
            self.segments.remove_live(hook.place);
        }
    }

    /// Removes all attempts of a job but those with the largest numbers.
    fn remove_old_attempts(&mut self, job: JobKey) {
        let surplus = self.attempts(job).count().saturating_sub(limits::ATTEMPTS_MAX as usize);
        let old: Vec<_> = self.attempts(job).take(surplus).collect();
        for (n, place) in old {
            self.attempts.remove(&(job, n));
            self.segments.remove_live(place);
        }
    }

    fn remove_chunks(&mut self, first: JobKey, last: JobKey) {
        for (_, place) in self.chunks.extract_if((first, 0)..=(last, u64::MAX), |_, _| true) {
            self.segments.remove_live(place);
        }
    }

    fn place(slot: usize, at: u32, raw: RawRecord<'_>, record: &Record<'_>) -> Result<RecordRef, Malformed> {
        let beside = record.out_of_line().map_or(0, |beside| u64::from(beside.bytes));
        RecordRef::new(slot, at, raw.bytes.len() as u64 + beside).ok_or(Malformed("a place"))
    }

    /// Whether a record at offset `at` of the oldest segment is live. A deletion never is: in the oldest segment no
    /// record is before it that it could delete.
    pub fn is_live(&self, slot: usize, at: u32, record: &Record<'_>) -> bool {
        let place = match *record {
            Record::Job(job, _) => self.pages.get(job, Column::Row),
            Record::Input(job, _) => self.pages.get(job, Column::Input),
            Record::Outcome(job, _) => self.pages.get(job, Column::Outcome),
            Record::Chunk(job, offset, _) => self.chunks.get(&(job, offset)).copied(),
            Record::Attempt(job, n, _) => self.attempts.get(&(job, n)).copied(),
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

    /// Returns the place of a job's row, input or outcome.
    pub fn get(&self, job: JobKey, column: Column) -> Option<RecordRef> {
        self.pages.get(job, column)
    }

    /// Returns the keys and row places of an endpoint's jobs after `after`, ascending.
    pub fn rows_after(&self, after: JobKey) -> impl Iterator<Item = (JobKey, RecordRef)> {
        self.pages.rows_after(after)
    }

    /// Returns the keys and row places of all jobs, ascending.
    pub fn rows(&self) -> impl Iterator<Item = (JobKey, RecordRef)> {
        self.pages.rows()
    }

    /// Returns the offsets and places of a job's chunks from offset `from` on, ascending.
    pub fn chunks(&self, job: JobKey, from: u64) -> impl Iterator<Item = (u64, RecordRef)> {
        self.chunks.range((job, from)..=(job, u64::MAX)).map(|(&(_, offset), &place)| (offset, place))
    }

    /// Returns the numbers and places of a job's ended attempts, ascending.
    pub fn attempts(&self, job: JobKey) -> impl Iterator<Item = (Attempt, RecordRef)> {
        self.attempts.range((job, Attempt(0))..=(job, Attempt(u32::MAX))).map(|(&(_, n), &place)| (n, place))
    }

    /// Returns a job's stream row.
    pub fn stream(&self, job: JobKey) -> Option<StreamRow> {
        self.streams.get(&job).map(|stream| stream.value)
    }

    /// Returns an endpoint's pending webhook calls, ascending by job.
    pub fn hooks(&self, endpoint: EndpointNo) -> Vec<WebhookRow> {
        self.hooks.range(JobTable::keys_of(endpoint)).map(|(_, hook)| hook.value).collect()
    }

    /// Returns an endpoint's counters; `None` if none were written.
    pub fn counters(&self, endpoint: EndpointNo) -> Option<Counters> {
        self.counters.get(&endpoint).map(|counters| counters.value)
    }

    /// Returns the epochs of all shards that ever had an owner.
    pub fn epochs(&self) -> impl Iterator<Item = (ShardId, Epoch)> {
        self.epochs.iter().map(|(&shard, epoch)| (shard, epoch.value))
    }

    /// Returns the largest endpoint number that was ever assigned; 0 before the first.
    pub fn last_endpoint(&self) -> u32 {
        self.last_endpoint.as_ref().map_or(0, |no| no.value)
    }
}

/// Inserts or replaces a value. Returns the place of the replaced one.
fn put<K: Ord, V>(
    map: &mut BTreeMap<K, ValueEntry<V>>,
    key: K,
    value: V,
    place: RecordRef,
) -> Option<RecordRef> {
    map.insert(key, ValueEntry { value, place }).map(|before| before.place)
}
