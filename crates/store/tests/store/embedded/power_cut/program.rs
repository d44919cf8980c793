//! The program that is recorded: it commits a workload, closes and opens its store in between, and says what was
//! acknowledged.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use longshore_disk_faults::{Control, MARKS, Random, Shim, Step, read};
use longshore_model::{Durability, Epoch};
use longshore_store::{Batch, EmbeddedStore, LogLimits, Store, StoreError};
use tempfile::TempDir;

use super::workload::Workload;
use crate::rows::{SHARD, claim};

const FOLDER: &str = "LONGSHORE_TEST_POWER_CUT_FOLDER";
const SEED: &str = "LONGSHORE_TEST_POWER_CUT_SEED";
const BATCHES: &str = "LONGSHORE_TEST_POWER_CUT_BATCHES";
const CONTROL: &str = "LONGSHORE_TEST_POWER_CUT_CONTROL";

/// What is wrong with the disk at times: lines for the control file.
const FAULTS: [&str; 6] =
    ["sync EIO", "sync EIO .db-wal", "sync EIO .db", "write EIO .db-wal", "write ENOSPC", "write EIO .db"];
/// Checkpoints come every few batches, so that the record is full of them.
const LOG: LogLimits = LogLimits { background_pages: 20, pages_max: 60 };
/// So many commits between two openings, so that the log also starts over while the store is open.
const COMMITS_PER_LIFE: usize = 24;

/// The disk of the program.
#[derive(Clone, Copy)]
pub enum Health {
    /// It works.
    Good,
    /// It refuses writes and fails at syncs now and then.
    Failing,
}

/// Runs the program and answers everything that happened to its folder.
pub fn record(workload: &Workload, disk: Health) -> Vec<Step> {
    let (shim, dir) = (Shim::compile().unwrap(), TempDir::new().unwrap());
    let outside = dir.path().canonicalize().unwrap();
    let (folder, record, control) = (outside.join("data"), outside.join("record"), outside.join("control"));
    std::fs::create_dir(&folder).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["embedded::power_cut::program::the_program_that_is_recorded", "--exact", "--test-threads=1"])
        .env(FOLDER, &folder)
        .env(SEED, workload.seed.to_string())
        .env(BATCHES, workload.batches.len().to_string());
    shim.record(&mut program, &folder, &record);
    if let Health::Failing = disk {
        drop(Control::create(&control).unwrap());
        Shim::control(&mut program, &control);
        program.env(CONTROL, &control);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    read(&record).unwrap()
}

/// Does nothing unless a test above started it.
#[tokio::test]
async fn the_program_that_is_recorded() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    let workload = Workload::new(number(SEED), number(BATCHES) as usize);
    let control = std::env::var_os(CONTROL).map(|control| Control::open(control.as_ref()).unwrap());
    let mut program = Program {
        random: Random(workload.seed),
        marks: File::create(Path::new(&folder).join(MARKS)).unwrap(),
        committed: 0,
    };
    for life in workload.batches.chunks(COMMITS_PER_LIFE) {
        let store = EmbeddedStore::open_with(folder.as_ref(), LOG).unwrap();
        let epoch = claim(&store).await;
        program.mark("epoch", epoch.0);
        match &control {
            None => program.commit(&store, epoch, life).await,
            Some(control) => program.insist(&store, epoch, life, control).await,
        }
    }
}

struct Program {
    random: Random,
    marks: File,
    committed: u64,
}

impl Program {
    /// Commits in groups: those that are on their way at once.
    async fn commit(&mut self, store: &EmbeddedStore, epoch: Epoch, mut batches: &[Batch]) {
        while !batches.is_empty() {
            let (group, rest) = batches.split_at(batches.len().min(1 + self.random.below(4) as usize));
            batches = rest;
            let commits: Vec<_> =
                group.iter().map(|batch| store.commit(SHARD, epoch, batch.clone())).collect();
            for (batch, commit) in group.iter().zip(commits) {
                commit.await.unwrap();
                self.acknowledge(batch);
            }
        }
    }

    /// Commits one by one on a disk that fails now and then, each until it is acknowledged.
    async fn insist(&mut self, store: &EmbeddedStore, epoch: Epoch, batches: &[Batch], control: &Control) {
        for batch in batches {
            let mut failures = 0_u64;
            if self.random.below(4) == 0 {
                failures = 1 + self.random.below(3);
                control.say(FAULTS[self.random.below(FAULTS.len() as u64) as usize]).unwrap();
            }
            while let Err(error) = store.commit(SHARD, epoch, batch.clone()).await {
                assert!(matches!(error, StoreError::Io(_) | StoreError::Full(_)), "{error:?}");
                self.mark("refused", self.committed + 1);
                failures = failures.saturating_sub(1);
                if failures == 0 {
                    control.say("").unwrap();
                }
            }
            self.acknowledge(batch);
            if self.random.coin() {
                control.say("").unwrap();
            }
        }
        control.say("").unwrap();
    }

    fn acknowledge(&mut self, batch: &Batch) {
        self.committed += 1;
        match batch.durability {
            Durability::Synced => self.mark("synced", self.committed),
            Durability::Buffered => self.mark("buffered", self.committed),
        }
    }

    /// Puts a remark among the steps of the record.
    fn mark(&mut self, what: &str, number: u64) {
        self.marks.write_all(format!("{what} {number}").as_bytes()).unwrap();
    }
}
