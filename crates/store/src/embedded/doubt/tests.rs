//! The failures that hardly ever happen by chance, one by one.

use bytes::Bytes;
use longshore_disk_faults::{Disk, Files, Loss, Recorded, after_every_step, record};
use longshore_model::{Durability, EndpointNo, Epoch, JobKey, ShardId};
use rusqlite::Connection;

use crate::embedded::committer::{Commit, Committer};
use crate::embedded::open::{Folder, connect_beside};
use crate::{Batch, Payload, StoreError, Write};

const SHARD: ShardId = ShardId(1);
const BY_ITSELF: &str = "LONGSHORE_TEST_DOUBT";

struct Program {
    disk: Recorded,
    committer: Committer,
    folder: Folder,
    /// As the checkpointer's: as long as it is open, the log is not read anew.
    _beside: Connection,
    epoch: Epoch,
    inputs: u64,
}

impl Program {
    fn start(disk: Recorded) -> Self {
        let folder = Folder::open(&disk.folder).unwrap();
        let mut committer = Committer::open(&folder, 3).unwrap();
        let epoch = committer.raise_epochs(&[SHARD]).unwrap()[0];
        let beside = connect_beside(&folder.database).unwrap();
        beside.execute_batch("SELECT count(*) FROM input").unwrap();
        Self { disk, committer, folder, _beside: beside, epoch, inputs: 0 }
    }

    fn commit(&mut self, durability: Durability) -> Result<(), StoreError> {
        let job = JobKey { endpoint: EndpointNo(1), seq: self.inputs + 1 };
        let payload = Payload::Inline(Bytes::from(vec![b'x'; 3_000]));
        let batch = Batch { durability, writes: vec![Write::PutInput(job, payload)] };
        let commit = Commit { shard: SHARD, epoch: self.epoch, batch };
        self.committer.commit(&[commit]).remove(0)?;
        self.inputs += 1;
        if durability == Durability::Synced {
            self.disk.mark(&self.inputs.to_string()).unwrap();
        }
        Ok(())
    }

    /// Somebody who looks at the present state until dropped: checkpoints go no further.
    fn onlooker(&self) -> Connection {
        let onlooker = Connection::open(&self.folder.database).unwrap();
        onlooker.execute_batch("BEGIN; SELECT count(*) FROM input").unwrap();
        onlooker
    }
}

/// Runs the test of this name by itself, and counts after every step what power cuts leave.
fn expect_no_loss(test: &str) {
    let steps = record(&format!("embedded::doubt::tests::{test}"), &[(BY_ITSELF, "yes".into())]).unwrap();
    let mut last = 0;
    let due: Vec<u64> = steps
        .iter()
        .map(|step| {
            last = step.mark().map_or(last, |mark| mark.parse().unwrap());
            last
        })
        .collect();
    assert!(last > 5);
    after_every_step(&steps, Disk::new, |number, disk| {
        for loss in [Loss::Everything, Loss::Writes, Loss::Sectors] {
            let (inputs, damage) = count(&disk.cut(loss, number as u64));
            let promised = due[number - 1];
            assert!(
                inputs >= promised && damage == "ok",
                "{number} {loss:?}: {inputs} of {promised}, {damage}"
            );
        }
    });
}

fn count(files: &Files) -> (u64, String) {
    let dir = files.rebuild().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let db = Connection::open(&folder.database).unwrap();
    let inputs: u32 = db.query_row("SELECT count(*) FROM input", [], |row| row.get(0)).unwrap();
    (inputs.into(), db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap())
}

/// The log may not start over: the database lacks pages that a checkpoint before the failed one had copied.
#[test]
fn a_checkpoint_that_failed_is_begun_anew() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("a_checkpoint_that_failed_is_begun_anew");
    };
    let mut program = Program::start(disk.unwrap());
    (0..3).for_each(|_| program.commit(Durability::Synced).unwrap());
    let onlooker = program.onlooker();
    (0..2).for_each(|_| program.commit(Durability::Synced).unwrap());
    program.committer.checkpoint().unwrap();
    drop(onlooker);
    program.disk.fail("sync EIO .db").unwrap();
    program.committer.checkpoint().unwrap_err();
    program.disk.fail("").unwrap();
    program.committer.checkpoint().unwrap();
    (0..5).for_each(|_| program.commit(Durability::Synced).unwrap());
}

/// What was synced behind it may not be acknowledged: it would be lost with what is missing.
#[test]
fn nothing_is_acknowledged_behind_buffered_commits_that_could_not_be_synced() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("nothing_is_acknowledged_behind_buffered_commits_that_could_not_be_synced");
    };
    let mut program = Program::start(disk.unwrap());
    (0..3).for_each(|_| program.commit(Durability::Synced).unwrap());
    (0..2).for_each(|_| program.commit(Durability::Buffered).unwrap());
    program.disk.fail("sync EIO .db-wal").unwrap();
    program.committer.sync().unwrap_err();
    program.commit(Durability::Synced).unwrap_err();
    program.disk.fail("").unwrap();
    (0..3).for_each(|_| program.commit(Durability::Synced).unwrap());
}

/// Dropping the committer as a killed server does, which never came to set it right.
#[test]
fn the_next_server_makes_up_for_a_failed_sync() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("the_next_server_makes_up_for_a_failed_sync");
    };
    let mut program = Program::start(disk.unwrap());
    (0..3).for_each(|_| program.commit(Durability::Synced).unwrap());
    (0..2).for_each(|_| program.commit(Durability::Buffered).unwrap());
    program.disk.fail("sync EIO .db-wal").unwrap();
    program.committer.sync().unwrap_err();
    program.disk.fail("").unwrap();
    let Program { disk, committer, folder, inputs, .. } = program;
    drop((committer, folder));
    let mut program = Program { inputs, ..Program::start(disk) };
    (0..3).for_each(|_| program.commit(Durability::Synced).unwrap());
}
