//! Flushers: make durable what lanes have written.
//!
//! The log of PostgreSQL is one sequence. A commit that waits for the disk makes every earlier commit of every
//! connection durable, also on a synchronous standby. So one flush serves all batches that took effect before it began.
//!
//! A database that is killed forgets batches that were not flushed, and a flush after its restart does not bring them back. So
//! the flush also reads how many batches each shard has: a batch that the database has, when the flush begins, is durable when
//! it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_model::ShardId;
use longshore_store::StoreError;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, Statement};

use crate::connect::{Database, Role};
use crate::error::{breaks_connection, store_error};
use crate::shards::Shards;

const FLUSH: &str = "WITH flush AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'longshore', '') AS at) \
    SELECT shard.no, shard.epoch, shard.batches FROM flush, shard WHERE shard.no = ANY($1::int2[]) AND flush.at IS NOT NULL";

/// How long a flush whose connection broke is tried again.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failed flush.
const PAUSE: Duration = Duration::from_millis(100);

/// A batch that took effect, and whose sender waits until it is durable.
pub(crate) struct FlushRequest {
    pub shard: ShardId,
    /// The epoch in the database under which the batch took effect.
    pub epoch: i64,
    /// The number of batches of the shard with this one.
    pub batches: i64,
    pub chain: Option<u64>,
    pub reply: oneshot::Sender<Result<(), StoreError>>,
}

/// The batches that wait for a flush. Bounded by the batches that lanes have in flight.
#[derive(Default)]
pub(crate) struct Flushes {
    waiting: Mutex<Vec<FlushRequest>>,
    wake: Notify,
}

impl Flushes {
    fn waiting(&self) -> MutexGuard<'_, Vec<FlushRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch to the next flush.
    pub(crate) fn add(&self, request: FlushRequest) {
        self.waiting().push(request);
        self.wake.notify_one();
    }
}

/// The epoch and the number of batches of shards, as a flush found them.
type Durable = BTreeMap<i16, (i64, i64)>;

/// Flushes until the task is aborted. Several flushers overlap: one begins while another waits for the disk.
pub(crate) async fn run(database: Database, flushes: Arc<Flushes>, shards: Arc<Shards>) {
    let mut session: Option<(Client, Statement)> = None;
    loop {
        flushes.wake.notified().await;
        let requests = std::mem::take(&mut *flushes.waiting());
        if requests.is_empty() {
            continue;
        }
        let durable = flush_patiently(&database, &mut session, &requests).await;
        for request in requests {
            let result =
                durable.as_ref().map_err(Clone::clone).and_then(|durable| verdict(&request, durable));
            let FlushRequest { shard, chain, reply, .. } = request;
            let result = match result {
                // An earlier batch of the chain may have failed in another flusher.
                Ok(()) => shards.check_chain(shard, chain),
                Err(error) => {
                    shards.fail_chain(shard, chain, &error);
                    Err(error)
                }
            };
            // The sender may have gone.
            let _ = reply.send(result);
        }
    }
}

/// Whether the batch was in the database when the flush began.
fn verdict(request: &FlushRequest, durable: &Durable) -> Result<(), StoreError> {
    let found = durable.get(&i16::from(request.shard.0));
    if found.is_some_and(|(epoch, batches)| *epoch == request.epoch && *batches >= request.batches) {
        return Ok(());
    }
    Err(StoreError::Io(
        "the database restarted before the change was on its disk; it is not known whether this change took effect".to_owned(),
    ))
}

/// Flushes, over a new connection if the present one is broken, for 5 s at most.
async fn flush_patiently(
    database: &Database,
    session: &mut Option<(Client, Statement)>,
    requests: &[FlushRequest],
) -> Result<Durable, StoreError> {
    let mut numbers: Vec<i16> = requests.iter().map(|request| i16::from(request.shard.0)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flush(database, session, &numbers).await {
            Err(error) if session.is_some() || Instant::now() >= deadline => return Err(error),
            Err(_) => sleep(PAUSE).await,
            durable => return durable,
        }
    }
}

/// Flushes once. Without a session afterwards, another attempt can succeed.
async fn flush(
    database: &Database,
    session: &mut Option<(Client, Statement)>,
    numbers: &[i16],
) -> Result<Durable, StoreError> {
    if session.as_ref().is_none_or(|(client, _)| client.is_closed()) {
        *session = None;
        let client = database.connect(Role::Flusher).await?;
        let statement = client.prepare(FLUSH).await.map_err(|error| store_error(&error))?;
        *session = Some((client, statement));
    }
    let Some((client, statement)) = session else { return Ok(Durable::new()) };
    let rows = match client.query(statement, &[&numbers]).await {
        Ok(rows) => rows,
        Err(error) => {
            if breaks_connection(&error) {
                *session = None;
            }
            return Err(store_error(&error));
        }
    };
    let place = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)));
    let places: Result<Durable, tokio_postgres::Error> = rows.iter().map(place).collect();
    places.map_err(|error| store_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_the_database_has_forgotten_is_not_acknowledged() {
        let (reply, _) = oneshot::channel();
        let request = FlushRequest { shard: ShardId(3), epoch: 7, batches: 5, chain: None, reply };
        let durable = |epoch, batches| Durable::from([(3, (epoch, batches))]);
        assert!(verdict(&request, &durable(7, 5)).is_ok() && verdict(&request, &durable(7, 9)).is_ok());
        for forgotten in [durable(7, 4), durable(8, 9), durable(6, 5), Durable::new()] {
            assert!(verdict(&request, &forgotten).is_err(), "{forgotten:?}");
        }
    }
}
