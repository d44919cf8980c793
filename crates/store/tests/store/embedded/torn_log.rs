//! A log whose end is torn: what was acknowledged before the tear is there, what was not is whole or absent.

use std::fs;

use longshore_model::EndpointNo;
use longshore_store::{EmbeddedStore, Store, Write};
use tempfile::TempDir;

use super::fresh;
use crate::rows::{claim, commit, inline, job, key, put};

const COMMITS: u64 = 24;

/// A log is a header and frames, see <https://www.sqlite.org/fileformat2.html#walformat>.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 4096;

/// Where the last frame ends: the file is longer than what is in it.
fn end_of(log: &[u8]) -> u64 {
    let frames = log[LOG_HEADER_BYTES..].chunks(FRAME_BYTES);
    let used = frames.take_while(|frame| frame.iter().any(|&byte| byte != 0)).count();
    (LOG_HEADER_BYTES + used * FRAME_BYTES) as u64
}

/// The two files of a store in the middle of its life, and where the log ended when each commit was acknowledged.
async fn files_in_mid_life() -> (Vec<u8>, Vec<u8>, Vec<u64>) {
    let (store, dir) = fresh();
    let log = dir.path().join("longshore.db-wal");
    let epoch = claim(&store).await;
    let mut log_bytes = Vec::new();
    for seq in 1..=COMMITS {
        let writes = vec![put(job(1, seq)), Write::PutInput(key(1, seq), inline("{\"input\":1}"))];
        commit(&store, epoch, writes).await.unwrap();
        log_bytes.push(end_of(&fs::read(&log).unwrap()));
    }
    let end = *log_bytes.last().unwrap() as usize;
    let log = fs::read(&log).unwrap();
    assert!(log.len() > end, "no room was made for the next commits");
    (fs::read(dir.path().join("longshore.db")).unwrap(), log[..end + FRAME_BYTES / 2].into(), log_bytes)
}

/// Opens a copy with this log and answers how many commits are in it, each of them whole.
async fn commits_found(database: &[u8], log: &[u8]) -> u64 {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("longshore.db"), database).unwrap();
    fs::write(dir.path().join("longshore.db-wal"), log).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let jobs = store.jobs(EndpointNo(1), 0, 1_000).await.unwrap();
    let expected: Vec<_> = (1..=jobs.len() as u64).map(|seq| job(1, seq)).collect();
    assert_eq!(jobs, expected, "not a prefix of what was committed");
    for row in &jobs {
        assert!(store.input(row.key).await.unwrap().is_some(), "half of commit {} is there", row.key.seq);
    }
    // Life goes on.
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(2, 1))]).await.unwrap();
    jobs.len() as u64
}

#[tokio::test]
async fn a_log_cut_anywhere_keeps_what_was_acknowledged_before_the_cut() {
    let (database, log, log_bytes) = files_in_mid_life().await;
    let cuts = (0..=log.len()).step_by(log.len() / 80).chain(log_bytes.iter().map(|&bytes| bytes as usize));
    for cut in cuts {
        let acknowledged = log_bytes.iter().filter(|&&bytes| bytes <= cut as u64).count() as u64;
        let found = commits_found(&database, &log[..cut]).await;
        assert!(found >= acknowledged, "cut at {cut}: {found} of {acknowledged} are there");
    }
    assert_eq!(commits_found(&database, &log).await, COMMITS);
}

#[tokio::test]
async fn garbage_at_the_end_of_the_log_is_dropped() {
    let (database, log, log_bytes) = files_in_mid_life().await;
    for torn_at in log_bytes.iter().step_by(4).map(|&bytes| bytes as usize) {
        // Sectors of the last write arrived in any order: some new, some as they were.
        let mut torn = log.clone();
        for byte in torn[torn_at..].iter_mut().step_by(512) {
            *byte ^= 0x5a;
        }
        let acknowledged = log_bytes.iter().filter(|&&bytes| bytes as usize <= torn_at).count() as u64;
        assert_eq!(commits_found(&database, &torn).await, acknowledged, "torn at {torn_at}");
    }
}
