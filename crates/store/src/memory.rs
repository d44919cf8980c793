//! Rows in memory: the reference implementation of a store, for tests and the simulator.
//!
//! The rows are gone when the store is dropped. A "restart" in a test is a second [`claim_shards`] on the same store.
//!
//! [`claim_shards`]: Store::claim_shards

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{
    ApiKey, Attempt, Counters, EndedAttempt, Endpoint, EndpointNo, Epoch, JobKey, JobRow, JsonRowKind,
    ShardId, Template, limits,
};

use crate::{
    Batch, Catalog, ChunkRow, JsonRow, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow,
    WebhookRow, Write,
};

/// A store in memory. A commit is immediately "durable", so commit chains never fail.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // No change of the tables panics half-way, so a poisoned lock guards valid tables.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies the current rows into another store. The two are independent.
impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        Self { tables: Mutex::new(self.tables().clone()) }
    }
}

#[derive(Clone, Debug, Default)]
struct Tables {
    epochs: BTreeMap<ShardId, Epoch>,
    jobs: BTreeMap<JobKey, JobRow>,
    inputs: BTreeMap<JobKey, Payload>,
    outcomes: BTreeMap<JobKey, OutcomeRow>,
    attempts: BTreeMap<(JobKey, Attempt), EndedAttempt>,
    streams: BTreeMap<JobKey, StreamRow>,
    chunks: BTreeMap<(JobKey, u64), ChunkRow>,
    hooks: BTreeMap<JobKey, WebhookRow>,
    counters: BTreeMap<EndpointNo, Counters>,
    endpoints: BTreeMap<EndpointNo, Endpoint>,
    last_endpoint_no: u32,
    // In the order of creation.
    templates: Vec<Template>,
    keys: Vec<ApiKey>,
    settings: BTreeMap<String, bytes::Bytes>,
    /// Each with the number of JSON rows created before it.
    records: BTreeMap<(JsonRowKind, String), (u64, bytes::Bytes)>,
    records_created: u64,
}

impl Tables {
    fn epoch(&self, shard: ShardId) -> Epoch {
        self.epochs.get(&shard).copied().unwrap_or(Epoch(0))
    }

    fn raise_epoch(&mut self, shard: ShardId) -> Epoch {
        let next = Epoch(self.epoch(shard).0 + 1);
        self.epochs.insert(shard, next);
        next
    }

    fn commit(&mut self, shard: ShardId, ours: Epoch, batch: Batch) -> Result<(), StoreError> {
        let current = self.epoch(shard);
        if ours != current {
            return Err(StoreError::StaleEpoch { shard, ours, current });
        }
        for write in batch.writes {
            self.apply(write);
        }
        Ok(())
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::PutJob(row) => drop(self.jobs.insert(row.key, *row)),
            Write::DeleteJob(job) => self.delete_job(job),
            Write::PutInput(job, input) => drop(self.inputs.insert(job, input)),
            Write::PutOutcome(job, outcome) => drop(self.outcomes.insert(job, outcome)),
            Write::ClearOutcome(job) => drop(self.outcomes.remove(&job)),
            Write::PutAttempt(job, attempt) => self.put_attempt(job, *attempt),
            Write::AppendChunk(job, chunk) => drop(self.chunks.insert((job, chunk.offset), chunk)),
            Write::DropChunks(job) => self.drop_chunks(job),
            Write::PutStream(job, stream) => drop(self.streams.insert(job, stream)),
            Write::DeleteStream(job) => {
                self.streams.remove(&job);
                self.drop_chunks(job);
            }
            Write::PutWebhook(hook) => drop(self.hooks.insert(hook.job, hook)),
            Write::DeleteWebhook(job) => drop(self.hooks.remove(&job)),
            Write::PutCounters(endpoint, counters) => drop(self.counters.insert(endpoint, counters)),
            Write::PutEndpoint(endpoint) => {
                self.last_endpoint_no = self.last_endpoint_no.max(endpoint.no.0);
                self.endpoints.insert(endpoint.no, *endpoint);
            }
            Write::DeleteEndpoint(endpoint) => {
                self.endpoints.remove(&endpoint);
                self.counters.remove(&endpoint);
            }
            Write::PutTemplate(template) => put(&mut self.templates, *template, |template| &template.id),
            Write::DeleteTemplate(id) => self.templates.retain(|template| template.id != id),
            Write::PutKey(key) => put(&mut self.keys, *key, |key| &key.id),
            Write::DeleteKey(id) => self.keys.retain(|key| key.id != id),
            Write::PutSetting(name, value) => drop(self.settings.insert(name, value)),
            Write::PutJsonRow(kind, id, json) => self.put_record(kind, id, json),
            Write::DeleteJsonRow(kind, id) => drop(self.records.remove(&(kind, id))),
        }
    }

    fn delete_job(&mut self, job: JobKey) {
        self.jobs.remove(&job);
        self.inputs.remove(&job);
        self.outcomes.remove(&job);
        self.streams.remove(&job);
        self.hooks.remove(&job);
        self.attempts.retain(|(own, _), _| *own != job);
        self.drop_chunks(job);
    }

    fn put_attempt(&mut self, job: JobKey, attempt: EndedAttempt) {
        self.attempts.insert((job, attempt.n), attempt);
        let surplus = self.attempts_of(job).count().saturating_sub(limits::ATTEMPTS_MAX as usize);
        let old: Vec<_> = self.attempts_of(job).take(surplus).map(|attempt| attempt.n).collect();
        for n in old {
            self.attempts.remove(&(job, n));
        }
    }

    fn attempts_of(&self, job: JobKey) -> impl Iterator<Item = &EndedAttempt> {
        self.attempts.range((job, Attempt(0))..=(job, Attempt(u32::MAX))).map(|(_, attempt)| attempt)
    }

    fn drop_chunks(&mut self, job: JobKey) {
        let offsets: Vec<_> = self.chunks.range((job, 0)..=(job, u64::MAX)).map(|(key, _)| *key).collect();
        for key in offsets {
            self.chunks.remove(&key);
        }
    }

    fn put_record(&mut self, kind: JsonRowKind, id: String, json: bytes::Bytes) {
        let created = self.records_created;
        self.records_created += 1;
        self.records.entry((kind, id)).or_insert((created, bytes::Bytes::new())).1 = json;
    }

    fn records(&self) -> Vec<JsonRow> {
        let mut records: Vec<_> = self.records.iter().collect();
        records.sort_by_key(|(_, (created, _))| *created);
        let row = |((kind, id), (_, json)): (&(JsonRowKind, String), &(u64, bytes::Bytes))| JsonRow {
            kind: *kind,
            id: id.clone(),
            json: json.clone(),
        };
        records.into_iter().map(row).collect()
    }

    fn catalog(&self) -> Catalog {
        Catalog {
            endpoints: self.endpoints.values().cloned().collect(),
            templates: self.templates.clone(),
            keys: self.keys.clone(),
            json_rows: self.records(),
            settings: self.settings.clone(),
            last_endpoint_no: self.last_endpoint_no,
        }
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> Vec<ChunkRow> {
        let mut bytes = 0;
        let mut chunks = Vec::new();
        for chunk in self.chunks.range((job, offset)..=(job, u64::MAX)).map(|(_, chunk)| chunk) {
            bytes += chunk.bytes.len();
            chunks.push(chunk.clone());
            if bytes >= bytes_max {
                break;
            }
        }
        chunks
    }
}

/// Replaces the item with the same id where it is, or adds it at the end.
fn put<T, Id: PartialEq>(items: &mut Vec<T>, item: T, id: impl Fn(&T) -> &Id) {
    match items.iter_mut().find(|present| id(present) == id(&item)) {
        Some(present) => *present = item,
        None => items.push(item),
    }
}

/// Returns a future that is ready.
fn answer<T: Send + 'static>(result: Result<T, StoreError>) -> StoreFuture<'static, T> {
    Box::pin(ready(result))
}

impl Store for MemoryStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        let mut tables = self.tables();
        answer(Ok(shards.into_iter().map(|shard| tables.raise_epoch(shard)).collect()))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        let mut tables = self.tables();
        for (shard, epoch) in shards {
            // Another owner may have claimed the shard.
            if tables.epoch(shard) == epoch {
                tables.raise_epoch(shard);
            }
        }
        answer(Ok(()))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        answer(self.tables().commit(shard, epoch, batch))
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        answer(Ok(self.tables().catalog()))
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        answer(Ok(self.tables().counters.get(&endpoint).copied().unwrap_or_default()))
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        let tables = self.tables();
        let after = Bound::Excluded(JobKey { endpoint, seq: after_seq });
        let last = Bound::Included(JobKey { endpoint, seq: u64::MAX });
        answer(Ok(tables.jobs.range((after, last)).take(limit).map(|(_, row)| row.clone()).collect()))
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        let keys = JobKey { endpoint, seq: 0 }..=JobKey { endpoint, seq: u64::MAX };
        answer(Ok(self.tables().hooks.range(keys).map(|(_, hook)| *hook).collect()))
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        answer(Ok(self.tables().inputs.get(&job).cloned()))
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        answer(Ok(self.tables().outcomes.get(&job).cloned()))
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        answer(Ok(self.tables().attempts_of(job).cloned().collect()))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        answer(Ok(self.tables().streams.get(&job).copied()))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        answer(Ok(self.tables().chunks(job, offset, bytes_max)))
    }
}
