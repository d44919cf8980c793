//! The committer: one task per shard that makes rounds durable and releases their replies.
//!
//! Rounds that arrive while batches are in flight are collected into the next batch. That batch is sent when it has at least
//! half as many writes as the batches in flight, because a disk serves several syncs concurrently. Under load the batches
//! grow, so that a few are in flight. Before a batch is sent, the committer yields, so that runnable actors can add their
//! rounds to the batch.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::{Batch, Store, StoreError, StoreFuture, Write};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::actor::held_reply::HeldReply;
use crate::store_health::StoreHealth;
use crate::{EndpointError, EngineMetrics};

/// Writes in one batch. A batch is full when it reaches this number, and the last round may exceed it.
const BATCH_WRITES_MAX: usize = 8_192;
/// Batches of a shard that are in flight concurrently.
const BATCHES_IN_FLIGHT_MAX: usize = 4;
/// A batch is sent while others are in flight if it has at least this part of their writes.
const PIPELINE_DIVISOR: usize = 2;
/// How often the committer yields before it sends a batch. Released replies cause the next requests, which pass a socket, a
/// connection's task and an actor, one yield each. With 16 busy connections a batch then has 11 requests instead of 6, with
/// 64 it has 50 instead of 23.
const YIELDS_BEFORE_SEND: usize = 3;

/// One round of an actor: rows to write, and the replies to release when they are durable.
pub(crate) struct CommitRequest {
    /// How durable the writes must be; a batch has the highest durability of its rounds.
    pub(crate) durability: Durability,
    /// The writes in their order; empty for a round whose replies only wait for earlier rounds.
    pub(crate) writes: Vec<Write>,
    /// The replies, in the order of their requests.
    pub(crate) held: Vec<HeldReply>,
    /// The progress of the actor's requests.
    pub(crate) progress: Arc<CommitProgress>,
    /// The actor's generation when it flushed the round. After a failed commit, later rounds of the same generation are
    /// void, because their queue is dropped.
    pub(crate) generation: u64,
    /// The number of the request, ascending per actor.
    pub(crate) seq: u64,
    /// The part of the request budget that the round takes until it is settled.
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
}

/// How far the commit requests of one actor are. Written by the committer, read by the actor.
#[derive(Debug, Default)]
pub(crate) struct CommitProgress {
    /// Grows by 1 with a failed commit, once per generation. The actor then reloads its queue.
    pub(crate) generation: AtomicU64,
    /// The `seq` of the last durable request.
    pub(crate) durable_seq: AtomicU64,
    /// Wakes the actor when `generation` has grown.
    pub(crate) failed: tokio::sync::Notify,
    /// Wakes the actor when `durable_seq` has grown.
    pub(crate) advanced: tokio::sync::Notify,
}

/// Sends rounds to a shard's committer.
pub(crate) type CommitSender = mpsc::UnboundedSender<CommitRequest>;

/// Returns the committer of one shard, and its sender. The running committer ends when every sender is dropped and every
/// request is settled.
pub(crate) fn prepare(
    store: Arc<dyn Store>,
    shard: ShardId,
    epoch: Epoch,
    metrics: Arc<EngineMetrics>,
    health: Arc<StoreHealth>,
) -> (CommitSender, Committer) {
    // No limit of length, because an actor must not wait here: it serves workers' pings while a disk hangs. There is one
    // message for each round that is not durable. A round has requests, whose permits of the request budget it holds until
    // it is settled, so the budget bounds length and bytes; or it has a slice of jobs that are due, and each actor has one
    // such round in flight.
    let (sender, receiver) = mpsc::unbounded_channel();
    let committer = Committer { store, shard, epoch, metrics, health, receiver };
    (sender, committer)
}

/// The committer of one shard, to be run as a task.
pub(crate) struct Committer {
    store: Arc<dyn Store>,
    shard: ShardId,
    epoch: Epoch,
    metrics: Arc<EngineMetrics>,
    health: Arc<StoreHealth>,
    receiver: mpsc::UnboundedReceiver<CommitRequest>,
}

impl Committer {
    /// Commits rounds until every sender is dropped and no batch is in flight.
    pub(crate) async fn run(self) {
        let Self { store, shard, epoch, metrics, health, mut receiver } = self;
        let mut commits = ShardCommits::new(store.as_ref(), shard, epoch, &metrics, &health);
        let (mut arrived, mut is_closed) = (Vec::new(), false);
        while !is_closed || !commits.in_flight.is_empty() {
            tokio::select! {
                biased;
                result = commits.first() => commits.settle(result),
                received = receiver.recv_many(&mut arrived, 1024), if !is_closed => {
                    is_closed = received == 0;
                    commits.put(&mut arrived);
                }
            }
            if commits.may_send() {
                for _ in 0..YIELDS_BEFORE_SEND {
                    tokio::task::yield_now().await;
                    arrived.extend(std::iter::from_fn(|| receiver.try_recv().ok()));
                    commits.put(&mut arrived);
                }
                commits.send();
            }
        }
    }
}

/// The waiting rounds and the batches in flight of one shard.
struct ShardCommits<'a> {
    store: &'a dyn Store,
    shard: ShardId,
    epoch: Epoch,
    metrics: &'a EngineMetrics,
    health: &'a StoreHealth,
    /// Rounds that are in no batch yet, in the order of arrival; bounded like the channel that they come from.
    waiting: VecDeque<CommitRequest>,
    /// The number of writes in `waiting`.
    waiting_writes: usize,
    /// In the order in which the batches were sent, and are settled.
    in_flight: VecDeque<InFlightBatch<'a>>,
    /// The commit chain of new batches. Grows when a batch has failed and every later batch of its chain is settled.
    chain: u64,
    /// A batch of the chain has failed: no batch is sent until the chain has ended.
    has_failed: bool,
}

/// A batch that was sent to the store and is not settled.
struct InFlightBatch<'a> {
    result: StoreFuture<'a, ()>,
    sent_at: Instant,
    /// The number of writes in the batch.
    writes: usize,
    /// The rounds in the batch, without their writes.
    covered: Vec<CommitRequest>,
}

impl<'a> ShardCommits<'a> {
    fn new(
        store: &'a dyn Store,
        shard: ShardId,
        epoch: Epoch,
        metrics: &'a EngineMetrics,
        health: &'a StoreHealth,
    ) -> Self {
        Self {
            store,
            shard,
            epoch,
            metrics,
            health,
            waiting: VecDeque::new(),
            waiting_writes: 0,
            in_flight: VecDeque::new(),
            chain: 0,
            has_failed: false,
        }
    }

    /// Adds rounds behind the waiting ones, and empties the buffer.
    fn put(&mut self, arrived: &mut Vec<CommitRequest>) {
        self.waiting_writes += arrived.iter().map(|request| request.writes.len()).sum::<usize>();
        self.waiting.extend(arrived.drain(..));
    }

    /// Sends batches to the store while that is allowed.
    fn send(&mut self) {
        while self.may_send() {
            let (batch, mut covered) = self.next_batch();
            if planted(Bug::ReplyBeforeCommit) {
                release(std::mem::take(&mut covered));
            }
            let writes = batch.writes.len();
            let result = match writes {
                0 => Box::pin(std::future::ready(Ok(()))),
                _ => self.store.commit(self.shard, self.epoch, batch),
            };
            self.in_flight.push_back(InFlightBatch { result, sent_at: Instant::now(), writes, covered });
        }
    }

    /// Whether a round waits and another batch may be in flight.
    fn may_send(&self) -> bool {
        let in_flight: usize = self.in_flight.iter().map(|batch| batch.writes).sum();
        let is_big_enough = self.waiting_writes * PIPELINE_DIVISOR >= in_flight;
        let is_free = self.in_flight.len() < BATCHES_IN_FLIGHT_MAX;
        !self.waiting.is_empty() && !self.has_failed && is_free && is_big_enough
    }

    /// Collects rounds until the batch is full. Rounds of an older generation are void: their replies become errors.
    fn next_batch(&mut self) -> (Batch, Vec<CommitRequest>) {
        let mut batch =
            Batch { durability: Durability::Buffered, writes: Vec::new(), chain: Some(self.chain) };
        let mut covered = Vec::new();
        while batch.writes.len() < BATCH_WRITES_MAX
            && let Some(mut request) = self.waiting.pop_front()
        {
            self.waiting_writes -= request.writes.len();
            if request.generation != request.progress.generation.load(Ordering::Acquire) {
                let void = EndpointError::Unavailable("an earlier change was not written".to_owned());
                for reply in request.held {
                    reply.release(Err(&void));
                }
                continue;
            }
            if !request.writes.is_empty() {
                batch.durability = batch.durability.max(request.durability);
            }
            if batch.writes.is_empty() {
                batch.writes = std::mem::take(&mut request.writes);
            } else {
                batch.writes.append(&mut request.writes);
            }
            covered.push(request);
        }
        (batch, covered)
    }

    /// Waits for the result of the oldest batch in flight; for ever if there is none. Cancel-safe.
    async fn first(&mut self) -> Result<(), StoreError> {
        poll_fn(|context| match self.in_flight.front_mut() {
            Some(first) => first.result.as_mut().poll(context),
            None => Poll::Pending,
        })
        .await
    }

    /// Settles the oldest batch in flight: releases its replies, or voids its rounds if the commit failed.
    fn settle(&mut self, result: Result<(), StoreError>) {
        let Some(InFlightBatch { sent_at, writes, covered, .. }) = self.in_flight.pop_front() else { return };
        if writes > 0 {
            let replies = covered.iter().map(|request| request.held.len()).sum();
            self.metrics.committed(sent_at.elapsed(), replies);
            self.health.note(&result);
        }
        match result {
            Ok(()) => release(covered),
            Err(error) => {
                self.metrics.commit_failed();
                if !self.has_failed {
                    tracing::error!(shard = self.shard.0, %error, "commit failed, reloading queues");
                }
                self.has_failed = true;
                refuse(covered, &EndpointError::CommitFailed(error.to_string()));
            }
        }
        if self.has_failed && self.in_flight.is_empty() {
            self.has_failed = false;
            self.chain += 1;
        }
    }
}

/// Releases the replies of durable rounds.
fn release(covered: Vec<CommitRequest>) {
    for request in covered {
        request.progress.durable_seq.store(request.seq, Ordering::Release);
        request.progress.advanced.notify_one();
        for reply in request.held {
            reply.release(Ok(()));
        }
    }
}

/// Sends the error as the replies of rounds whose commit failed. Their actors reload, once per generation.
fn refuse(covered: Vec<CommitRequest>, error: &EndpointError) {
    // Before any reply: a client that gets the error must not reach the old queue with its next request.
    for request in &covered {
        let is_first = request.progress.generation.load(Ordering::Acquire) == request.generation;
        if is_first && !planted(Bug::FailedCommitForgotten) {
            request.progress.generation.fetch_add(1, Ordering::AcqRel);
            request.progress.failed.notify_one();
        }
    }
    for request in covered {
        for reply in request.held {
            reply.release(Err(error));
        }
    }
}
