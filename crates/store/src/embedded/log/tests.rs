//! Rare failures of the disk, injected one by one.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use longshore_disk_faults::{Disk, Files, Loss, Recorded, after_every_step, record};
use longshore_model::{Durability, EndpointNo, Epoch, JobKey, ShardId};

use super::{Log, SyncTicket};
use crate::embedded::recovery::data_dir::DataDir;
use crate::embedded::recovery::recover;
use crate::embedded::write::group_commit::{Commit, GroupCommit, WriteStatus};
use crate::{Batch, EmbeddedStore, Payload, SegmentLimits, Store as _, StoreError, Write};

const SHARD: ShardId = ShardId(1);
const BY_ITSELF: &str = "LONGSHORE_TEST_DOUBT";
/// Several pages, so that a frame's header is not written again with the next frame.
const INPUT_BYTES: usize = 9_000;
const LIMITS: SegmentLimits =
    SegmentLimits { segment_bytes: 1 << 20, ahead_bytes: 64 << 10, short_bytes: 40_000, dead_bytes: 8 << 20 };

/// A store without writer threads: the test does their steps. Dropping it leaves the files as a killed server does.
struct Program {
    disk: Recorded,
    committer: GroupCommit,
    folder: DataDir,
    epoch: Epoch,
    inputs: u64,
}

impl Program {
    fn start(disk: Recorded, inputs: u64) -> Self {
        let folder = DataDir::open(&disk.folder).unwrap();
        let log = Log::open(&folder.log(), LIMITS, recover(&folder.log(), LIMITS).unwrap()).unwrap();
        let shared = Arc::clone(log.shared());
        let mut committer = GroupCommit::new(log, &shared);
        let epoch = committer.raise_epochs(&[SHARD]).unwrap()[0];
        Self { disk, committer, folder, epoch, inputs }
    }

    /// Writes one more input. The acknowledged ones are numbered without a gap.
    fn commit(&mut self, durability: Durability, bytes: usize) -> Result<(), StoreError> {
        let number = self.inputs + 1;
        let payload = Payload::Inline(Bytes::from(vec![number as u8; bytes]));
        let writes = vec![Write::PutInput(job(number), payload)];
        let batch = Batch { durability, writes, chain: None };
        self.committer.commit(vec![Commit { shard: SHARD, epoch: self.epoch, batch }]).remove(0)?;
        self.inputs = number;
        if durability == Durability::Synced {
            self.disk.mark(&number.to_string()).unwrap();
        }
        Ok(())
    }

    /// Writes an input and leaves its sync in flight.
    fn begin(&mut self, number: u64, thread: usize) -> SyncTicket {
        let payload = Payload::Inline(Bytes::from(vec![number as u8; INPUT_BYTES]));
        let writes = vec![Write::PutInput(job(number), payload)];
        let batch = Batch { durability: Durability::Synced, writes, chain: None };
        let group = self.committer.encode(vec![Commit { shard: SHARD, epoch: self.epoch, batch }]);
        assert!(
            self.committer.is_ready(&group) && matches!(self.committer.write(group), WriteStatus::InFlight)
        );
        self.committer.ticket(thread).unwrap()
    }

    /// Settles a sync and marks the acknowledged inputs. Returns the number of failed ones.
    fn settle(&mut self, ticket: SyncTicket, synced: io::Result<()>) -> usize {
        let answers = self.committer.settle(ticket, synced).concat();
        let refused = answers.iter().filter(|answer| answer.is_err()).count();
        self.inputs += (answers.len() - refused) as u64;
        self.disk.mark(&self.inputs.to_string()).unwrap();
        refused
    }

    fn commit_some(&mut self, durability: Durability) {
        (0..3).for_each(|_| self.commit(durability, INPUT_BYTES).unwrap());
    }
}

fn job(number: u64) -> JobKey {
    JobKey { endpoint: EndpointNo(1), seq: number }
}

/// Runs the test with this name on a recorded disk, and checks the folder that power cuts leave after every step.
fn expect_no_loss(test: &str) {
    let steps = record(&format!("embedded::log::tests::{test}"), &[(BY_ITSELF, "yes".into())]).unwrap();
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
        for loss in Loss::ALL {
            let inputs = count(&disk.cut(loss, number as u64));
            assert!(inputs >= due[number - 1], "{number} {loss:?}: {inputs} of {}", due[number - 1]);
        }
    });
}

/// Counts the inputs, each of which must be whole, and none may be behind the first missing one.
fn count(files: &Files) -> u64 {
    let dir = files.rebuild().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let mut number = 0;
        while let Some(Payload::Inline(bytes)) = store.input(job(number + 1)).await.unwrap() {
            number += 1;
            assert!(bytes.iter().all(|&byte| byte == number as u8), "input {number} is another one's");
        }
        for beyond in number + 1..number + 9 {
            assert_eq!(store.input(job(beyond)).await.unwrap(), None, "{beyond} is there, {number} is not");
        }
        number
    })
}

#[test]
fn nothing_is_written_behind_a_commit_that_could_not_be_synced() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("nothing_is_written_behind_a_commit_that_could_not_be_synced");
    };
    let mut program = Program::start(disk.unwrap(), 0);
    program.commit_some(Durability::Synced);
    for fault in ["sync EIO .log", "sync EIO", "write EIO .log", "write ENOSPC"] {
        program.disk.fail(fault).unwrap();
        program.commit(Durability::Synced, INPUT_BYTES).unwrap_err();
        program.commit(Durability::Synced, 10 * INPUT_BYTES).unwrap_err();
        program.disk.fail("").unwrap();
        program.commit_some(Durability::Synced);
    }
}

/// They were acknowledged, and what is synced behind them would be lost with them.
#[test]
fn buffered_commits_that_could_not_be_synced_are_written_again() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("buffered_commits_that_could_not_be_synced_are_written_again");
    };
    let mut program = Program::start(disk.unwrap(), 0);
    program.commit_some(Durability::Synced);
    program.commit_some(Durability::Buffered);
    program.disk.fail("sync EIO").unwrap();
    program.committer.log.sync().unwrap_err();
    program.commit(Durability::Synced, INPUT_BYTES).unwrap_err();
    program.disk.fail("").unwrap();
    program.commit_some(Durability::Synced);
    program.commit_some(Durability::Buffered);
    program.disk.fail("sync EIO .log").unwrap();
    // The new segment is no `.log` before it is durable.
    program.committer.log.sync().unwrap();
    program.disk.fail("").unwrap();
    program.disk.mark(&program.inputs.to_string()).unwrap();
    program.commit_some(Durability::Synced);
}

#[test]
fn the_next_server_makes_up_for_a_failed_sync() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("the_next_server_makes_up_for_a_failed_sync");
    };
    let mut program = Program::start(disk.unwrap(), 0);
    program.commit_some(Durability::Synced);
    program.commit_some(Durability::Buffered);
    program.disk.fail("sync EIO").unwrap();
    program.committer.log.sync().unwrap_err();
    program.disk.fail("").unwrap();
    let Program { disk, committer, folder, inputs, .. } = program;
    drop((committer, folder));
    let mut program = Program::start(disk, inputs);
    program.commit_some(Durability::Synced);
}

/// The name of a new segment may be durable after a failed sync: no frame may be written behind the old end.
#[test]
fn a_segment_that_may_be_there_is_not_written_past() {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss("a_segment_that_may_be_there_is_not_written_past");
    };
    let mut program = Program::start(disk.unwrap(), 0);
    while program.committer.log.active.end < LIMITS.segment_bytes - 200_000 {
        program.commit(Durability::Synced, 100_000).unwrap();
    }
    program.disk.fail("sync EIO /log").unwrap();
    program.commit(Durability::Synced, 300_000).unwrap_err();
    program.commit(Durability::Synced, 10).unwrap_err();
    program.disk.fail("").unwrap();
    program.commit_some(Durability::Synced);
}

/// The result of a sync: success, a failure of the disk, or an error that leaves the content of the disk unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Well,
    DiskFails,
    Unknown,
}

impl End {
    const ALL: [Self; 3] = [Self::Well, Self::DiskFails, Self::Unknown];

    fn of(self, ticket: &SyncTicket, disk: &Recorded) -> io::Result<()> {
        match self {
            Self::Well => ticket.sync(),
            Self::Unknown => Err(io::Error::other("the cable was pulled")),
            Self::DiskFails => {
                disk.fail("sync EIO .log").unwrap();
                let synced = ticket.sync();
                disk.fail("").unwrap();
                synced
            }
        }
    }
}

#[test]
fn a_sync_beside_a_successful_one_loses_nothing_and_brings_nothing_back() {
    overlap("a_sync_beside_a_successful_one_loses_nothing_and_brings_nothing_back", End::Well);
}

#[test]
fn a_sync_beside_a_failed_one_loses_nothing_and_brings_nothing_back() {
    overlap("a_sync_beside_a_failed_one_loses_nothing_and_brings_nothing_back", End::DiskFails);
}

#[test]
fn a_sync_beside_one_of_unknown_effect_loses_nothing_and_brings_nothing_back() {
    overlap("a_sync_beside_one_of_unknown_effect_loses_nothing_and_brings_nothing_back", End::Unknown);
}

/// Two syncs are in flight, of which the first ends so and the second in each way, in both orders. `test`: the test's name.
fn overlap(test: &str, first: End) {
    let Some(disk) = Recorded::here() else {
        return expect_no_loss(test);
    };
    let mut program = Program::start(disk.unwrap(), 0);
    for second in End::ALL {
        for in_order in [true, false] {
            program.commit_some(Durability::Synced);
            let before = program.inputs;
            let mut both = [(program.begin(before + 1, 0), first), (program.begin(before + 2, 1), second)];
            if !in_order {
                both.reverse();
            }
            let mut refused = 0;
            for (ticket, end) in both {
                let synced = end.of(&ticket, &program.disk);
                refused += program.settle(ticket, synced);
            }
            let kept = match (first, second, in_order) {
                (_, End::Well, false) | (End::Well, End::Well, true) => 2,
                (End::Well, _, true) => 1,
                _ => 0,
            };
            assert_eq!((program.inputs - before, refused), (kept, 2 - kept as usize), "{first:?} {second:?}");
        }
    }
    program.commit_some(Durability::Synced);
}

/// Later batches of a failed chain fail, and those of a larger chain succeed.
#[test]
fn what_rests_on_a_refused_batch_is_refused() {
    let Some(disk) = Recorded::here() else {
        record("embedded::log::tests::what_rests_on_a_refused_batch_is_refused", &[]).unwrap();
        return;
    };
    let mut program = Program::start(disk.unwrap(), 0);
    let epoch = program.epoch;
    let rests_on = |chain| {
        let writes = vec![Write::PutInput(job(1), Payload::Inline(vec![1; 10].into()))];
        let batch = Batch { durability: Durability::Synced, writes, chain: Some(chain) };
        vec![Commit { shard: SHARD, epoch, batch }]
    };
    let group = program.committer.encode(rests_on(7));
    assert!(matches!(program.committer.write(group), WriteStatus::InFlight));
    let ticket = program.committer.ticket(0).unwrap();
    let answers = program.committer.settle(ticket, Err(io::Error::other("the cable was pulled"))).concat();
    assert!(matches!(answers[..], [Err(StoreError::Io(_))]), "{answers:?}");
    assert!(program.committer.commit(rests_on(7))[0].is_err());
    assert!(program.committer.commit(rests_on(8))[0].is_ok());
}

#[test]
fn a_batch_too_big_for_the_disk_does_not_take_its_group_down() {
    let Some(disk) = Recorded::here() else {
        record("embedded::log::tests::a_batch_too_big_for_the_disk_does_not_take_its_group_down", &[])
            .unwrap();
        return;
    };
    let mut program = Program::start(disk.unwrap(), 0);
    program.commit_some(Durability::Synced);
    let epoch = program.epoch;
    let batch = |seq, bytes, chain| {
        let writes = vec![Write::PutInput(job(seq), Payload::Inline(vec![1; bytes].into()))];
        Commit {
            shard: SHARD,
            epoch,
            batch: Batch { durability: Durability::Synced, writes, chain: Some(chain) },
        }
    };
    let group = || vec![batch(11, 100, 0), batch(12, 2_000_000, 1), batch(13, 100, 1), batch(14, 100, 2)];
    // No new file can be made; there is room in the present one.
    program.disk.fail("create ENOSPC").unwrap();
    let answers = program.committer.commit(group());
    assert!(answers[0].is_ok() && answers[3].is_ok(), "{answers:?}");
    assert!(matches!(answers[1], Err(StoreError::Full(_))), "{answers:?}");
    assert!(matches!(answers[2], Err(StoreError::Full(_))), "what rests on it: {answers:?}");
    program.disk.fail("").unwrap();
    program.committer.raise_epochs(&[SHARD]).unwrap();
    program.epoch = Epoch(program.epoch.0 + 1);
    let epoch = program.epoch;
    let again = group().into_iter().map(|commit| Commit { epoch, ..commit }).collect();
    assert!(program.committer.commit(again).iter().all(Result::is_ok));
}
