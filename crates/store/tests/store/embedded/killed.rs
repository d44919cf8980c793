//! `kill -9` during commits: a separate process commits and prints the acknowledged batches.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use longshore_model::{Durability, EndpointNo, ShardId};
use longshore_store::{Batch, EmbeddedStore, Store, Write};
use tempfile::TempDir;

use crate::rows::{inline, job, key, put};

const FOLDER: &str = "LONGSHORE_TEST_KILLED_FOLDER";
const ROUNDS: u64 = 6;
const ENDPOINTS: u32 = 8;

#[tokio::test]
async fn a_killed_process_loses_nothing_acknowledged() {
    let dir = TempDir::new().unwrap();
    let mut acknowledged: BTreeMap<u32, u64> = BTreeMap::new();
    for round in 1..=ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "embedded::killed::the_process_that_is_killed",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(FOLDER, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut seen = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            // A line may follow the test harness's own words without a line break, and the last may be cut.
            let Some((_, words)) = line.split_once("acknowledged ") else { continue };
            let Some((endpoint, seq)) = words.strip_suffix(';').and_then(|words| words.split_once(' '))
            else {
                continue;
            };
            acknowledged.insert(endpoint.parse().unwrap(), seq.parse().unwrap());
            seen += 1;
            if seen == round * 100 {
                child.kill().unwrap();
            }
        }
        assert!(!child.wait().unwrap().success());
        assert!(seen >= round * 100, "the process ended by itself after {seen} commits");
        check(&dir, &acknowledged).await;
    }
}

async fn check(dir: &TempDir, acknowledged: &BTreeMap<u32, u64>) {
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for (&endpoint, &last) in acknowledged {
        let jobs = store.jobs(EndpointNo(endpoint), 0, usize::MAX).await.unwrap();
        // All that was acknowledged and perhaps more, without a gap, each with its input.
        assert!(jobs.len() as u64 >= last, "endpoint {endpoint}: {} of {last}", jobs.len());
        for (seq, row) in (1..).zip(&jobs) {
            assert_eq!(row, &job(endpoint, seq));
            assert!(store.input(row.key).await.unwrap().is_some());
        }
    }
}

/// Does nothing unless the test above started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = std::sync::Arc::new(EmbeddedStore::open(folder.as_ref()).unwrap());
    let tasks: Vec<_> =
        (1..=ENDPOINTS).map(|endpoint| tokio::spawn(commit_for_ever(store.clone(), endpoint))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn commit_for_ever(store: std::sync::Arc<EmbeddedStore>, endpoint: u32) {
    let shard = ShardId(endpoint as u8);
    let epoch = store.claim_shards(vec![shard]).await.unwrap()[0];
    let stored = store.jobs(EndpointNo(endpoint), 0, usize::MAX).await.unwrap();
    for seq in stored.len() as u64 + 1.. {
        // A killed process loses no buffered commit either.
        let durability = if endpoint.is_multiple_of(2) { Durability::Synced } else { Durability::Buffered };
        let writes = vec![put(job(endpoint, seq)), Write::PutInput(key(endpoint, seq), inline("{}"))];
        store.commit(shard, epoch, Batch { durability, writes, chain: None }).await.unwrap();
        let line = format!("acknowledged {endpoint} {seq};\n");
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            return; // The reading test has ended.
        }
    }
}
