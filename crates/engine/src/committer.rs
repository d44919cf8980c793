//! One task per shard that makes changes durable: everything that arrived while batches were written goes into the next
//! one. Then, and only then, it lets the replies leave.
//!
//! A batch does not wait for the one before it once it has grown to half of what is on its way: a disk that is waited
//! for takes several syncs at once, and few connections would otherwise spend most of their time behind each other's.
//! Under load the batches grow instead, so that there are only a few under way, each with its share of the jobs.
//! And before one goes, whoever is about to decide something does so first.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Instant;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::{Batch, Store, StoreError, StoreFuture, Write};
use tokio::sync::mpsc;

use crate::actor::held_reply::HeldReply;
use crate::actor::request::unavailable;
use crate::{EndpointError, EngineMetrics};

/// Writes in one batch at most; more wait for the next.
const BATCH_WRITES_MAX: usize = 8_192;
/// Batches of a shard that are under way at once.
const BATCHES_IN_FLIGHT_MAX: usize = 4;
/// A batch may follow others that are under way when it is at least this part of them.
const PIPELINE_DIVISOR: usize = 2;
/// How often everybody else has a turn before a batch goes. Answers to the last batch bring the next requests, which pass
/// the sockets, a connection and an actor: so a batch is for 11 of 16 busy connections, and for 50 of 64, where
/// it would be for 6 and 23. A commit costs some 50 us of the processor.
const YIELDS_BEFORE_SEND: usize = 3;

/// What an actor decided: rows to write, and who waits for that.
pub(crate) struct CommitRequest {
    pub(crate) durability: Durability,
    pub(crate) writes: Vec<Write>,
    pub(crate) held: Vec<HeldReply>,
    /// The actor's bookkeeping.
    pub(crate) progress: Arc<CommitProgress>,
    /// The actor's generation when it decided this. After a failed commit what was decided on top of it is
    /// void: the machine that decided is dropped.
    pub(crate) generation: u64,
    /// Counts up per actor.
    pub(crate) seq: u64,
}

/// What an actor and its committer share.
#[derive(Debug, Default)]
pub(crate) struct CommitProgress {
    /// Grows with every failed commit; the actor reloads when it sees that.
    pub(crate) generation: AtomicU64,
    /// The number of the last decision that is durable.
    pub(crate) durable_seq: AtomicU64,
    /// Tells the actor to look at its generation.
    pub(crate) failed: tokio::sync::Notify,
    /// Tells the actor that `durable_seq` has grown.
    pub(crate) advanced: tokio::sync::Notify,
}

/// A way to a shard's committer.
pub(crate) type CommitSender = mpsc::UnboundedSender<CommitRequest>;

/// The committer of one shard. Once it runs, it ends when every sender is gone.
pub(crate) fn prepare(
    store: Arc<dyn Store>,
    shard: ShardId,
    epoch: Epoch,
    measures: Arc<EngineMetrics>,
) -> (CommitSender, Committer) {
    // Unbounded, because an actor must not wait here: it serves workers' pings while a disk hangs. There is one message
    // for each round that is not durable. Each holds at least one reply, so connections limit them, and `jobs_max` limits
    // the rows of clients that disconnect during that time and submit again.
    let (sender, receiver) = mpsc::unbounded_channel();
    let committer = Committer { store, shard, epoch, measures, receiver };
    (sender, committer)
}

/// Makes the changes of one shard durable.
pub(crate) struct Committer {
    store: Arc<dyn Store>,
    shard: ShardId,
    epoch: Epoch,
    measures: Arc<EngineMetrics>,
    receiver: mpsc::UnboundedReceiver<CommitRequest>,
}

impl Committer {
    pub(crate) async fn run(self) {
        let Self { store, shard, epoch, measures, mut receiver } = self;
        let mut commits = ShardCommits::new(store.as_ref(), shard, epoch, &measures);
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

/// What one shard's committer has to do and is doing.
struct ShardCommits<'a> {
    store: &'a dyn Store,
    shard: ShardId,
    epoch: Epoch,
    measures: &'a EngineMetrics,
    waiting: VecDeque<CommitRequest>,
    waiting_writes: usize,
    in_flight: VecDeque<InFlightBatch<'a>>,
    /// Grows when a batch has failed and none that rested on it is left.
    chain: u64,
    has_failed: bool,
}

/// A batch that the store has, and what it covers.
struct InFlightBatch<'a> {
    result: StoreFuture<'a, ()>,
    sent_at: Instant,
    writes: usize,
    covered: Vec<CommitRequest>,
}

impl<'a> ShardCommits<'a> {
    fn new(store: &'a dyn Store, shard: ShardId, epoch: Epoch, measures: &'a EngineMetrics) -> Self {
        let (waiting, on_their_way) = (VecDeque::new(), VecDeque::new());
        Self {
            store,
            shard,
            epoch,
            measures,
            waiting,
            waiting_writes: 0,
            in_flight: on_their_way,
            chain: 0,
            has_failed: false,
        }
    }

    fn put(&mut self, arrived: &mut Vec<CommitRequest>) {
        self.waiting_writes += arrived.iter().map(|request| request.writes.len()).sum::<usize>();
        self.waiting.extend(arrived.drain(..));
    }

    /// Hands the store what may go.
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

    fn may_send(&self) -> bool {
        let others: usize = self.in_flight.iter().map(|batch| batch.writes).sum();
        let is_big_enough = self.waiting_writes * PIPELINE_DIVISOR >= others;
        let is_free = self.in_flight.len() < BATCHES_IN_FLIGHT_MAX;
        !self.waiting.is_empty() && !self.has_failed && is_free && is_big_enough
    }

    /// Collects decisions until the batch is full. Those of a void generation are refused here.
    fn next_batch(&mut self) -> (Batch, Vec<CommitRequest>) {
        let mut batch =
            Batch { durability: Durability::Buffered, writes: Vec::new(), chain: Some(self.chain) };
        let mut covered = Vec::new();
        while batch.writes.len() < BATCH_WRITES_MAX
            && let Some(mut request) = self.waiting.pop_front()
        {
            self.waiting_writes -= request.writes.len();
            if request.generation != request.progress.generation.load(Ordering::Acquire) {
                let void = "an earlier change of this queue could not be written".to_owned();
                let void = EndpointError::Unavailable(void);
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

    /// What becomes of the batch that was sent first.
    async fn first(&mut self) -> Result<(), StoreError> {
        poll_fn(|context| match self.in_flight.front_mut() {
            Some(first) => first.result.as_mut().poll(context),
            None => Poll::Pending,
        })
        .await
    }

    fn settle(&mut self, result: Result<(), StoreError>) {
        let Some(InFlightBatch { sent_at, writes, covered, .. }) = self.in_flight.pop_front() else { return };
        if writes > 0 {
            let commands = covered.iter().map(|request| request.held.len()).sum();
            self.measures.committed(sent_at.elapsed(), commands);
        }
        match result {
            Ok(()) => release(covered),
            Err(error) => {
                self.measures.commit_failed();
                if !self.has_failed {
                    tracing::error!(shard = self.shard.0, %error, "a commit failed: reloading the queues in it");
                }
                self.has_failed = true;
                refuse(covered, &unavailable(&error));
            }
        }
        if self.has_failed && self.in_flight.is_empty() {
            self.has_failed = false;
            self.chain += 1;
        }
    }
}

fn release(covered: Vec<CommitRequest>) {
    for request in covered {
        request.progress.durable_seq.store(request.seq, Ordering::Release);
        request.progress.advanced.notify_one();
        for reply in request.held {
            reply.release(Ok(()));
        }
    }
}

fn refuse(covered: Vec<CommitRequest>, error: &EndpointError) {
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
