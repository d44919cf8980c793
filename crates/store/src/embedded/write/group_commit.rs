//! Groups of batches, each group one frame of the log with one sync.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};

use super::creation_order::CreationOrder;
use super::encode;
use crate::embedded::log::frame::Frame;
use crate::embedded::log::{Log, SyncResults, SyncTicket, unsettled};
use crate::embedded::read::pool::ReadShared;
use crate::{Batch, CommitChains, StoreError};

/// A batch and the claim under which it is written.
#[derive(Debug)]
pub(in crate::embedded) struct Commit {
    /// The shard that it belongs to.
    pub shard: ShardId,
    /// The epoch of its sender.
    pub epoch: Epoch,
    /// The changes.
    pub batch: Batch,
}

/// One answer for each batch of a group, in order.
pub(in crate::embedded) type Answers = Vec<Result<(), StoreError>>;

/// A group as a frame.
pub(in crate::embedded) struct Group {
    commits: Vec<Commit>,
    answers: Answers,
    frame: Frame,
    durability: Durability,
    /// How many changes of the ranks it made.
    ranks: usize,
}

impl Group {
    /// Whose batches are in the frame.
    fn chains(&self) -> Vec<(ShardId, Option<u64>)> {
        let admitted = self.commits.iter().zip(&self.answers).filter(|(_, answer)| answer.is_ok());
        admitted.map(|(commit, _)| (commit.shard, commit.batch.chain)).collect()
    }
}

/// A group whose frame is written and not settled.
#[derive(Debug)]
struct InFlightGroup {
    /// Whose batches they are.
    chains: Vec<(ShardId, Option<u64>)>,
    answers: Answers,
    ranks: usize,
}

/// What became of a group that was to be written.
pub(in crate::embedded) enum WriteStatus {
    /// It will be settled.
    InFlight,
    /// Nothing had to be written, or could be.
    Answered(Answers),
    /// The disk is too full for all of it. It may not be for some, in the quiet.
    TooBig(Group),
}

/// Writes. Lives under one lock.
#[derive(Debug)]
pub(in crate::embedded) struct GroupCommit {
    /// The log.
    pub log: Log,
    ranks: CreationOrder,
    // The folder is locked, so nobody else changes the rows behind this.
    epochs: HashMap<ShardId, Epoch>,
    chains: CommitChains,
    written: VecDeque<InFlightGroup>,
}

impl GroupCommit {
    /// For a log and what is in it.
    pub fn new(log: Log, shared: &Arc<ReadShared>) -> Self {
        let index = shared.index();
        let ranks = index.values.iter().map(|value| (value.class, value.id.to_vec().into(), value.rank));
        let ranks = CreationOrder::new(ranks, index.last_endpoint());
        let epochs = index.epochs().collect();
        Self { log, ranks, epochs, chains: CommitChains::default(), written: VecDeque::new() }
    }

    /// Makes a frame of every batch whose epoch is current and which rests on nothing that failed. A batch that cannot
    /// be written does not take the others down.
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
        Group { commits, answers, frame, durability, ranks: self.ranks.mark() - before }
    }

    /// Whether the group can be written as things are; if not, in the quiet.
    pub fn is_ready(&self, group: &Group) -> bool {
        group.frame.is_empty() || self.log.is_ready(group.frame.bytes())
    }

    /// Takes a group apart again that is not written.
    pub fn give_up(&mut self, group: Group) -> Vec<Commit> {
        self.log.unused(group.frame);
        self.ranks.back_to(self.ranks.mark() - group.ranks);
        group.commits
    }

    /// Writes a group's frame. What becomes of it is known when it is settled.
    pub fn write(&mut self, mut group: Group) -> WriteStatus {
        let frame = std::mem::take(&mut group.frame);
        if frame.is_empty() {
            self.log.unused(frame);
            return WriteStatus::Answered(group.answers);
        }
        let chains = group.chains();
        match self.log.write(frame, group.durability) {
            Ok(()) => {
                let Group { answers, ranks, .. } = group;
                self.written.push_back(InFlightGroup { chains, answers, ranks });
                WriteStatus::InFlight
            }
            // It may be the fault of one, such as a batch too big for what is left of the disk.
            Err(StoreError::Full(_)) if chains.len() > 1 => WriteStatus::TooBig(group),
            // The disk failed: trying each of them again would only fail more slowly.
            Err(error) => {
                let mut answers = std::mem::take(&mut group.answers);
                self.give_up(group);
                self.refuse(&chains, &mut answers, &error);
                WriteStatus::Answered(answers)
            }
        }
    }

    /// Leave to sync what was written.
    pub fn ticket(&mut self, thread: usize) -> Option<SyncTicket> {
        self.log.ticket(thread)
    }

    /// Answers for the groups that are settled by a sync, the oldest first.
    pub fn settle(&mut self, ticket: SyncTicket, synced: std::io::Result<()>) -> Vec<Answers> {
        let settled = self.log.settle(ticket, synced);
        self.answer(settled)
    }

    /// Answers for the groups that need no sync, the oldest first.
    pub fn settle_buffered(&mut self) -> Vec<Answers> {
        let settled = self.log.settle_buffered();
        self.answer(settled)
    }

    fn answer(&mut self, settled: SyncResults) -> Vec<Answers> {
        let mut answered = Vec::with_capacity(settled.len());
        for result in settled {
            let Some(InFlightGroup { chains, mut answers, ranks }) = self.written.pop_front() else { break };
            match result {
                Ok(()) => self.ranks.keep(ranks),
                Err(error) => {
                    // Whatever was written later is refused with it.
                    self.ranks.forget();
                    self.refuse(&chains, &mut answers, &error);
                }
            }
            answered.push(answers);
        }
        answered
    }

    fn refuse(&mut self, chains: &[(ShardId, Option<u64>)], answers: &mut Answers, error: &StoreError) {
        for &(shard, chain) in chains {
            self.chains.fail(shard, chain, error);
        }
        for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
            *answer = Err(error.clone());
        }
    }

    /// Writes a group to its end, each batch by itself if that is the only way. In the quiet, as all that follows.
    pub fn commit(&mut self, commits: Vec<Commit>) -> Answers {
        let mut group = self.encode(commits);
        if !group.frame.is_empty()
            && let Err(error) = self.log.make_ready(group.frame.bytes())
        {
            if matches!(error, StoreError::Full(_)) && group.commits.len() > 1 {
                return self.commit_each(group);
            }
            let chains = group.chains();
            let mut answers = std::mem::take(&mut group.answers);
            self.give_up(group);
            self.refuse(&chains, &mut answers, &error);
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

    fn commit_each(&mut self, group: Group) -> Answers {
        let each = self.give_up(group).into_iter();
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

    /// Raises the epochs of these shards by one, durably; answers the new ones.
    pub fn raise_epochs(&mut self, shards: &[ShardId]) -> Result<Vec<Epoch>, StoreError> {
        let raised: Vec<_> = shards.iter().map(|&shard| (shard, Epoch(self.epoch(shard).0 + 1))).collect();
        let mut frame = self.log.blank_frame();
        for &(shard, epoch) in &raised {
            encode::epoch(&mut frame, shard, epoch);
        }
        if frame.is_empty() {
            self.log.unused(frame);
        } else {
            self.log.append(frame, Durability::Synced)?;
        }
        self.epochs.extend(raised.iter().copied());
        for &(shard, _) in &raised {
            self.chains.begin(shard);
        }
        Ok(raised.into_iter().map(|(_, epoch)| epoch).collect())
    }

    /// Raises the epochs of those shards that are still owned under the given ones.
    pub fn release(&mut self, shards: &[(ShardId, Epoch)]) -> Result<(), StoreError> {
        let owned: Vec<_> = shards
            .iter()
            .filter(|(shard, epoch)| self.epoch(*shard) == *epoch)
            .map(|(shard, _)| *shard)
            .collect();
        self.raise_epochs(&owned).map(drop)
    }
}
