//! A lane: the task that writes the batches of its shards, in order, over one connection.
//!
//! Several batches are in flight. Each takes effect without waiting for the disk; a flusher makes it durable. A batch names
//! the number of batches before it, so that none takes effect after one that failed.

mod broken;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use longshore_model::{Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::StoreError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::flusher::{FlushRequest, Flushes};
use crate::sessions::{BatchPlace, BatchResult, LaneDatabase, LaneSession, StatementError};
use crate::shards::Shards;

/// Batches in flight on one lane.
const IN_FLIGHT_MAX: usize = 32;
/// How often a batch is sent again because an independent batch before it failed.
const RESENDS_MAX: u8 = 3;

/// One batch to write.
pub(crate) struct LaneCommit<C> {
    pub shard: ShardId,
    /// The epoch that the claimer of the shard was given.
    pub given: Epoch,
    pub chain: Option<u64>,
    /// Whether the reply waits until the batch is durable.
    pub is_synced: bool,
    pub changes: Arc<C>,
    pub reply: oneshot::Sender<Result<(), StoreError>>,
    /// How often the batch was sent.
    pub sends: u8,
}

/// What a lane shares with the store.
pub(crate) struct LaneParts<D> {
    pub database: D,
    pub shards: Arc<Shards>,
    pub flushes: Arc<Flushes>,
    /// The number of this lane, and how many there are: a lane has the shards whose number modulo the count is its own.
    pub number: usize,
    pub count: usize,
    /// Whether every batch of a broken connection has taken effect or never will. Reads wait for it.
    pub is_settled: watch::Sender<bool>,
}

impl<D> LaneParts<D> {
    fn has(&self, shard: ShardId) -> bool {
        usize::from(shard.0) % self.count == self.number
    }
}

/// A batch that was sent and is not settled.
struct InFlight<C> {
    commit: LaneCommit<C>,
    place: BatchPlace,
    result: Pin<Box<dyn Future<Output = Result<BatchResult, StatementError>> + Send>>,
    /// The result, if the first poll gave it.
    ready: Option<Result<BatchResult, StatementError>>,
}

/// Why a lane stopped using its connection.
enum Ended {
    /// Every sender is gone and every batch is settled.
    Closed,
    /// The connection broke. It is not known which batches in flight took effect.
    Broken(StoreError),
}

/// A lane whose task runs: writes go to it in order.
pub(crate) struct Lane<D: LaneDatabase> {
    parts: LaneParts<D>,
    /// No limit of length: a committer has a few batches in flight for each of its shards.
    commits: mpsc::UnboundedReceiver<LaneCommit<D::Changes>>,
    /// Batches to send before those of the channel.
    waiting: VecDeque<LaneCommit<D::Changes>>,
    /// In the order in which they were sent.
    in_flight: VecDeque<InFlight<D::Changes>>,
    /// The number of batches of each shard whose batches in flight do not take effect. Nothing is sent until those are
    /// settled.
    refused: BTreeMap<ShardId, (i64, i64)>,
    is_closed: bool,
}

impl<D: LaneDatabase> Lane<D> {
    /// Returns a lane that has no connection yet.
    pub(crate) fn new(parts: LaneParts<D>, commits: mpsc::UnboundedReceiver<LaneCommit<D::Changes>>) -> Self {
        Self {
            parts,
            commits,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            refused: BTreeMap::new(),
            is_closed: false,
        }
    }

    /// Writes batches until every sender is gone.
    pub(crate) async fn run(mut self) {
        let mut cause = None;
        while let Some(session) = self.settle(cause.take()).await {
            match self.serve(&session).await {
                Ended::Closed => return,
                Ended::Broken(error) => {
                    tracing::warn!(lane = self.parts.number, %error, "the connection to the database broke");
                    cause = Some(error);
                }
            }
        }
    }

    async fn serve(&mut self, session: &D::Lane) -> Ended {
        loop {
            if self.in_flight.is_empty() {
                for (shard, (epoch, batches)) in std::mem::take(&mut self.refused) {
                    self.parts.shards.set_batches(shard, epoch, batches);
                }
            }
            let may_send = self.refused.is_empty() && self.in_flight.len() < IN_FLIGHT_MAX;
            if may_send && let Some(commit) = self.waiting.pop_front() {
                if session.is_closed() && self.in_flight.is_empty() {
                    // It broke while nothing was in flight: this batch can still be sent over the next one.
                    self.waiting.push_front(commit);
                    return Ended::Broken(StoreError::Io("the connection was closed".to_owned()));
                }
                self.send(session, commit).await;
                continue;
            }
            if self.is_closed && self.in_flight.is_empty() {
                return Ended::Closed;
            }
            tokio::select! {
                biased;
                (sent, result) = first(&mut self.in_flight) => {
                    if let Some(error) = self.finish(sent, result) {
                        return Ended::Broken(error);
                    }
                }
                commit = self.commits.recv(), if may_send && !self.is_closed => match commit {
                    Some(commit) => self.waiting.push_back(commit),
                    None => self.is_closed = true,
                },
            }
        }
    }

    async fn send(&mut self, session: &D::Lane, mut commit: LaneCommit<D::Changes>) {
        let claim = match self.parts.shards.send(commit.shard, commit.given, commit.chain) {
            Ok(claim) => claim,
            Err(error) => return answer(commit, Err(error)),
        };
        commit.sends += 1;
        // A lone batch waits for the disk itself: that is one round trip less than a flush.
        let is_alone = self.in_flight.is_empty() && self.waiting.is_empty() && self.commits.is_empty();
        let place = BatchPlace {
            shard: commit.shard,
            epoch: claim.stored,
            batches_before: claim.batches,
            is_synced: commit.is_synced && is_alone,
        };
        let mut result: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(session.write(Arc::clone(&commit.changes), place));
        // The first poll puts the statement behind the earlier ones.
        let ready = poll_fn(|context| match result.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Poll::Ready(None),
        })
        .await;
        self.in_flight.push_back(InFlight { commit, place, result, ready });
    }

    /// Settles the oldest batch in flight. Returns the error that broke the connection, if one did; then the batch is in
    /// flight again, because it is not known whether it took effect.
    fn finish(
        &mut self,
        sent: InFlight<D::Changes>,
        result: Result<BatchResult, StatementError>,
    ) -> Option<StoreError> {
        let (shards, place) = (&self.parts.shards, sent.place);
        match result {
            Ok(BatchResult::Written) => {
                if place.is_synced {
                    self.parts.shards.durable(place.shard, place.batches_before + 1);
                }
                let LaneCommit { shard, chain, is_synced, reply, .. } = sent.commit;
                if is_synced && !place.is_synced && !planted(Bug::AnswerBeforeFlush) {
                    let (epoch, batches) = (place.epoch, place.batches_before + 1);
                    self.parts.flushes.add(FlushRequest { shard, epoch, batches, chain, reply });
                } else {
                    // The sender may have gone.
                    let _ = reply.send(Ok(()));
                }
            }
            Ok(BatchResult::Refused { epoch, batches }) if epoch == place.epoch => {
                self.refused.insert(place.shard, (epoch, batches));
                self.resend(sent.commit);
            }
            Ok(BatchResult::Refused { epoch, .. }) => {
                let current = shards.claim(place.shard).map_or(Epoch(epoch.cast_unsigned()), |claim| {
                    if claim.stored == place.epoch { Epoch(epoch.cast_unsigned()) } else { claim.given }
                });
                let (shard, ours) = (place.shard, sent.commit.given);
                self.fail(sent.commit, StoreError::StaleEpoch { shard, ours, current });
            }
            Ok(BatchResult::Missing) => {
                let text = "the database has lost the row of a shard; restore the database from its backup";
                self.fail(sent.commit, StoreError::Corrupt(text.to_owned()));
            }
            Err(StatementError { error, breaks_connection: true }) => {
                self.in_flight.push_front(sent);
                return Some(error);
            }
            Err(StatementError { error, .. }) => {
                self.refused.insert(place.shard, (place.epoch, place.batches_before));
                self.fail(sent.commit, error);
            }
        }
        None
    }

    /// Sends a batch again that was refused only because a batch before it failed, unless it depends on that batch.
    fn resend(&mut self, commit: LaneCommit<D::Changes>) {
        match self.parts.shards.check_chain(commit.shard, commit.chain) {
            Err(error) => answer(commit, Err(error)),
            Ok(()) if commit.sends > RESENDS_MAX => {
                let text =
                    "another program writes the batches of this shard; end it, and start this server again";
                self.fail(commit, StoreError::Io(text.to_owned()));
            }
            Ok(()) => self.waiting.push_back(commit),
        }
    }

    fn fail(&self, commit: LaneCommit<D::Changes>, error: StoreError) {
        self.parts.shards.fail_chain(commit.shard, commit.chain, &error);
        answer(commit, Err(error));
    }
}

fn answer<C>(commit: LaneCommit<C>, result: Result<(), StoreError>) {
    // The sender may have gone.
    let _ = commit.reply.send(result);
}

/// Waits for the result of the oldest batch in flight, and removes it; for ever if there is none. Cancel-safe.
async fn first<C>(
    in_flight: &mut VecDeque<InFlight<C>>,
) -> (InFlight<C>, Result<BatchResult, StatementError>) {
    poll_fn(|context| {
        let Some(first) = in_flight.front_mut() else { return Poll::Pending };
        let result = match first.ready.take() {
            Some(result) => result,
            None => match first.result.as_mut().poll(context) {
                Poll::Ready(result) => result,
                Poll::Pending => return Poll::Pending,
            },
        };
        match in_flight.pop_front() {
            Some(sent) => Poll::Ready((sent, result)),
            None => Poll::Pending,
        }
    })
    .await
}
