//! One task per shard that makes changes durable: everything that arrived while the last batch was written goes
//! into the next one. Then, and only then, it lets the replies leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::{Batch, Store, StoreError, Write};
use tokio::sync::mpsc;

use crate::EngineMetrics;

/// Writes in one batch at most; more wait for the next.
const BATCH_WRITES_MAX: usize = 8_192;

/// Called when the batch that covers it is durable, or could not be made so.
pub(crate) type Release = Box<dyn FnOnce(Result<(), &StoreError>) + Send>;

/// What an actor decided: rows to write, and who waits for that.
pub(crate) struct Prepared {
    pub(crate) durability: Durability,
    pub(crate) writes: Vec<Write>,
    pub(crate) releases: Vec<Release>,
    /// The actor's bookkeeping.
    pub(crate) line: Arc<Line>,
    /// The actor's generation when it decided this. After a failed commit what was decided on top of it is
    /// void: the machine that decided is dropped.
    pub(crate) generation: u64,
    /// Counts up per actor.
    pub(crate) number: u64,
}

/// What an actor and its committer share.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Grows with every failed commit; the actor reloads when it sees that.
    pub(crate) generation: AtomicU64,
    /// The number of the last decision that is durable.
    pub(crate) durable: AtomicU64,
    /// Tells the actor to look at its generation.
    pub(crate) failed: tokio::sync::Notify,
    /// Tells the actor that `durable` has grown.
    pub(crate) advanced: tokio::sync::Notify,
}

/// A way to a shard's committer.
pub(crate) type CommitSender = mpsc::UnboundedSender<Prepared>;

/// The committer of one shard. Once it runs, it ends when every sender is gone.
pub(crate) fn prepare(
    store: Arc<dyn Store>,
    shard: ShardId,
    epoch: Epoch,
    measures: Arc<EngineMetrics>,
) -> (CommitSender, Committer) {
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
    receiver: mpsc::UnboundedReceiver<Prepared>,
}

impl Committer {
    pub(crate) async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.receiver.recv_many(&mut waiting, 1024).await > 0 {
            let mut rest = waiting.drain(..).peekable();
            while rest.peek().is_some() {
                let (batch, covered) = next_batch(&mut rest);
                self.commit(batch, covered).await;
            }
        }
    }

    async fn commit(&self, batch: Batch, mut covered: Vec<Prepared>) {
        if planted(Bug::ReplyBeforeCommit) {
            release(std::mem::take(&mut covered));
        }
        let result = if batch.writes.is_empty() {
            Ok(())
        } else {
            let (begun, commands) = (Instant::now(), covered.iter().map(|p| p.releases.len()).sum());
            let result = self.store.commit(self.shard, self.epoch, batch).await;
            self.measures.committed(begun.elapsed(), commands);
            result
        };
        match result {
            Ok(()) => release(covered),
            Err(error) => {
                self.measures.commit_failed();
                tracing::error!(shard = self.shard.0, %error, "a commit failed: reloading the queues in it");
                refuse(covered, &error);
            }
        }
    }
}

/// Collects decisions until the batch is full. Those of a void generation are refused here.
fn next_batch(rest: &mut std::iter::Peekable<impl Iterator<Item = Prepared>>) -> (Batch, Vec<Prepared>) {
    let mut batch = Batch { durability: Durability::Buffered, writes: Vec::new() };
    let mut covered = Vec::new();
    for mut prepared in rest {
        if prepared.generation != prepared.line.generation.load(Ordering::Acquire) {
            let void = StoreError::Io("an earlier change of this queue could not be written".to_owned());
            for release in prepared.releases {
                release(Err(&void));
            }
            continue;
        }
        if !prepared.writes.is_empty() {
            batch.durability = batch.durability.max(prepared.durability);
        }
        batch.writes.append(&mut prepared.writes);
        covered.push(prepared);
        if batch.writes.len() >= BATCH_WRITES_MAX {
            break;
        }
    }
    (batch, covered)
}

fn release(covered: Vec<Prepared>) {
    for prepared in covered {
        prepared.line.durable.store(prepared.number, Ordering::Release);
        prepared.line.advanced.notify_one();
        for release in prepared.releases {
            release(Ok(()));
        }
    }
}

fn refuse(covered: Vec<Prepared>, error: &StoreError) {
    for prepared in &covered {
        let is_first = prepared.line.generation.load(Ordering::Acquire) == prepared.generation;
        if is_first && !planted(Bug::FailedCommitForgotten) {
            prepared.line.generation.fetch_add(1, Ordering::AcqRel);
            prepared.line.failed.notify_one();
        }
    }
    for prepared in covered {
        for release in prepared.releases {
            release(Err(error));
        }
    }
}
