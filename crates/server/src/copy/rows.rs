//! Copies rows and payloads from one store to another, and counts what a store has.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use longshore_blobs::Blobs;
use longshore_model::{Durability, EndedAttempt, Endpoint, Epoch, JobRow, LastPosts, ShardId};
use longshore_store::{
    Batch, BlobRef, Catalog, ChunkRow, OutcomeRow, PAYLOADS_AT, Payload, Store, StoreError, StreamRow,
    WebhookRow, Write, encode_attempt, encode_job_row,
};

use super::progress::CopyProgress;
use super::tally::Tally;
use crate::startup_error::StartupError;

/// Rows of one read of jobs.
const PAGE: usize = 1_000;
/// Jobs whose payloads are read at the same time.
const READS: usize = 16;
/// Bytes of chunks of one read.
const CHUNK_BYTES: usize = 4 << 20;
/// A batch is committed when it has this many bytes or writes.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_WRITES: usize = 2_000;

/// A store with its files of large payloads.
#[derive(Clone)]
pub(super) struct StoreRows {
    pub(super) store: Arc<dyn Store>,
    /// `None` for a database that has all payloads.
    pub(super) blobs: Option<Arc<dyn Blobs>>,
    /// Length in bytes above which a payload is a file.
    pub(super) blob_bytes_min: usize,
}

/// A job with its payloads, as far as one read has them.
struct WholeJob {
    row: JobRow,
    input: Option<Bytes>,
    outcome: Option<(Option<Bytes>, Option<Box<str>>)>,
    attempts: Vec<EndedAttempt>,
    stream: Option<StreamRow>,
    chunks: Vec<ChunkRow>,
}

/// Copies everything, and returns what was read.
pub(super) async fn copy(
    from: StoreRows,
    to: &StoreRows,
    catalog: &Catalog,
    progress: &mut CopyProgress,
) -> Result<Tally, StartupError> {
    let mut writer = Writer::new(to).await?;
    writer.put_catalog(catalog).await?;
    if let Some(remote) = to.blobs.as_ref().and_then(|blobs| blobs.remote()) {
        let address = Bytes::copy_from_slice(remote.address().as_bytes());
        writer.put(Write::PutSetting(PAYLOADS_AT.to_owned(), address), 0).await?;
        writer.flush().await?;
    }
    let tally = walk(&from, catalog, Some(&mut writer), progress).await?;
    writer.flush().await?;
    Ok(tally)
}

/// Returns what a store has.
pub(super) async fn read(from: &StoreRows, progress: &mut CopyProgress) -> Result<Tally, StartupError> {
    let mut catalog = from.store.catalog().await?;
    // Each store has its own.
    catalog.settings.remove(PAYLOADS_AT);
    walk(from, &catalog, None, progress).await
}

async fn walk(
    from: &StoreRows,
    catalog: &Catalog,
    mut writer: Option<&mut Writer<'_>>,
    progress: &mut CopyProgress,
) -> Result<Tally, StartupError> {
    let mut tally = Tally::of_catalog(catalog)
        .map_err(|error| StartupError::Copy(format!("a record of the catalog cannot be read: {error}")))?;
    for endpoint in &catalog.endpoints {
        if let Some(writer) = writer.as_deref_mut() {
            writer.turn_to(endpoint).await?;
        }
        let of_endpoint = walk_endpoint(from, endpoint, writer.as_deref_mut(), progress).await?;
        tally.add(&of_endpoint);
    }
    Ok(tally)
}

async fn walk_endpoint(
    from: &StoreRows,
    endpoint: &Endpoint,
    mut writer: Option<&mut Writer<'_>>,
    progress: &mut CopyProgress,
) -> Result<Tally, StartupError> {
    let mut tally = Tally::default();
    let counters = from.store.counters(endpoint.no).await?;
    tally.hash(&[b"counters", &endpoint.no.0.to_le_bytes(), format!("{counters:?}").as_bytes()]);
    let webhooks = from.store.webhooks(endpoint.no).await?;
    let mut webhooks: HashMap<u64, WebhookRow> =
        webhooks.into_iter().map(|webhook| (webhook.job.seq, webhook)).collect();
    if let Some(writer) = writer.as_deref_mut() {
        writer.put(Write::PutCounters(endpoint.no, counters), 0).await?;
    }
    let mut after_seq = 0;
    loop {
        let page = from.store.jobs(endpoint.no, after_seq, PAGE).await?;
        let Some(last) = page.last() else { return Ok(tally) };
        after_seq = last.key.seq;
        for some in page.chunks(READS) {
            let reads: Vec<_> =
                some.iter().map(|row| tokio::spawn(whole_job(from.clone(), row.clone()))).collect();
            for read in reads {
                let job = read.await.map_err(|error| StartupError::Engine(error.to_string()))??;
                let webhook = webhooks.remove(&job.row.key.seq);
                let before = tally.payload_bytes;
                add_job(from, job, webhook, &mut tally, writer.as_deref_mut()).await?;
                progress.add(1, tally.payload_bytes - before);
            }
        }
    }
}

/// Counts a job, and writes it.
async fn add_job(
    from: &StoreRows,
    job: WholeJob,
    webhook: Option<WebhookRow>,
    tally: &mut Tally,
    mut writer: Option<&mut Writer<'_>>,
) -> Result<(), StartupError> {
    let WholeJob { row, input, outcome, attempts, stream, mut chunks } = job;
    let key = row.key;
    let name = [key.endpoint.0.to_le_bytes().as_slice(), &key.seq.to_le_bytes()].concat();
    tally.jobs += 1;
    tally.hash(&[b"job", &name, &encode_job_row(&row)]);
    for (what, payload) in [("input", &input), ("output", &outcome.as_ref().and_then(|it| it.0.clone()))] {
        if let Some(payload) = payload {
            tally.payload_bytes += payload.len() as u64;
            tally.hash(&[what.as_bytes(), &name, payload]);
        }
    }
    if let Some((_, error)) = &outcome {
        tally.hash(&[b"outcome", &name, error.as_deref().unwrap_or_default().as_bytes()]);
    }
    for attempt in &attempts {
        tally.hash(&[b"attempt", &name, &attempt.n.0.to_le_bytes(), &encode_attempt(attempt)]);
    }
    if let Some(stream) = stream {
        tally.hash(&[b"stream", &name, &stream.next.to_le_bytes(), &stream.consumed.to_le_bytes()]);
    }
    if let Some(webhook) = webhook {
        tally.webhooks += 1;
        tally.hash(&[b"webhook", &name, &webhook.attempts.to_le_bytes(), &webhook.due_at.0.to_le_bytes()]);
    }
    if let Some(writer) = writer.as_deref_mut() {
        writer.put_job(row, input, outcome, stream, webhook).await?;
        for attempt in attempts {
            writer.put(Write::PutAttempt(key, Box::new(attempt)), 0).await?;
        }
    }
    loop {
        let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let Some(last) = chunks.last().map(|chunk| chunk.offset) else { return Ok(()) };
        for chunk in chunks {
            tally.chunks += 1;
            tally.payload_bytes += chunk.bytes.len() as u64;
            tally.hash(&[b"chunk", &name, &chunk.offset.to_le_bytes(), &chunk.bytes]);
            if let Some(writer) = writer.as_deref_mut() {
                let bytes = chunk.bytes.len();
                writer.put(Write::AppendChunk(key, chunk), bytes).await?;
            }
        }
        if bytes < CHUNK_BYTES {
            return Ok(());
        }
        chunks = from.store.chunks(key, last + 1, CHUNK_BYTES).await?;
    }
}

/// Reads a job's payloads, and the first of its chunks.
async fn whole_job(rows: StoreRows, row: JobRow) -> Result<WholeJob, StartupError> {
    let key = row.key;
    let input = match rows.store.input(key).await? {
        Some(payload) => Some(rows.fetch(&row, payload).await?),
        None => None,
    };
    let outcome = match rows.store.outcome(key).await? {
        Some(OutcomeRow { output: Some(payload), error }) => {
            Some((Some(rows.fetch(&row, payload).await?), error))
        }
        Some(OutcomeRow { output: None, error }) => Some((None, error)),
        None => None,
    };
    let attempts = rows.store.attempts(key).await?;
    let stream = rows.store.stream(key).await?;
    let chunks = match stream {
        Some(_) => rows.store.chunks(key, 0, CHUNK_BYTES).await?,
        None => Vec::new(),
    };
    Ok(WholeJob { row, input, outcome, attempts, stream, chunks })
}

impl StoreRows {
    /// The bytes of a payload.
    async fn fetch(&self, row: &JobRow, payload: Payload) -> Result<Bytes, StartupError> {
        let reference = match payload {
            Payload::Inline(bytes) => return Ok(bytes),
            Payload::Blob(reference) => reference,
        };
        let unreadable = |what: &str| {
            StartupError::Copy(format!(
                "the large payload `{}` of job {} {what}; `longshore store verify` lists all damage of a data directory",
                reference.name, row.id
            ))
        };
        let Some(blobs) = &self.blobs else { return Err(unreadable("is not in the database")) };
        let read = blobs.get(&reference.name).await;
        let bytes = read.map_err(|error| unreadable(&format!("cannot be read: {error}")))?;
        let bytes = bytes.ok_or_else(|| unreadable("is missing"))?;
        match reference.damage(&bytes) {
            None => Ok(bytes),
            Some(damage) => Err(unreadable(&damage)),
        }
    }
}

/// Writes batches of the shard of one endpoint after the other.
struct Writer<'a> {
    to: &'a StoreRows,
    epochs: Vec<Epoch>,
    shard: ShardId,
    writes: Vec<Write>,
    bytes: usize,
}

impl<'a> Writer<'a> {
    async fn new(to: &'a StoreRows) -> Result<Self, StoreError> {
        let epochs = to.store.claim_shards((0..ShardId::COUNT).map(ShardId).collect()).await?;
        Ok(Self { to, epochs, shard: ShardId::CATALOG, writes: Vec::new(), bytes: 0 })
    }

    async fn turn_to(&mut self, endpoint: &Endpoint) -> Result<(), StoreError> {
        self.flush().await?;
        self.shard = ShardId::of(&endpoint.id);
        Ok(())
    }

    async fn put_catalog(&mut self, catalog: &Catalog) -> Result<(), StoreError> {
        if let Some(endpoint) = catalog.endpoints.first() {
            // The number of a deleted endpoint is not assigned again.
            let mut last = endpoint.clone();
            last.no.0 = catalog.last_endpoint_no;
            if !catalog.endpoints.iter().any(|endpoint| endpoint.no == last.no) {
                let number = last.no;
                self.put(Write::PutEndpoint(Box::new(last)), 0).await?;
                self.put(Write::DeleteEndpoint(number), 0).await?;
                self.flush().await?;
            }
        }
        for endpoint in &catalog.endpoints {
            self.put(Write::PutEndpoint(Box::new(endpoint.clone())), 0).await?;
        }
        for template in &catalog.templates {
            self.put(Write::PutTemplate(Box::new(template.clone())), 0).await?;
        }
        for key in &catalog.keys {
            self.put(Write::PutKey(Box::new(key.clone())), 0).await?;
        }
        for row in &catalog.json_rows {
            let bytes = row.json.len();
            self.put(Write::PutJsonRow(row.kind, row.id.clone(), row.json.clone()), bytes).await?;
        }
        for (name, value) in &catalog.settings {
            self.put(Write::PutSetting(name.clone(), value.clone()), value.len()).await?;
        }
        self.flush().await
    }

    async fn put_job(
        &mut self,
        row: JobRow,
        input: Option<Bytes>,
        outcome: Option<(Option<Bytes>, Option<Box<str>>)>,
        stream: Option<StreamRow>,
        webhook: Option<WebhookRow>,
    ) -> Result<(), StartupError> {
        let (key, stem) = (row.key, format!("{}/{}", row.key.endpoint.0, row.id));
        self.put(Write::PutJob(Box::new(row)), 0).await?;
        if let Some(input) = input {
            let bytes = input.len();
            let payload = self.payload(format!("{stem}.input"), input).await?;
            self.put(Write::PutInput(key, payload), bytes).await?;
        }
        if let Some((output, error)) = outcome {
            let bytes = output.as_ref().map_or(0, Bytes::len);
            let output = match output {
                Some(output) => Some(self.payload(format!("{stem}.output.copied"), output).await?),
                None => None,
            };
            self.put(Write::PutOutcome(key, OutcomeRow { output, error }), bytes).await?;
        }
        if let Some(stream) = stream {
            // No server runs that could repeat a post.
            let stream = StreamRow { posts: LastPosts::default(), ..stream };
            self.put(Write::PutStream(key, stream), 0).await?;
        }
        if let Some(webhook) = webhook {
            self.put(Write::PutWebhook(webhook), 0).await?;
        }
        Ok(())
    }

    /// A payload for a row; a large one is a file first.
    async fn payload(&self, stem: String, bytes: Bytes) -> Result<Payload, StartupError> {
        let Some(blobs) = self.to.blobs.as_ref().filter(|_| bytes.len() > self.to.blob_bytes_min) else {
            return Ok(Payload::Inline(bytes));
        };
        let reference = BlobRef::new(&stem, &bytes);
        blobs.put(&reference.name, bytes).await.map_err(|error| StartupError::Copy(error.to_string()))?;
        Ok(Payload::Blob(reference))
    }

    async fn put(&mut self, write: Write, bytes: usize) -> Result<(), StoreError> {
        self.writes.push(write);
        self.bytes += bytes;
        if self.bytes < BATCH_BYTES && self.writes.len() < BATCH_WRITES {
            return Ok(());
        }
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        let writes = std::mem::take(&mut self.writes);
        self.bytes = 0;
        if writes.is_empty() {
            return Ok(());
        }
        let epoch = self.epochs[usize::from(self.shard.0)];
        self.to
            .store
            .commit(self.shard, epoch, Batch { durability: Durability::Synced, writes, chain: None })
            .await
    }
}
