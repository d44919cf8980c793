//! Group commit: the batches of a group become one frame of the log, and one sync covers them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};

use super::creation_order::CreationOrder;
use super::encode;
use crate::embedded::log::frame::Frame;
use crate::embedded::log::{Log, SyncResults, SyncTicket, unsettled};
use crate::embedded::read::pool::ReadShared;
use crate::{Batch, CommitChains, StoreError};

/// A batch with the shard and the epoch under which its sender writes.
#[derive(Debug)]
pub(in crate::embedded) struct Commit {
    pub shard: ShardId,
    pub epoch: Epoch,
    pub batch: Batch,
}

/// One result for each batch of a group, in order.
pub(in crate::embedded) type Results = Vec<Result<(), StoreError>>;

/// Batches encoded as one frame that is not written yet.
pub(in crate::embedded) struct Group {
    commits: Vec<Commit>,
    answers: Results,
    frame: Frame,
    durability: Durability,
    /// The number of changes that the batches made to the creation order.
    rank_changes: usize,
}

impl Group {
    /// The shards and chains of the batches in the frame.
    fn chains(&self) -> Vec<(ShardId, Option<u64>)> {
        let admitted = self.commits.iter().zip(&self.answers).filter(|(_, answer)| answer.is_ok());
        admitted.map(|(commit, _)| (commit.shard, commit.batch.chain)).collect()
    }
}

/// A group whose frame is written and not settled.
#[derive(Debug)]
struct InFlightGroup {
    /// The shards and chains of the batches in the frame.
    chains: Vec<(ShardId, Option<u64>)>,
    answers: Results,
    rank_changes: usize,
}

/// The state of a group after [`GroupCommit::write`].
pub(in crate::embedded) enum WriteStatus {
    /// The frame is written. A later settle returns the results.
    InFlight,
    /// The group had nothing to write, or the write failed.
    Answered(Results),
    /// The disk has no space for the whole group. While no sync is in flight, batches of it may be committed alone.
    TooBig(Group),
}

/// Encodes and writes groups, and knows the epochs and chains of the shards. Guarded by the write-state lock.
///
/// `written` has one entry for each pending frame of the log, in the same order.
#[derive(Debug)]
pub(in crate::embedded) struct GroupCommit {
    pub log: Log,
    ranks: CreationOrder,
    /// The epochs in the log. The directory is locked, so that no other process raises them.
    epochs: HashMap<ShardId, Epoch>,
    chains: CommitChains,
    written: VecDeque<InFlightGroup>,
}

impl GroupCommit {
    /// Starts with the values and epochs of the log's index.
    pub fn new(log: Log, shared: &Arc<ReadShared>) -> Self {
        let index = shared.index();
        let ranks = index.values.iter().map(|value| (value.class, value.id.to_vec().into(), value.rank));
        let ranks = CreationOrder::new(ranks, index.last_endpoint());
        let epochs = index.epochs().collect();
        Self { log, ranks, epochs, chains: CommitChains::default(), written: VecDeque::new() }
    }

    /// Encodes every batch whose epoch is current and whose chain has not failed. A batch that cannot be encoded gets an
    /// error of its own and leaves the others as they are.
    pub fn encode(&mut self, commits: Vec<Commit>) -> Group {
        let before = self.ranks.mark();
        let mut frame = self.log.blank_frame();
        let mut durability = Durability::Buffered;
        let mut answers = Vec::with_capacity(commits.len());
        for commit in &commits {
            let encoded = self.check(commit).and_then(|()| {
                let encoded = encode::batch(&mut frame, &mut self.ranks, &commit.batch.writes);
                encoded.inspect_err(|error| self.chains.fail(commit.shard, commit.batch.chain, error))
            });
            if encoded.is_ok() {
                durability = durability.max(commit.batch.durability);
            }
            answers.push(encoded);
        }
        Group { commits, answers, frame, durability, rank_changes: self.ranks.mark() - before }
    }

    /// Whether the group can be written while syncs are in flight. If not, the caller waits until none is and calls
    /// [`Self::commit`].
    pub fn is_ready(&self, group: &Group) -> bool {
        group.frame.is_empty() || self.log.is_ready(group.frame.bytes())
    }

    /// Undoes the encoding of a group that is not written. The group must be the last one encoded.
    pub fn discard(&mut self, group: Group) -> Vec<Commit> {
        self.log.recycle(group.frame);
        self.ranks.roll_back_to(self.ranks.mark() - group.rank_changes);
        group.commits
    }

    /// Writes a group's frame. Results follow when the frame is settled.
    pub fn write(&mut self, mut group: Group) -> WriteStatus {
        let frame = std::mem::take(&mut group.frame);
        if frame.is_empty() {
            self.log.recycle(frame);
            return WriteStatus::Answered(group.answers);
        }
        let chains = group.chains();
        match self.log.write(frame, group.durability) {
            Ok(()) => {
                let Group { answers, rank_changes, .. } = group;
                self.written.push_back(InFlightGroup { chains, answers, rank_changes });
                assert_eq!(self.written.len(), self.log.pending(), "a group for each pending frame");
                WriteStatus::InFlight
            }
            // One large batch may be too big for the free space while the others fit.
            Err(StoreError::Full(_)) if chains.len() > 1 => WriteStatus::TooBig(group),
            // The disk failed: a retry of each batch alone would fail too.
            Err(error) => {
                let mut answers = std::mem::take(&mut group.answers);
                self.discard(group);
                self.fail(&chains, &mut answers, &error);
                WriteStatus::Answered(answers)
            }
        }
    }

    /// Returns a ticket for a sync of the written groups, see [`Log::ticket`].
    pub fn ticket(&mut self, thread: usize) -> Option<SyncTicket> {
        self.log.ticket(thread)
    }

    /// Returns the results of the groups that a sync settled, the oldest group first.
    pub fn settle(&mut self, ticket: SyncTicket, synced: std::io::Result<()>) -> Vec<Results> {
        let settled = self.log.settle(ticket, synced);
        self.settle_groups(settled)
    }

    /// Returns the results of the groups that need no sync, the oldest group first.
    pub fn settle_buffered(&mut self) -> Vec<Results> {
        let settled = self.log.settle_buffered();
        self.settle_groups(settled)
    }

    fn settle_groups(&mut self, settled: SyncResults) -> Vec<Results> {
        let mut answered = Vec::with_capacity(settled.len());
        for result in settled {
            let Some(group) = self.written.pop_front() else { break };
            let InFlightGroup { chains, mut answers, rank_changes } = group;
            match result {
                Ok(()) => self.ranks.confirm(rank_changes),
                Err(error) => {
                    // All later frames fail with this one.
                    self.ranks.roll_back();
                    self.fail(&chains, &mut answers, &error);
                }
            }
            answered.push(answers);
        }
        assert_eq!(self.written.len(), self.log.pending(), "a group for each pending frame");
        answered
    }

    fn fail(&mut self, chains: &[(ShardId, Option<u64>)], answers: &mut Results, error: &StoreError) {
        for &(shard, chain) in chains {
            self.chains.fail(shard, chain, error);
        }
        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
            *answer = Err(error.clone());
        }
    }

    /// Writes a group and waits until it is settled; on a full disk each batch alone. No sync may be in flight, as for
    /// the methods that follow.
    pub fn commit(&mut self, commits: Vec<Commit>) -> Results {
        debug_assert!(self.log.is_settled(), "no sync is in flight");
        let mut group = self.encode(commits);
        if !group.frame.is_empty()
            && let Err(error) = self.log.make_ready(group.frame.bytes())
        {
            if matches!(error, StoreError::Full(_)) && group.commits.len() > 1 {
                return self.commit_each(group);
            }
            let chains = group.chains();
            let mut answers = std::mem::take(&mut group.answers);
            self.discard(group);
            self.fail(&chains, &mut answers, &error);
            return answers;
        }
        match self.write(group) {
            WriteStatus::Answered(answers) => answers,
            WriteStatus::TooBig(group) => self.commit_each(group),
            WriteStatus::InFlight => {
                let settled = match self.ticket(0) {
                    Some(ticket) => {
                        let synced = ticket.sync();
                        self.settle(ticket, synced)
                    }
                    None => self.settle_buffered(),
                };
                settled.into_iter().next().unwrap_or_default()
            }
        }
    }

    fn commit_each(&mut self, group: Group) -> Results {
        let each = self.discard(group).into_iter();
        each.map(|one| self.commit(vec![one]).pop().unwrap_or_else(|| Err(unsettled()))).collect()
    }

    fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        let (shard, ours, current) = (commit.shard, commit.epoch, self.epoch(commit.shard));
        if ours != current {
            return Err(StoreError::StaleEpoch { shard, ours, current });
        }
        self.chains.check(shard, commit.batch.chain)
    }

    fn epoch(&self, shard: ShardId) -> Epoch {
        self.epochs.get(&shard).copied().unwrap_or(Epoch(0))
    }

    /// Raises the epochs of these shards by one, durably. Returns the new epochs in the order of `shards`.
    pub fn raise_epochs(&mut self, shards: &[ShardId]) -> Result<Vec<Epoch>, StoreError> {
        let raised: Vec<_> = shards.iter().map(|&shard| (shard, Epoch(self.epoch(shard).0 + 1))).collect();
        let mut frame = self.log.blank_frame();
        for &(shard, epoch) in &raised {
            encode::epoch(&mut frame, shard, epoch);
        }
        if frame.is_empty() {
            self.log.recycle(frame);
        } else {
            self.log.append(frame, Durability::Synced)?;
        }
        self.epochs.extend(raised.iter().copied());
        for &(shard, _) in &raised {
            self.chains.begin(shard);
        }
        Ok(raised.into_iter().map(|(_, epoch)| epoch).collect())
    }

    /// Raises the epochs of those shards whose current epoch is the given one.
    pub fn release(&mut self, shards: &[(ShardId, Epoch)]) -> Result<(), StoreError> {
        let owned: Vec<_> = shards
            .iter()
            .filter(|(shard, epoch)| self.epoch(*shard) == *epoch)
            .map(|(shard, _)| *shard)
            .collect();
        self.raise_epochs(&owned).map(drop)
    }
}
