//! The connections of lanes and flushers to PostgreSQL.

use std::sync::Arc;

use longshore_model::ShardId;
use longshore_store::StoreError;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::commit_statement::{Columns, CommitStatements};
use crate::connect::{Database, Role};
use crate::error::{breaks_connection, store_error};
use crate::sessions::{
    BatchPlace, BatchResult, FlushSession, LaneDatabase, LaneSession, RAISED_BY, ShardPlace, ShardPlaces,
    StatementError,
};

const RAISE: &str = "UPDATE shard SET epoch = shard.epoch + $3 FROM unnest($1::int2[], $2::int8[]) u(no, epoch) \
    WHERE shard.no = u.no AND shard.epoch = u.epoch RETURNING shard.no, shard.epoch, shard.batches";
const PLACES: &str = "SELECT no, epoch, batches FROM shard WHERE no = ANY($1::int2[])";
const FLUSH: &str = "WITH flush AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'longshore', '') AS at) \
    SELECT shard.no, shard.epoch, shard.batches FROM flush, shard WHERE shard.no = ANY($1::int2[]) AND flush.at IS NOT NULL";

/// The connection of a lane.
pub struct SqlLane {
    client: Arc<Client>,
    statements: CommitStatements,
}

/// The connection of a flusher.
pub struct SqlFlusher {
    client: Client,
    flush: Statement,
}

impl LaneDatabase for Database {
    type Changes = Columns;
    type Lane = SqlLane;
    type Flusher = SqlFlusher;

    async fn open_lane(&self) -> Result<SqlLane, StoreError> {
        let client = self.connect(Role::Lane).await?;
        let statements = CommitStatements::prepare(&client).await.map_err(|error| store_error(&error))?;
        Ok(SqlLane { client: Arc::new(client), statements })
    }

    async fn open_flusher(&self) -> Result<SqlFlusher, StoreError> {
        let client = self.connect(Role::Flusher).await?;
        let flush = client.prepare(FLUSH).await.map_err(|error| store_error(&error))?;
        Ok(SqlFlusher { client, flush })
    }
}

impl LaneSession<Columns> for SqlLane {
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn write(
        &self,
        changes: Arc<Columns>,
        place: BatchPlace,
    ) -> impl Future<Output = Result<BatchResult, StatementError>> + Send + 'static {
        let (client, statements) = (Arc::clone(&self.client), self.statements.clone());
        async move { changes.write(&client, &statements, place).await.map_err(|error| failed(&error)) }
    }

    async fn raise(&self, shards: Vec<(ShardId, i64)>) -> Result<ShardPlaces, StoreError> {
        let numbers: Vec<i16> = shards.iter().map(|(shard, _)| i16::from(shard.0)).collect();
        let epochs: Vec<i64> = shards.iter().map(|(_, epoch)| *epoch).collect();
        let raised = async {
            self.client.batch_execute("SET synchronous_commit = on").await?;
            let raised = self.client.query(RAISE, &[&numbers, &epochs, &RAISED_BY]).await?;
            self.client.batch_execute("SET synchronous_commit = off").await?;
            if raised.len() == numbers.len() {
                return places(&raised);
            }
            // Other shards have another owner, or the database has forgotten their epochs.
            places(&self.client.query(PLACES, &[&numbers]).await?)
        };
        raised.await.map_err(|error| store_error(&error))
    }
}

impl FlushSession for SqlFlusher {
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn flush(&self, shards: Vec<ShardId>) -> Result<ShardPlaces, StatementError> {
        let numbers: Vec<i16> = shards.iter().map(|shard| i16::from(shard.0)).collect();
        let rows = self.client.query(&self.flush, &[&numbers]).await.map_err(|error| failed(&error))?;
        places(&rows).map_err(|error| failed(&error))
    }
}

fn places(rows: &[Row]) -> Result<ShardPlaces, Error> {
    let place = |row: &Row| {
        let shard = ShardId(u8::try_from(row.try_get::<_, i16>(0)?).unwrap_or_default());
        Ok((shard, ShardPlace { epoch: row.try_get(1)?, batches: row.try_get(2)? }))
    };
    rows.iter().map(place).collect()
}

fn failed(error: &Error) -> StatementError {
    StatementError { error: store_error(error), breaks_connection: breaks_connection(error) }
}
