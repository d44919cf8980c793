//! The program that is recorded: it commits a workload, closes and opens its store in between, and says what was
//! acknowledged.

use std::fs::File;
use std::time::{Duration, Instant};

use longshore_disk_faults::{Disk, Loss, Random, Recorded, Step};
use longshore_model::{Durability, Epoch};
use longshore_store::{Batch, EmbeddedStore, SegmentLimits, Store, StoreError};

use super::rebuilt::open;
use super::workload::Workload;
use crate::rows::{SHARD, claim};

const SEED: &str = "LONGSHORE_TEST_POWER_CUT_SEED";
const BATCHES: &str = "LONGSHORE_TEST_POWER_CUT_BATCHES";
const FAILING: &str = "LONGSHORE_TEST_POWER_CUT_FAILING";

/// What is wrong with a failing disk at times: lines for `disk.c`.
const FAULTS: [&str; 9] = [
    "sync EIO",
    "sync EIO .log",
    "sync EIO /log",
    "write EIO",
    "write EIO .log",
    "create EIO",
    "create EIO .log",
    "write ENOSPC",
    "write ENOSPC\ncreate ENOSPC",
];
/// A new segment comes every few batches, and old ones go, so that the record is full of them. Some are short.
const LOG: SegmentLimits = SegmentLimits {
    segment_bytes: 16 << 10,
    ahead_bytes: 128 << 10,
    short_bytes: 8 << 10,
    dead_bytes: 24 << 10,
};
/// Commits between two openings, so that segments also change while the store is open.
const COMMITS_PER_LIFE: usize = 12;
/// Longer than buffered commits may wait for their sync.
const IDLE: Duration = Duration::from_millis(150);
/// Limit of every wait; a longer one fails the test.
const DEADLINE: Duration = Duration::from_mins(1);

/// The disk of the program.
#[derive(Clone, Copy)]
pub enum Health {
    /// The disk works without faults.
    Good,
    /// It refuses writes and fails at syncs now and then.
    Failing,
}

/// Runs the program and answers everything that happened to its folder.
pub fn record(workload: &Workload, disk: Health) -> Vec<Step> {
    let (seed, batches) = (workload.seed.to_string(), workload.batches.len().to_string());
    let mut environment = vec![(SEED, seed), (BATCHES, batches)];
    if let Health::Failing = disk {
        environment.push((FAILING, "yes".into()));
    }
    let test = "embedded::power_cut::program::the_program_that_is_recorded";
    longshore_disk_faults::record(test, &environment).unwrap()
}

/// Does nothing unless a test above started it.
#[tokio::test]
async fn the_program_that_is_recorded() {
    let Some(disk) = Recorded::here() else { return };
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    let workload = Workload::new(number(SEED), number(BATCHES) as usize);
    let mut program =
        Program { random: Random(workload.seed), disk: disk.unwrap(), committed: 0, copying: None };
    for life in workload.batches.chunks(COMMITS_PER_LIFE) {
        if std::env::var_os(FAILING).is_none() {
            let store = EmbeddedStore::open_with(&program.disk.folder, LOG).unwrap();
            let epoch = claim(&store).await;
            program.mark("epoch", epoch.0);
            program.commit(&store, epoch, life).await;
            program.copying = None;
            program.wait_until_synced().await;
            drop(store);
        } else {
            let (store, epoch) = program.insist_on_opening().await;
            program.insist(&store, epoch, life).await;
            program.copying = None;
            wait_idle().await;
            drop(store);
        }
        program.mark("closed", program.committed);
    }
}

async fn wait_idle() {
    tokio::time::sleep(IDLE).await;
}

struct Program {
    random: Random,
    disk: Recorded,
    committed: u64,
    /// The copy lock, held while a copy is simulated.
    copying: Option<File>,
}

impl Program {
    /// Commits in groups, with several batches in flight.
    async fn commit(&mut self, store: &EmbeddedStore, epoch: Epoch, mut batches: &[Batch]) {
        while !batches.is_empty() {
            let (group, rest) = batches.split_at(batches.len().min(1 + self.random.below(4) as usize));
            batches = rest;
            self.copy_or_not();
            let commits: Vec<_> =
                group.iter().map(|batch| store.commit(SHARD, epoch, batch.clone())).collect();
            for (batch, commit) in group.iter().zip(commits) {
                commit.await.unwrap();
                self.acknowledge(batch);
            }
        }
    }

    /// Opens on a disk that fails at first.
    async fn insist_on_opening(&mut self) -> (EmbeddedStore, Epoch) {
        self.break_disk();
        loop {
            let Ok(store) = EmbeddedStore::open_with(&self.disk.folder, LOG) else {
                self.disk.fail("").unwrap();
                continue;
            };
            if let Ok(epochs) = store.claim_shards(vec![SHARD]).await {
                self.mark("epoch", epochs[0].0);
                return (store, epochs[0]);
            }
            self.disk.fail("").unwrap();
        }
    }

    /// Commits in groups, on a disk that fails now and then, each batch until it is acknowledged.
    async fn insist(&mut self, store: &EmbeddedStore, epoch: Epoch, mut batches: &[Batch]) {
        let mut chain = 0;
        while !batches.is_empty() {
            self.copy_or_not();
            let mut failures = 0_u64;
            if self.random.below(3) == 0 {
                failures = 1 + self.random.below(3);
                self.break_disk();
            }
            let (mut group, rest) = batches.split_at(batches.len().min(1 + self.random.below(4) as usize));
            batches = rest;
            while !group.is_empty() {
                let kept = self.commit_chain(store, epoch, group, chain).await;
                group = &group[kept..];
                chain += 1;
                failures = failures.saturating_sub(1);
                if failures == 0 {
                    self.disk.fail("").unwrap();
                }
            }
            if self.random.coin() {
                self.disk.fail("").unwrap();
            }
        }
        self.disk.fail("").unwrap();
    }

    /// Answers how many of these were kept, each of which rests on the one before.
    async fn commit_chain(
        &mut self,
        store: &EmbeddedStore,
        epoch: Epoch,
        group: &[Batch],
        chain: u64,
    ) -> usize {
        let chained = |batch: &Batch| Batch { chain: Some(chain), ..batch.clone() };
        let commits: Vec<_> = group.iter().map(|batch| store.commit(SHARD, epoch, chained(batch))).collect();
        let (mut kept, mut has_failed) = (0, false);
        for (batch, commit) in group.iter().zip(commits) {
            match commit.await {
                Ok(()) => {
                    assert!(!has_failed, "a batch was kept that rests on one that was not");
                    self.acknowledge(batch);
                    kept += 1;
                }
                Err(error) => {
                    assert!(matches!(error, StoreError::Io(_) | StoreError::Full(_)), "{error:?}");
                    if !has_failed {
                        self.mark("refused", self.committed + 1);
                    }
                    has_failed = true;
                }
            }
        }
        kept
    }

    /// While the log is copied, no segment may be removed.
    fn copy_or_not(&mut self) {
        self.copying = match self.copying.take() {
            None if self.random.below(4) == 0 => {
                let hold = File::open(self.disk.folder.join("log/hold")).unwrap();
                hold.lock_shared().unwrap();
                Some(hold)
            }
            Some(hold) if self.random.below(3) > 0 => Some(hold),
            _ => None,
        };
    }

    /// Buffered commits are synced by themselves, and soon: in the end the harshest cut would lose none.
    async fn wait_until_synced(&self) {
        let began = Instant::now();
        while !self.is_synced() {
            assert!(began.elapsed() < DEADLINE, "{} commits are never synced", self.committed);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn is_synced(&self) -> bool {
        let Ok(steps) = self.disk.so_far() else { return false };
        let mut disk = Disk::new();
        for step in &steps {
            disk.apply(step);
        }
        let files = disk.cut(Loss::Everything, 0);
        // It opens a store of its own, and waits for it.
        let content = std::thread::scope(|scope| scope.spawn(|| open(&files)).join().unwrap());
        content.is_ok_and(|content| content.batches == self.committed)
    }

    fn break_disk(&mut self) {
        self.disk.fail(FAULTS[self.random.below(FAULTS.len() as u64) as usize]).unwrap();
    }

    fn acknowledge(&mut self, batch: &Batch) {
        self.committed += 1;
        match batch.durability {
            Durability::Synced => self.mark("synced", self.committed),
            Durability::Buffered => self.mark("buffered", self.committed),
        }
    }

    fn mark(&self, what: &str, number: u64) {
        self.disk.mark(&format!("{what} {number}")).unwrap();
    }
}
