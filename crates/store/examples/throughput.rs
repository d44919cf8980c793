//! Commits and rows per second of the embedded store: `cargo run --release -p longshore-store --example throughput`.
//!
//! A job's life is four changes of its row (submit, take, finish, delete) and one input of 300 bytes, as in the
//! figures of the decision record. One committer per shard, so the batches of many shards share a sync.

#![expect(clippy::print_stdout, reason = "it is run by hand: what cannot be printed need not go on")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_model::{
    Attempt, Durability, EndpointNo, Epoch, JobId, JobKey, JobRow, JobState, Millis, ShardId,
};
use longshore_store::{Batch, EmbeddedStore, Payload, Store, StoreError, Write};

const SECONDS: u64 = 3;

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "throughput.longshore".into());
    println!(
        "{:>8} {:>6} {:>9} {:>11} {:>13} {:>8} {:>8}",
        "", "shards", "jobs", "commits/s", "transitions/s", "p50 µs", "p99 µs"
    );
    for durability in [Durability::Synced, Durability::Buffered] {
        for (shards, jobs) in [(1, 1), (1, 16), (1, 256), (16, 1), (64, 1), (16, 16)] {
            measure(Path::new(&folder), durability, shards, jobs).await?;
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|error| StoreError::Io(error.to_string()))
}

async fn measure(folder: &Path, durability: Durability, shards: u8, jobs: u64) -> Result<(), StoreError> {
    let _ = std::fs::remove_dir_all(folder);
    let store = Arc::new(EmbeddedStore::open(folder)?);
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let mut tasks = Vec::new();
    for shard in (0..shards).map(ShardId) {
        let epoch = store.claim_shards(vec![shard]).await?[0];
        tasks.push(tokio::spawn(commit_until(Arc::clone(&store), shard, epoch, durability, jobs, end)));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.map_err(|error| StoreError::Io(error.to_string()))??);
    }
    latencies.sort_unstable();
    let commits = latencies.len() as u64;
    let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100].as_micros();
    println!(
        "{durability:>8?} {shards:>6} {jobs:>9} {:>11} {:>13} {:>8} {:>8}",
        commits / SECONDS,
        commits * jobs / SECONDS,
        percentile(50),
        percentile(99)
    );
    Ok(())
}

/// Carries blocks of jobs through their lives, one step of all of them per commit.
async fn commit_until(
    store: Arc<EmbeddedStore>,
    shard: ShardId,
    epoch: Epoch,
    durability: Durability,
    jobs: u64,
    end: Instant,
) -> Result<Vec<Duration>, StoreError> {
    let input = bytes::Bytes::from(vec![b'x'; 300]);
    let mut latencies = Vec::new();
    for first in (1..).step_by(jobs as usize) {
        for state in [Some(JobState::InQueue), Some(JobState::InProgress), Some(JobState::Completed), None] {
            if Instant::now() >= end {
                return Ok(latencies);
            }
            let mut writes = Vec::new();
            for key in
                (first..first + jobs).map(|seq| JobKey { endpoint: EndpointNo(u32::from(shard.0)), seq })
            {
                match state {
                    Some(state) => writes.push(Write::PutJob(Box::new(job(key, state)))),
                    None => writes.push(Write::DeleteJob(key)),
                }
                if state == Some(JobState::InQueue) {
                    writes.push(Write::PutInput(key, Payload::Inline(input.clone())));
                }
            }
            let start = Instant::now();
            store.commit(shard, epoch, Batch { durability, writes, chain: None }).await?;
            latencies.push(start.elapsed());
        }
    }
    Ok(latencies)
}

fn job(key: JobKey, state: JobState) -> JobRow {
    let created_at = Millis(1_700_000_000_000);
    JobRow {
        state,
        never_taken: state == JobState::InQueue,
        attempt: Attempt(1),
        started_at: created_at + 10,
        input_bytes: 300,
        worker: "worker-1".parse().ok(),
        ..JobRow::queued(key, JobId::mint(created_at + key.seq, u128::from(key.seq), false), created_at)
    }
}
