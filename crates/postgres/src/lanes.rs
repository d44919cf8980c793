//! The lanes and flushers of a store, with the shards that it has claimed.

use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Epoch, ShardId};
use longshore_store::StoreError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::flusher::{self, Flushes};
use crate::lane::{Lane, LaneCommit, LaneParts};
use crate::sessions::{LaneDatabase, ShardPlace, Spawn};
use crate::shards::{Claim, Shards};

/// Connections that write. A shard belongs to one of them, so that its batches keep their order.
pub(crate) const LANES: usize = 2;
/// Connections that wait for the disk.
pub(crate) const FLUSHERS: usize = 2;
/// How long a read waits until the batches of a broken connection are settled.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes batches to a database, in the order of the calls for each shard. The flushers end with the value, and the lanes when
/// their batches are settled.
pub struct LaneWriter<D: LaneDatabase> {
    lanes: Vec<mpsc::UnboundedSender<LaneCommit<D::Changes>>>,
    shards: Arc<Shards>,
    /// For each lane, whether its batches are settled.
    are_settled: Vec<watch::Receiver<bool>>,
    flushers: Vec<JoinHandle<()>>,
    flushes: Arc<Flushes>,
}

impl<D: LaneDatabase> LaneWriter<D> {
    /// Starts the lanes and the flushers.
    pub fn start(database: &D, spawn: Spawn<'_>) -> Self {
        let (shards, flushes) = (Arc::new(Shards::default()), Arc::new(Flushes::default()));
        let start = |_| {
            let (flushes, shards) = (Arc::clone(&flushes), Arc::clone(&shards));
            spawn(Box::pin(flusher::run(database.clone(), flushes, shards)))
        };
        let tasks = (0..FLUSHERS).map(start).collect();
        let (mut lanes, mut are_settled) = (Vec::new(), Vec::new());
        for number in 0..LANES {
            let (sender, commits) = mpsc::unbounded_channel();
            let (is_settled, settled) = watch::channel(true);
            let parts = LaneParts {
                database: database.clone(),
                shards: Arc::clone(&shards),
                flushes: Arc::clone(&flushes),
                number,
                count: LANES,
                is_settled,
            };
            // A lane ends by itself.
            drop(spawn(Box::pin(Lane::new(parts, commits).run())));
            lanes.push(sender);
            are_settled.push(settled);
        }
        Self { lanes, shards, are_settled, flushers: tasks, flushes }
    }

    /// Calls `watch` with the time of each flush that succeeds. The first watch stays.
    pub fn watch_flushes(&self, watch: impl Fn(Duration) + Send + Sync + 'static) {
        // A later watch is dropped.
        let _ = self.flushes.watch.set(Box::new(watch));
    }

    /// Notes that a shard was claimed in the database. Returns the epoch of its batches.
    pub fn claimed(&self, shard: ShardId, place: ShardPlace) -> Epoch {
        let ShardPlace { epoch, batches } = place;
        let given = Epoch(epoch.cast_unsigned());
        self.shards.claimed(shard, Claim { given, stored: epoch, batches, durable: batches });
        given
    }

    /// The epoch in the database of a shard that was claimed under `epoch`; `None` if it was not, or was released.
    pub fn stored_epoch(&self, shard: ShardId, epoch: Epoch) -> Option<i64> {
        self.shards.claim(shard).filter(|claim| claim.given == epoch).map(|claim| claim.stored)
    }

    /// Notes that a shard was released.
    pub fn released(&self, shard: ShardId) {
        self.shards.released(shard);
    }

    /// Notes that a batch of a chain cannot be written.
    pub(crate) fn fail_chain(&self, shard: ShardId, chain: Option<u64>, error: &StoreError) {
        self.shards.fail_chain(shard, chain, error);
    }

    /// Writes a batch, and waits for its flush if `is_synced`. The batch is in flight when this returns.
    ///
    /// # Errors
    /// Those of [`Store::commit`](longshore_store::Store::commit), from the future.
    pub fn commit(
        &self,
        shard: ShardId,
        given: Epoch,
        chain: Option<u64>,
        is_synced: bool,
        changes: Arc<D::Changes>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static + use<D> {
        let (reply, result) = oneshot::channel();
        let commit = LaneCommit { shard, given, chain, is_synced, changes, reply, sends: 0 };
        // Sent here and not in the future: batches take effect in the order of the calls. If the lane has ended, the reply's
        // sender is dropped with the batch.
        let _ = self.lanes[usize::from(shard.0) % LANES].send(commit);
        async move { result.await.unwrap_or_else(|_| Err(StoreError::Io("the store has been closed".to_owned()))) }
    }

    /// Waits until the database turns out to have forgotten batches that it made durable: from then on, every commit fails.
    pub fn forgotten(&self) -> impl Future<Output = StoreError> + Send + use<D> {
        first_error(self.shards.forgotten())
    }

    /// Says when the lanes have settled what broken connections left.
    pub fn settling(&self) -> Settling {
        Settling(self.are_settled.clone())
    }
}

impl<D: LaneDatabase> Drop for LaneWriter<D> {
    fn drop(&mut self) {
        for task in &self.flushers {
            task.abort();
        }
    }
}

/// Waits for an error; for ever if its sender is dropped.
pub(crate) async fn first_error(mut errors: watch::Receiver<Option<StoreError>>) -> StoreError {
    let error = errors.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
    match error {
        Some(error) => error,
        None => std::future::pending().await,
    }
}

/// Says when the batches of broken connections are settled, so that rows can be read.
pub struct Settling(Vec<watch::Receiver<bool>>);

impl Settling {
    /// Waits until the lanes have settled what broken connections left.
    ///
    /// # Errors
    /// [`StoreError::Io`] if that takes longer than 5 s.
    pub async fn wait(&self) -> Result<(), StoreError> {
        let settled = async {
            for is_settled in &self.0 {
                // The lane has ended: then the store is being dropped.
                let _ = is_settled.clone().wait_for(|is_settled| *is_settled).await;
            }
        };
        let late = |_| StoreError::Io("the database has not answered for 5 s".to_owned());
        timeout(PATIENCE, settled).await.map_err(late)
    }
}
