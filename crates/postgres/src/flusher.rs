//! Flushers: make durable what lanes have written.
//!
//! The log of PostgreSQL is one sequence. A commit that waits for the disk makes every earlier commit of every
//! connection durable, also on a synchronous standby. So one flush serves all batches that took effect before it began.
//!
//! A database that is killed forgets batches that were not flushed, and a flush after its restart does not bring them back. So
//! the flush also reads how many batches each shard has: a batch that the database has, when the flush begins, is durable when
//! it ends.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use longshore_model::ShardId;
use longshore_store::StoreError;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};

use crate::sessions::{FlushSession as _, LaneDatabase, ShardPlaces, StatementError};
use crate::shards::Shards;

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

/// Gets the time of each flush that succeeded.
pub(crate) type FlushWatch = Box<dyn Fn(Duration) + Send + Sync>;

/// The batches that wait for a flush. Bounded by the batches that lanes have in flight.
#[derive(Default)]
pub(crate) struct Flushes {
    waiting: Mutex<Vec<FlushRequest>>,
    wake: Notify,
    /// Set at most once.
    pub(crate) watch: OnceLock<FlushWatch>,
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

/// Flushes until the task is aborted. Several flushers overlap: one begins while another waits for the disk.
pub(crate) async fn run<D: LaneDatabase>(database: D, flushes: Arc<Flushes>, shards: Arc<Shards>) {
    let mut session = None;
    loop {
        flushes.wake.notified().await;
        let requests = std::mem::take(&mut *flushes.waiting());
        if requests.is_empty() {
            continue;
        }
        let began = Instant::now();
        let durable = flush_patiently(&database, &mut session, &requests).await;
        if let Some(watch) = flushes.watch.get().filter(|_| durable.is_ok()) {
            watch(began.elapsed());
        }
        for request in requests {
            let result =
                durable.as_ref().map_err(Clone::clone).and_then(|durable| verdict(&request, durable));
            let FlushRequest { shard, batches, chain, reply, .. } = request;
            if result.is_ok() {
                shards.durable(shard, batches);
            }
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
fn verdict(request: &FlushRequest, durable: &ShardPlaces) -> Result<(), StoreError> {
    let found = durable.get(&request.shard);
    if found.is_some_and(|place| place.epoch == request.epoch && place.batches >= request.batches) {
        return Ok(());
    }
    Err(StoreError::Io(
        "the database restarted before the change was on its disk; it is not known whether this change took effect".to_owned(),
    ))
}

/// Flushes, over a new connection if the present one is broken, for 5 s at most.
async fn flush_patiently<D: LaneDatabase>(
    database: &D,
    session: &mut Option<D::Flusher>,
    requests: &[FlushRequest],
) -> Result<ShardPlaces, StoreError> {
    let mut shards: Vec<ShardId> = requests.iter().map(|request| request.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flush(database, session, &shards).await {
            Err(error) if session.is_some() || Instant::now() >= deadline => return Err(error),
            Err(_) => sleep(PAUSE).await,
            durable => return durable,
        }
    }
}

/// Flushes once. Without a session afterwards, another attempt can succeed.
async fn flush<D: LaneDatabase>(
    database: &D,
    session: &mut Option<D::Flusher>,
    shards: &[ShardId],
) -> Result<ShardPlaces, StoreError> {
    let open = match session.take().filter(|session| !session.is_closed()) {
        Some(open) => open,
        None => database.open_flusher().await?,
    };
    let open = session.insert(open);
    open.flush(shards.to_vec()).await.map_err(|StatementError { error, breaks_connection }| {
        if breaks_connection {
            *session = None;
        }
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::ShardPlace;

    #[test]
    fn a_batch_that_the_database_has_forgotten_is_not_acknowledged() {
        let (reply, _) = oneshot::channel();
        let request = FlushRequest { shard: ShardId(3), epoch: 7, batches: 5, chain: None, reply };
        let durable = |epoch, batches| ShardPlaces::from([(ShardId(3), ShardPlace { epoch, batches })]);
        assert!(verdict(&request, &durable(7, 5)).is_ok() && verdict(&request, &durable(7, 9)).is_ok());
        for forgotten in [durable(7, 4), durable(8, 9), durable(6, 5), ShardPlaces::new()] {
            assert!(verdict(&request, &forgotten).is_err(), "{forgotten:?}");
        }
    }
}
