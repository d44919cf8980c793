//! The store: hands batches to lanes, and reads rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{
    Attempt, Counters, Durability, EndedAttempt, EndpointNo, Epoch, JobKey, JobRow, LastPosts, Millis,
    ShardId,
};
use longshore_store::{
    Batch, Catalog, ChunkRow, CommitWithLine, LogLine, OutcomeRow, Payload, Store, StoreError, StoreFuture,
    StreamRow, WebhookRow, decode_attempt, decode_job_row,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::commit_statement::Columns;
use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::lanes::{FLUSHERS, LANES, LaneWriter, first_error};
use crate::nodes::Owned;
use crate::old_transactions::OldTransaction;
use crate::payload;
use crate::reader::{Read, Readers};
use crate::reduced::Reduced;
use crate::sessions::{ShardPlace, on_tokio};
use crate::{exclusive, old_transactions, schema, server_check, values};

/// The number of connections that only read.
const READERS: usize = 2;
/// The connection of logs.
const LOGS: usize = 1;
/// The connections of a server, beside the one of its lock.
pub(crate) const CONNECTIONS: i64 = (LANES + FLUSHERS + READERS + LOGS) as i64;
/// Chunks per query, so that a page of bytes does not read a whole stream.
const CHUNKS_PER_QUERY: i64 = 64;

const CLAIM: &str = "INSERT INTO shard (no, epoch, batches) SELECT u.no, 1, 0 FROM unnest($1::int2[]) u(no) \
    ON CONFLICT (no) DO UPDATE SET epoch = shard.epoch + 1 RETURNING no, epoch, batches";
/// As [`CLAIM`], while the row of the cluster names this node and this epoch. Another node that takes over waits for it.
const CLAIM_AS_OWNER: &str = "WITH owner AS MATERIALIZED (SELECT 1 FROM cluster WHERE owner = $2 AND epoch = $3 FOR SHARE) \
    INSERT INTO shard (no, epoch, batches) SELECT u.no, 1, 0 FROM owner, unnest($1::int2[]) u(no) \
    ON CONFLICT (no) DO UPDATE SET epoch = shard.epoch + 1 RETURNING no, epoch, batches";
const RELEASE: &str = "UPDATE shard SET epoch = shard.epoch + 1 FROM unnest($1::int2[], $2::int8[]) u(no, epoch) \
    WHERE shard.no = u.no AND shard.epoch = u.epoch";

/// A store in a PostgreSQL database. One server at a time uses it. Must be used inside a Tokio runtime.
pub struct PostgresStore {
    lanes: LaneWriter<Database>,
    readers: Arc<Readers>,
    /// The right to claim shards; `None` for the one server of a database.
    owned: Option<Owned>,
    /// Set when another server has the database.
    lost: watch::Receiver<Option<StoreError>>,
    /// Tasks that end with the store.
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("lanes", &LANES).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Checks the database, takes its lock, brings the tables up to date, and starts the lanes.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the database cannot keep a store's promises, another server uses it, or a newer program
    /// made its tables; [`StoreError::Io`] if it cannot be reached. The text says what to do.
    pub async fn open(database: Database) -> Result<Self, StoreError> {
        let mut client = database.connect(Role::Reader).await?;
        let lock = exclusive::lock(&database).await?;
        server_check::check(&client, &lock.client, CONNECTIONS).await?;
        schema::migrate(&mut client, database.schema()).await?;
        drop(client);
        let (tell_lost, lost) = watch::channel(None);
        let keep = tokio::spawn(exclusive::keep(database.clone(), lock, tell_lost));
        Ok(Self::start(database, None, lost, vec![keep]))
    }

    /// The store of the node that owns the shards. [`PostgresStore::lost`] does not tell when another node takes over, but commits fail then:
    /// [`Membership::lost`](crate::Membership::lost) tells.
    pub fn of_owner(owned: Owned) -> Self {
        let (_, lost) = watch::channel(None);
        Self::start(Database::clone(&owned.database), Some(owned), lost, Vec::new())
    }

    /// A store whose caller keeps servers away from the tables.
    pub(crate) fn locked_by_caller(database: Database) -> Self {
        Self::start(database, None, watch::channel(None).1, Vec::new())
    }

    /// Starts the lanes and the flushers.
    fn start(
        database: Database,
        owned: Option<Owned>,
        lost: watch::Receiver<Option<StoreError>>,
        tasks: Vec<JoinHandle<()>>,
    ) -> Self {
        let lanes = LaneWriter::start(&database, &on_tokio);
        let readers = Arc::new(Readers::new(database, READERS, lanes.settling()));
        Self { lanes, readers, owned, lost, tasks }
    }

    /// Waits until the rows are no longer those of this store: another server has taken the database, which happens only after the
    /// connections were broken, or the database has forgotten what it had made durable. Commits fail from then on, and what was read may
    /// be out of date: the caller should end. Returns the cause.
    pub fn lost(&self) -> impl Future<Output = StoreError> + Send + use<> {
        let (taken, forgotten) = (first_error(self.lost.clone()), self.lanes.forgotten());
        async move {
            tokio::select! {
                error = taken => error,
                error = forgotten => error,
            }
        }
    }

    /// Calls `watch` with the time of each flush that succeeds: until the database had on its disk what was written before. A batch
    /// that waits for the disk alone is no flush.
    pub fn watch_flushes(&self, watch: impl Fn(Duration) + Send + Sync + 'static) {
        self.lanes.watch_flushes(watch);
    }

    /// Calls `tell` once for each transaction of another program that was the oldest one of the database for `age`, as long as the
    /// store lives: the tables grow until it ends.
    pub fn watch_transactions(
        &mut self,
        age: Duration,
        tell: impl Fn(OldTransaction) + Send + Sync + 'static,
    ) {
        self.tasks.push(tokio::spawn(old_transactions::watch(Arc::clone(&self.readers), age, tell)));
    }

    async fn claim(&self, wanted: Vec<ShardId>) -> Result<Vec<Epoch>, StoreError> {
        let numbers: Vec<i16> = wanted.iter().map(|shard| i16::from(shard.0)).collect();
        let session = self.readers.session().await?;
        let rows = match &self.owned {
            None => session.client.query(CLAIM, &[&numbers]).await,
            Some(owned) => session.client.query(CLAIM_AS_OWNER, &[&numbers, &owned.node, &owned.epoch]).await,
        };
        let rows = rows.map_err(|error| store_error(&error))?;
        if rows.is_empty() && self.owned.is_some() && !wanted.is_empty() {
            let text = "another node has taken over before this one could begin; start it again";
            return Err(StoreError::Unusable(text.to_owned()));
        }
        let mut claimed = BTreeMap::new();
        for row in &rows {
            let (number, epoch, batches) = (get::<i16>(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?);
            let shard = ShardId(u8::try_from(number).unwrap_or_default());
            claimed.insert(shard, self.lanes.claimed(shard, ShardPlace { epoch, batches }));
        }
        let epochs: Option<Vec<Epoch>> = wanted.iter().map(|shard| claimed.get(shard).copied()).collect();
        epochs.ok_or_else(|| StoreError::Io("the database claimed fewer shards than were named".to_owned()))
    }

    async fn release(&self, shards: Vec<(ShardId, Epoch)>) -> Result<(), StoreError> {
        let owned = shards
            .into_iter()
            .filter_map(|(shard, epoch)| self.lanes.stored_epoch(shard, epoch).map(|stored| (shard, stored)));
        let owned: Vec<(ShardId, i64)> = owned.collect();
        let numbers: Vec<i16> = owned.iter().map(|(shard, _)| i16::from(shard.0)).collect();
        let epochs: Vec<i64> = owned.iter().map(|(_, epoch)| *epoch).collect();
        let session = self.readers.session().await?;
        session.client.execute(RELEASE, &[&numbers, &epochs]).await.map_err(|error| store_error(&error))?;
        for (shard, _) in owned {
            self.lanes.released(shard);
        }
        Ok(())
    }

    fn write(
        &self,
        shard: ShardId,
        epoch: Epoch,
        batch: Batch,
        line: Option<LogLine>,
    ) -> StoreFuture<'_, ()> {
        let columns = match Reduced::new(batch.writes) {
            Ok(reduced) => Columns::new(reduced, line),
            Err(error) => {
                self.lanes.fail_chain(shard, batch.chain, &error);
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        let is_synced = batch.durability == Durability::Synced;
        Box::pin(self.lanes.commit(shard, epoch, batch.chain, is_synced, Arc::new(columns)))
    }

    async fn read_one(&self, read: Read, job: JobKey) -> Result<Option<Row>, StoreError> {
        let (endpoint, seq) = (job.endpoint.0.cast_signed(), job.seq.cast_signed());
        Ok(self.readers.read(read, &[&endpoint, &seq]).await?.pop())
    }

    async fn read_bytes(&self, read: Read, job: JobKey) -> Result<Option<Bytes>, StoreError> {
        let Some(row) = self.read_one(read, job).await? else { return Ok(None) };
        Ok(get::<Option<Vec<u8>>>(&row, 0)?.map(Bytes::from))
    }

    async fn read_attempts(&self, job: JobKey) -> Result<Vec<EndedAttempt>, StoreError> {
        let Some(row) = self.read_one(Read::Attempts, job).await? else { return Ok(Vec::new()) };
        let stored = get::<Option<Vec<Vec<u8>>>>(&row, 0)?.unwrap_or_default();
        let attempt = |bytes: &Vec<u8>| {
            let (n, body) = bytes.split_first_chunk().ok_or_else(|| {
                StoreError::Corrupt("the database has an attempt without a number".to_owned())
            })?;
            decode_attempt(job, Attempt(u32::from_be_bytes(*n)), body)
        };
        stored.iter().map(attempt).collect()
    }

    async fn read_chunks(
        &self,
        job: JobKey,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Vec<ChunkRow>, StoreError> {
        let (endpoint, seq) = (job.endpoint.0.cast_signed(), job.seq.cast_signed());
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        let Ok(mut from) = i64::try_from(offset) else { return Ok(chunks) };
        loop {
            let rows = self.readers.read(Read::Chunks, &[&endpoint, &seq, &from, &CHUNKS_PER_QUERY]).await?;
            for row in &rows {
                let offset: i64 = get(row, 0)?;
                let chunk =
                    ChunkRow { offset: offset.cast_unsigned(), bytes: get::<Vec<u8>>(row, 1)?.into() };
                bytes += chunk.bytes.len();
                chunks.push(chunk);
                if bytes >= bytes_max {
                    return Ok(chunks);
                }
                from = offset.saturating_add(1);
            }
            if (rows.len() as i64) < CHUNKS_PER_QUERY {
                return Ok(chunks);
            }
        }
    }

    async fn read_catalog(&self) -> Result<Catalog, StoreError> {
        let last = self.readers.read(Read::LastEndpoint, &[]).await?;
        let last = last.first().map(|row| get::<i64>(row, 0)).transpose()?.unwrap_or_default();
        let last_endpoint_no = u32::try_from(last).map_err(|_| {
            StoreError::Corrupt("the database has an endpoint number out of range".to_owned())
        })?;
        let mut catalog = Catalog { last_endpoint_no, ..Catalog::default() };
        for row in self.readers.read(Read::Values, &[]).await? {
            values::add(&mut catalog, get(&row, 0)?, get(&row, 1)?, get(&row, 2)?)?;
        }
        catalog.endpoints.sort_by_key(|endpoint| endpoint.no);
        Ok(catalog)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| store_error(&error))
}

impl CommitWithLine for PostgresStore {
    fn commit_with_line(
        &self,
        shard: ShardId,
        epoch: Epoch,
        batch: Batch,
        line: LogLine,
    ) -> StoreFuture<'_, ()> {
        self.write(shard, epoch, batch, Some(line))
    }
}

impl Store for PostgresStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.claim(shards))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        Box::pin(self.release(shards))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        self.write(shard, epoch, batch, None)
    }

    fn with_log_lines(&self) -> Option<&dyn CommitWithLine> {
        Some(self)
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        Box::pin(self.read_catalog())
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        Box::pin(async move {
            let rows = self.readers.read(Read::Counters, &[&endpoint.0.cast_signed()]).await?;
            let Some(row) = rows.first() else { return Ok(Counters::default()) };
            let count = |column| get::<i64>(row, column).map(i64::cast_unsigned);
            Ok(Counters {
                completed: count(0)?,
                failed: count(1)?,
                retried: count(2)?,
                cancelled: count(3)?,
                reserved_seq: count(4)?,
                purged_until: Millis(count(5)?),
            })
        })
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        Box::pin(async move {
            let after = i64::try_from(after_seq).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = self.readers.read(Read::Jobs, &[&endpoint.0.cast_signed(), &after, &limit]).await?;
            let job = |row: &Row| {
                let key = JobKey { endpoint, seq: get::<i64>(row, 0)?.cast_unsigned() };
                decode_job_row(key, get::<&[u8]>(row, 1)?)
            };
            rows.iter().map(job).collect()
        })
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        Box::pin(async move {
            let rows = self.readers.read(Read::Webhooks, &[&endpoint.0.cast_signed()]).await?;
            let webhook = |row: &Row| {
                Ok(WebhookRow {
                    job: JobKey { endpoint, seq: get::<i64>(row, 0)?.cast_unsigned() },
                    attempts: u32::try_from(get::<i64>(row, 1)?).unwrap_or(u32::MAX),
                    due_at: Millis(get::<i64>(row, 2)?.cast_unsigned()),
                })
            };
            rows.iter().map(webhook).collect()
        })
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        Box::pin(async move { self.read_bytes(Read::Input, job).await?.map(payload::payload).transpose() })
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(async move { self.read_bytes(Read::Outcome, job).await?.map(payload::outcome).transpose() })
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        Box::pin(self.read_attempts(job))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        Box::pin(async move {
            let Some(row) = self.read_one(Read::Stream, job).await? else { return Ok(None) };
            let number = |column| get::<i64>(&row, column).map(i64::cast_unsigned);
            let posts = match get::<Option<&[u8]>>(&row, 2)? {
                Some(stored) => LastPosts::from_stored(stored).ok_or_else(|| {
                    StoreError::Corrupt("the database has a stream whose posts have no numbers".to_owned())
                })?,
                None => LastPosts::default(),
            };
            Ok(Some(StreamRow { next: number(0)?, consumed: number(1)?, posts }))
        })
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(self.read_chunks(job, offset, bytes_max))
    }
}
