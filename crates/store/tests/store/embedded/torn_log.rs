//! A log whose end is torn: what was acknowledged before the tear is there, what was not is whole or absent.

use std::fs;

use bytes::Bytes;
use longshore_disk_faults::Files;
use longshore_model::EndpointNo;
use longshore_store::{EmbeddedStore, Payload, Store, Write};

use super::fresh;
use super::segment::Segment;
use crate::rows::{claim, commit, job, key, put};

const COMMITS: u64 = 24;

/// The only segment of a store in the middle of its life, and where its frames ended when each commit was acknowledged.
async fn segment_in_mid_life() -> (Vec<u8>, Vec<usize>) {
    let (store, dir) = fresh();
    let file = dir.path().join("log/0000000001.log");
    let epoch = claim(&store).await;
    let mut ends = Vec::new();
    for seq in 1..=COMMITS {
        // Some inputs are beside the records.
        let input = Payload::Inline(Bytes::from(vec![seq as u8; seq as usize % 3 * 400]));
        commit(&store, epoch, vec![put(job(1, seq)), Write::PutInput(key(1, seq), input)]).await.unwrap();
        ends.push(Segment::new(fs::read(&file).unwrap()).end());
    }
    let segment = fs::read(&file).unwrap();
    let end = ends.last().unwrap();
    assert!(segment.len() > end + 4_096, "no room was made for the next commits");
    (segment[..end + 4_096].into(), ends)
}

/// Opens a copy with this segment and answers how many commits are in it, each of them whole.
async fn commits_found(segment: &[u8]) -> u64 {
    let dir = Files::default().rebuild().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/0000000001.log"), segment).unwrap();
    let mut store = EmbeddedStore::open(dir.path()).unwrap();
    let found = store.jobs(EndpointNo(1), 0, 1_000).await.unwrap();
    // Life goes on, and what was dropped stays so.
    for round in 1..=3 {
        let jobs = store.jobs(EndpointNo(1), 0, 1_000).await.unwrap();
        let expected: Vec<_> = (1..=found.len() as u64).map(|seq| job(1, seq)).collect();
        assert_eq!(jobs, expected, "not a prefix of what was committed");
        for row in &jobs {
            assert!(store.input(row.key).await.unwrap().is_some(), "half of commit {} is there", row.key.seq);
        }
        let epoch = claim(&store).await;
        commit(&store, epoch, vec![put(job(2, round))]).await.unwrap();
        assert_eq!(store.jobs(EndpointNo(2), 0, 1_000).await.unwrap().len() as u64, round);
        drop(store);
        store = EmbeddedStore::open(dir.path()).unwrap();
    }
    found.len() as u64
}

#[tokio::test]
async fn a_log_cut_anywhere_keeps_what_was_acknowledged_before_the_cut() {
    let (segment, ends) = segment_in_mid_life().await;
    let cuts = (4_096..=segment.len()).step_by(segment.len() / 80);
    for cut in cuts.chain(ends.iter().copied()).chain(ends.iter().map(|end| end - 1)) {
        let acknowledged = ends.iter().filter(|&&end| end <= cut).count() as u64;
        assert_eq!(commits_found(&segment[..cut]).await, acknowledged, "cut at {cut}");
    }
    assert_eq!(commits_found(&segment).await, COMMITS);
}

#[tokio::test]
async fn garbage_at_the_end_of_the_log_is_dropped() {
    let (segment, ends) = segment_in_mid_life().await;
    for ends in ends.windows(2).step_by(4) {
        let (torn_at, end) = (ends[0], ends[1]);
        // Sectors of the last write arrived in any order: some new, some as they were.
        let mut torn = segment[..end].to_vec();
        torn.resize(segment.len(), 0);
        for byte in torn[torn_at..].iter_mut().step_by(512) {
            *byte ^= 0x5a;
        }
        let acknowledged = ends_before(&segment, torn_at);
        assert_eq!(commits_found(&torn).await, acknowledged, "torn at {torn_at}");
    }
}

fn ends_before(segment: &[u8], torn_at: usize) -> u64 {
    // The first frame is that of the claim.
    Segment::new(segment[..torn_at].to_vec()).records().len() as u64 - 1
}

/// A frame that a crash tore was not acknowledged. So a frame that was written after an acknowledgement shows that the
/// acknowledged frame is damaged and not torn.
#[tokio::test]
async fn garbage_before_the_end_of_the_log_is_refused() {
    let (segment, ends) = segment_in_mid_life().await;
    for &at in &ends[..ends.len() - 2] {
        let mut damaged = segment.clone();
        damaged[at + 30] ^= 1;
        let dir = Files::default().rebuild().unwrap();
        fs::create_dir(dir.path().join("log")).unwrap();
        fs::write(dir.path().join("log/0000000001.log"), &damaged).unwrap();
        let text = EmbeddedStore::open(dir.path()).unwrap_err().to_string();
        assert!(text.contains(&format!("`log/0000000001.log`, byte {at}: the frame is damaged")), "{text}");
        assert!(text.contains("restore"), "{text}");
        assert!(fs::read(dir.path().join("log/0000000001.log")).unwrap() == damaged, "it was changed");
    }
}

#[tokio::test]
async fn a_torn_file_is_kept_as_it_is() {
    let (segment, ends) = segment_in_mid_life().await;
    let mut torn = segment.clone();
    let last = ends[ends.len() - 2];
    torn[last + 30] ^= 1;
    let dir = Files::default().rebuild().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/0000000001.log"), &torn).unwrap();
    for _ in 0..3 {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.jobs(EndpointNo(1), 0, 1_000).await.unwrap().len() as u64, COMMITS - 1);
    }
    assert!(fs::read(dir.path().join("log/0000000001.log")).unwrap() == torn, "the file was made anew");
}
