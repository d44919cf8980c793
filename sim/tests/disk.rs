//! What a crash must keep, and may lose, on the simulated disk.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::{BlobError, Blobs as _};
use longshore_model::{Durability, Epoch, ShardId};
use longshore_sim::auditor::Auditor;
use longshore_sim::clock::Clock;
use longshore_sim::disk::Disk;
use longshore_sim::faults::{Fault, Faults};
use longshore_sim::recorder::Recorder;
use longshore_sim::rng::Rng;
use longshore_sim::scheduler::{Process, Scheduler};
use longshore_store::{Batch, Store, StoreError, Write};

const SHARD: ShardId = ShardId(1);
const SEEDS: u64 = 100;

/// A disk, and the server process that has it open.
struct Machine {
    tasks: Scheduler,
    faults: Faults,
    disk: Disk,
    process: Process,
}

impl Machine {
    fn new(seed: u64, faults: &[(Fault, f64)]) -> Self {
        let mut rng = Rng::new(seed);
        let faults = Faults::only(&mut rng, faults);
        let record = Recorder::new(Clock::default(), Auditor::default(), false);
        let disk = Disk::new(&mut rng, faults.clone(), record);
        let tasks = Scheduler::new(&mut rng);
        let process = tasks.process();
        Self { tasks, faults, disk, process }
    }

    /// The process dies and the next one starts.
    fn crash(&mut self, power_cut: bool) {
        self.process.kill();
        self.disk.crash(power_cut);
        self.process = self.tasks.process();
    }

    async fn claim(&self) -> Epoch {
        self.disk.store(&self.process).claim_shards(vec![SHARD]).await.unwrap()[0]
    }

    /// A batch of two writes.
    fn batch(number: u32, durability: Durability) -> Batch {
        let put = |side: &str| Write::PutSetting(format!("{number} {side}"), Bytes::from_static(b"x"));
        Batch { durability, writes: vec![put("left"), put("right")], chain: None }
    }

    async fn commit(&self, epoch: Epoch, number: u32, durability: Durability) -> Result<(), StoreError> {
        self.disk.store(&self.process).commit(SHARD, epoch, Self::batch(number, durability)).await
    }

    /// The numbers of the batches on the disk. Each must be complete.
    async fn present(&self) -> BTreeSet<u32> {
        let settings = self.disk.store(&self.process).catalog().await.unwrap().settings;
        let number = |name: &String| name.split(' ').next().unwrap().parse::<u32>().unwrap();
        let present: BTreeSet<_> = settings.keys().map(number).collect();
        assert_eq!(settings.len(), present.len() * 2, "half a batch is there: {settings:?}");
        present
    }
}

#[tokio::test(start_paused = true)]
async fn no_crash_takes_what_was_synced() {
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::TailLost, 1.0)]);
        let epoch = machine.claim().await;
        machine.commit(epoch, 1, Durability::Synced).await.unwrap();
        // The sync of a later batch covers the earlier ones.
        machine.commit(epoch, 2, Durability::Buffered).await.unwrap();
        machine.commit(epoch, 3, Durability::Synced).await.unwrap();
        machine.crash(true);
        assert_eq!(machine.present().await, [1, 2, 3].into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_loses_nothing_that_was_written() {
    let mut machine = Machine::new(1, &[(Fault::TailLost, 1.0)]);
    let epoch = machine.claim().await;
    machine.commit(epoch, 1, Durability::Buffered).await.unwrap();
    machine.crash(false);
    assert_eq!(machine.present().await, [1].into());
    // The batch is still not synced.
    machine.crash(true);
    assert_eq!(machine.present().await, BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_takes_whole_batches_from_the_end() {
    let mut ends = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::TailTorn, 1.0)]);
        let epoch = machine.claim().await;
        let store = machine.disk.store(&machine.process);
        // Sent one after the other, so that each is a group.
        for number in 0..4 {
            store.commit(SHARD, epoch, Machine::batch(number, Durability::Buffered)).await.unwrap();
        }
        machine.crash(true);
        let present = machine.present().await;
        assert!((0..present.len() as u32).eq(present.iter().copied()), "a hole: {present:?}");
        ends.insert(present.len());
        let epoch = machine.claim().await;
        machine.commit(epoch, 9, Durability::Synced).await.unwrap();
    }
    assert!(ends.len() > 2, "every power cut was alike: {ends:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_buffered_is_synced_soon() {
    let mut machine = Machine::new(1, &[(Fault::TailLost, 1.0)]);
    let epoch = machine.claim().await;
    machine.commit(epoch, 1, Durability::Buffered).await.unwrap();
    tokio::time::advance(Duration::from_millis(101)).await;
    machine.crash(true);
    assert_eq!(machine.present().await, [1].into());
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_batch_is_there_or_not_after_a_crash() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[]);
        let epoch = machine.claim().await;
        let store = machine.disk.store(&machine.process);
        let commit = store.commit(SHARD, epoch, Machine::batch(1, Durability::Synced));
        // If the commit returns before the crash, the batch must be on the disk.
        let answer = tokio::time::timeout(Duration::from_millis(1), commit).await;
        machine.crash(seed % 2 == 0);
        let present = !machine.present().await.is_empty();
        assert!(present || answer.is_err(), "an acknowledged batch is gone");
        outcomes.insert((answer.is_ok(), present));
    }
    assert!(outcomes.contains(&(false, true)) && outcomes.contains(&(false, false)), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_sync_failed_has_no_effect_but_a_crash_can_bring_it_to_life() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::CommitUnsure, 0.5)]);
        let store = machine.disk.store(&machine.process);
        let epoch = loop {
            if let Ok(epochs) = store.claim_shards(vec![SHARD]).await {
                break epochs[0];
            }
        };
        let failed = machine.commit(epoch, 1, Durability::Synced).await.is_err();
        assert_eq!(machine.present().await.is_empty(), failed);
        let next = seed % 3 == 0 && machine.commit(epoch, 2, Durability::Synced).await.is_ok();
        machine.crash(false);
        let present = machine.present().await.contains(&1);
        assert!(!(next && failed && present), "the next batch overwrites a failed one");
        outcomes.insert((failed, present));
    }
    assert_eq!(outcomes, [(false, true), (true, false), (true, true)].into());
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_leaves_nothing() {
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::CommitFailed, 0.5)]);
        let store = machine.disk.store(&machine.process);
        let Ok(epochs) = store.claim_shards(vec![SHARD]).await else { continue };
        let answer = machine.commit(epochs[0], 1, Durability::Synced).await;
        machine.crash(true);
        assert_eq!(machine.present().await.is_empty(), answer.is_err(), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_refuses_until_it_has_room_again() {
    let machine = Machine::new(1, &[(Fault::DiskFull, 0.2)]);
    let store = machine.disk.store(&machine.process);
    let epoch = loop {
        if let Ok(epochs) = store.claim_shards(vec![SHARD]).await {
            break epochs[0];
        }
    };
    let mut refused = 0;
    for number in 0..SEEDS as u32 {
        match machine.commit(epoch, number, Durability::Synced).await {
            Err(StoreError::Full(_)) => refused += 1,
            answer => answer.unwrap(),
        }
    }
    assert!(refused > 0 && refused < SEEDS, "{refused}");
    machine.faults.end();
    machine.commit(epoch, 1_000, Durability::Synced).await.unwrap();
    assert_eq!(machine.present().await.len() as u64, SEEDS - refused + 1);
}

#[tokio::test(start_paused = true)]
async fn a_payload_file_is_kept_whole_or_not_at_all() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::TailLost, 1.0), (Fault::BlobFailed, 0.2)]);
        let blobs = machine.disk.blobs(&machine.process);
        let put = blobs.put("7/a.input", Bytes::from_static(b"all of it"));
        let answer = tokio::time::timeout(Duration::from_millis(1), put).await;
        machine.crash(true);
        let found = machine.disk.blobs(&machine.process).get("7/a.input").await.unwrap();
        let is_kept = matches!(answer, Ok(Ok(())));
        assert!(found.is_some() || !is_kept, "a file that was kept is gone");
        assert!(found.as_ref().is_none_or(|bytes| bytes == "all of it"));
        outcomes.insert((is_kept, found.is_some()));
    }
    assert_eq!(outcomes, [(false, false), (false, true), (true, true)].into());
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_can_undo_a_deletion() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut machine = Machine::new(seed, &[(Fault::TailLost, 1.0)]);
        let blobs = machine.disk.blobs(&machine.process);
        blobs.put("7/a.input", Bytes::from_static(b"x")).await.unwrap();
        blobs.delete("7/a.input").await.unwrap();
        let power_cut = seed % 2 == 0;
        machine.crash(power_cut);
        let found = machine.disk.blobs(&machine.process).get("7/a.input").await.unwrap().is_some();
        assert!(power_cut || !found, "a killed process undoes nothing");
        outcomes.insert(found);
    }
    assert_eq!(outcomes.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_file_can_have_is_refused() {
    let machine = Machine::new(1, &[]);
    let blobs = machine.disk.blobs(&machine.process);
    let refused = blobs.put("../x", Bytes::new()).await;
    assert!(matches!(refused, Err(BlobError::Name(_))), "{refused:?}");
}
