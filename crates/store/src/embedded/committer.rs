//! Groups of batches, each group one frame of the log with one sync.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};

use super::encode;
use super::log::Log;
use super::ranks::Ranks;
use super::readers::Shared;
use crate::{Batch, StoreError};

/// A batch and the claim under which it is written.
#[derive(Debug)]
pub(super) struct Commit {
    /// The shard that it belongs to.
    pub shard: ShardId,
    /// The epoch of its sender.
    pub epoch: Epoch,
    /// The changes.
    pub batch: Batch,
}

/// Writes. Lives on one thread.
#[derive(Debug)]
pub(super) struct Committer {
    /// The log.
    pub log: Log,
    ranks: Ranks,
    // The folder is locked, so nobody else changes the rows behind this.
    epochs: HashMap<ShardId, Epoch>,
}

impl Committer {
    /// For a log and what is in it.
    pub fn new(log: Log, shared: &Arc<Shared>) -> Self {
        let index = shared.index();
        let ranks = index.values.iter().map(|value| (value.class, value.id.to_vec().into(), value.rank));
        let ranks = Ranks::new(ranks, index.last_endpoint());
        Self { log, ranks, epochs: index.epochs().collect() }
    }

    /// Writes every batch whose epoch is current; one answer per batch, in order. A batch that cannot be written
    /// does not take the others down.
    pub fn commit(&mut self, group: &[Commit]) -> Vec<Result<(), StoreError>> {
        let mut answers: Vec<_> = group.iter().map(|commit| self.check_epoch(commit)).collect();
        let admitted: Vec<usize> = (0..group.len()).filter(|&i| answers[i].is_ok()).collect();
        match self.write(group, &admitted, &mut answers) {
            Ok(()) => {}
            // It may be the fault of one, such as a batch too big for what is left of the disk.
            Err(StoreError::Full(_)) if admitted.len() > 1 => {
                for one in admitted {
                    answers[one] = self.write(group, &[one], &mut [Ok(())]);
                }
            }
            // The disk failed: trying each of them again would only fail more slowly.
            Err(error) => admitted.iter().for_each(|&i| answers[i] = Err(error.clone())),
        }
        answers
    }

    /// Writes these of the group as one frame.
    fn write(
        &mut self,
        group: &[Commit],
        admitted: &[usize],
        answers: &mut [Result<(), StoreError>],
    ) -> Result<(), StoreError> {
        let mut frame = self.log.blank_frame();
        let mut durability = Durability::Buffered;
        for &i in admitted {
            let batch = &group[i].batch;
            match encode::batch(&mut frame, &mut self.ranks, &batch.writes) {
                Ok(()) => durability = durability.max(batch.durability),
                Err(error) => answers[i] = Err(error),
            }
        }
        if frame.is_empty() {
            self.log.unused(frame);
            return Ok(());
        }
        let result = self.log.append(frame, durability);
        match result {
            Ok(()) => self.ranks.keep(),
            Err(_) => self.ranks.forget(),
        }
        result
    }

    fn check_epoch(&self, commit: &Commit) -> Result<(), StoreError> {
        let (shard, ours, current) = (commit.shard, commit.epoch, self.epoch(commit.shard));
        if ours == current { Ok(()) } else { Err(StoreError::StaleEpoch { shard, ours, current }) }
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
