//! Compaction frees space without an effect on readers, copies or rows.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_disk_faults::Files;
use longshore_model::{EndpointNo, Epoch, JobKey};
use longshore_store::{EmbeddedStore, OutcomeRow, Payload, Store, Write};

use super::model::TINY;
use crate::rows::{chunk, claim, commit, endpoint, inline, job, key, put, template};

/// Jobs that stay, and what they have: small, large, in a file.
const STAYING: u64 = 10;

fn input_of(seq: u64) -> Payload {
    Payload::Inline(Bytes::from(vec![seq as u8; seq as usize * 300]))
}

async fn settle(store: &EmbeddedStore, epoch: Epoch) {
    let stays = (1..=STAYING).flat_map(|seq| {
        let outcome = OutcomeRow { output: Some(input_of(seq)), error: None };
        let key = key(1, seq);
        let chunk = chunk(key, seq, "chunk");
        [put(job(1, seq)), Write::PutInput(key, input_of(seq)), Write::PutOutcome(key, outcome), chunk]
    });
    let catalog = [Write::PutEndpoint(Box::new(endpoint(5))), Write::PutTemplate(Box::new(template(1)))];
    commit(store, epoch, stays.chain(catalog).collect()).await.unwrap();
}

async fn expect_settled(store: &EmbeddedStore) {
    let rows = store.jobs(EndpointNo(1), 0, 100).await.unwrap();
    assert_eq!(rows, (1..=STAYING).map(|seq| job(1, seq)).collect::<Vec<_>>());
    for seq in 1..=STAYING {
        let key = key(1, seq);
        assert_eq!(store.input(key).await.unwrap(), Some(input_of(seq)));
        assert_eq!(store.outcome(key).await.unwrap().unwrap().output, Some(input_of(seq)));
        assert_eq!(store.chunks(key, 0, 100).await.unwrap()[0].bytes, "chunk");
    }
    let catalog = store.catalog().await.unwrap();
    assert_eq!((catalog.endpoints, catalog.last_endpoint_no), (vec![endpoint(5)], 5));
    assert_eq!(catalog.templates, [template(1)]);
}

/// Jobs that one batch purges.
const SLICE: u64 = 4_096;

/// Writes and deletes a job in one commit.
async fn pass(store: &EmbeddedStore, epoch: Epoch, seq: u64) {
    let passing: JobKey = key(2, seq);
    let writes =
        vec![put(job(2, seq)), Write::PutInput(passing, input_of(seq % 5)), Write::DeleteJob(passing)];
    commit(store, epoch, writes).await.unwrap();
}

fn is_there(dir: &Path, segment: u64) -> bool {
    dir.join(format!("log/{segment:010}.log")).exists()
}

fn bytes_in(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("log")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn space_is_given_back_and_what_is_needed_is_carried_along() {
    let dir = Files::default().rebuild().unwrap();
    let mut store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
    let mut seqs = 1..;
    for _ in 0..3 {
        let epoch = claim(&store).await;
        settle(&store, epoch).await;
        for seq in seqs.by_ref().take(700) {
            pass(&store, epoch, seq).await;
        }
        assert!(!is_there(dir.path(), 1));
        // Some 35 KB are needed, as much again may be dead, and files have room ahead.
        assert!(bytes_in(dir.path()) < 200_000, "{} bytes", bytes_in(dir.path()));
        expect_settled(&store).await;
        drop(store);
        store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
        expect_settled(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_notice() {
    let dir = Files::default().rebuild().unwrap();
    let store = Arc::new(EmbeddedStore::open_with(dir.path(), TINY).unwrap());
    let epoch = claim(&*store).await;
    settle(&store, epoch).await;
    let done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        async move {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) {
                expect_settled(&store).await;
                rounds += 1;
            }
            rounds
        }
    });
    for seq in 1..=2_000 {
        pass(&store, epoch, seq).await;
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
    assert!(!is_there(dir.path(), 1));
}

#[tokio::test]
async fn jobs_by_the_thousand_go_for_a_few_bytes() {
    let dir = Files::default().rebuild().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let epoch = claim(&store).await;
    for slice in 0..4 {
        let seqs = slice * SLICE + 1..=(slice + 1) * SLICE;
        commit(&store, epoch, seqs.map(|seq| put(job(1, seq))).collect()).await.unwrap();
    }
    let used = || {
        let content = fs::read(dir.path().join("log/0000000001.log")).unwrap();
        content.len() - content.iter().rev().take_while(|&&byte| byte == 0).count()
    };
    let before = used();
    for slice in 0..4 {
        let seqs = slice * SLICE + 1..=(slice + 1) * SLICE;
        commit(&store, epoch, seqs.map(|seq| Write::DeleteJob(key(1, seq))).collect()).await.unwrap();
    }
    assert!(store.jobs(EndpointNo(1), 0, 10).await.unwrap().is_empty());
    assert!(used() < before + 4 * 64, "{} bytes", used() - before);
}

#[tokio::test]
async fn a_copy_can_be_made_while_segments_come_and_go() {
    let (dir, copy) = (Files::default().rebuild().unwrap(), Files::default().rebuild().unwrap());
    let store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
    let epoch = claim(&store).await;
    settle(&store, epoch).await;
    let hold = File::open(dir.path().join("log/hold")).unwrap();
    hold.lock_shared().unwrap();
    // As `cp` does it: first the names, then one file after the other, while everything goes on.
    let names: Vec<_> =
        fs::read_dir(dir.path().join("log")).unwrap().map(|file| file.unwrap().file_name()).collect();
    fs::create_dir(copy.path().join("log")).unwrap();
    let mut seqs = 1..;
    for name in names {
        for seq in seqs.by_ref().take(100) {
            pass(&store, epoch, seq).await;
        }
        fs::copy(dir.path().join("log").join(&name), copy.path().join("log").join(&name)).unwrap();
    }
    for seq in seqs.by_ref().take(500) {
        pass(&store, epoch, seq).await;
    }
    assert!(is_there(dir.path(), 1), "a segment was removed during a copy");
    drop(hold);
    expect_settled(&EmbeddedStore::open_with(copy.path(), TINY).unwrap()).await;

    let deadline = Instant::now() + Duration::from_secs(20);
    while is_there(dir.path(), 1) {
        assert!(Instant::now() < deadline, "no segment is removed after the copy");
        for seq in seqs.by_ref().take(10) {
            pass(&store, epoch, seq).await;
        }
    }
    expect_settled(&store).await;
}

#[tokio::test]
async fn what_is_cleared_does_not_come_back_when_its_segment_goes() {
    let dir = Files::default().rebuild().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
    let epoch = claim(&store).await;
    let gone = key(1, 1);
    let outcome = OutcomeRow { output: Some(inline("out")), error: None };
    commit(&store, epoch, vec![put(job(1, 1)), Write::PutOutcome(gone, outcome)]).await.unwrap();
    commit(&store, epoch, vec![Write::ClearOutcome(gone)]).await.unwrap();
    for seq in 1..=600 {
        pass(&store, epoch, seq).await;
    }
    assert!(!is_there(dir.path(), 1));
    drop(store);
    let store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
    assert_eq!(store.outcome(gone).await.unwrap(), None);
}
