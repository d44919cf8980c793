//! A data directory with ended attempts of a job and the time of its first chunk, stored in the repository: every later version must open it and find the
//! same rows. `tests/fixtures/README.md` has the command that wrote it.

use std::path::Path;

use flate2::read::GzDecoder;
use longshore_model::{Attempt, AttemptEnd, EndedAttempt, EndpointNo, JobRow, Millis};
use longshore_store::{EmbeddedStore, Store as _, Write};
use tempfile::TempDir;

use super::stored_archive::write_archive;
use crate::rows::{claim, commit, job, key, put, put_attempt};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/attempts.tar.gz");

/// An attempt of each end; every second one without a worker and a GPU.
fn attempts() -> Vec<EndedAttempt> {
    let attempt = |(n, end): (u32, AttemptEnd)| {
        let is_known = n.is_multiple_of(2);
        EndedAttempt {
            n: Attempt(n),
            worker: is_known.then(|| "wk-1.a:b_C".parse().unwrap()),
            gpu: is_known.then(|| "NVIDIA H100".into()),
            taken_at: Millis(1_700_000_000_000),
            ended_at: Millis(1_700_000_000_000 + 100 * u64::from(n)),
            end,
            reason: if is_known { "signal 9, \"ü\"".into() } else { "".into() },
        }
    };
    (1..).zip(AttemptEnd::ALL).map(attempt).collect()
}

fn row() -> JobRow {
    JobRow { first_chunk_at: Millis(1_700_000_000_001), ..job(1, 1) }
}

async fn write_to(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    let epoch = claim(&store).await;
    let mut writes = vec![put(row()), put(job(1, 2)), put_attempt(key(1, 2), attempts()[0].clone())];
    writes.extend(attempts().into_iter().map(|attempt| put_attempt(key(1, 1), attempt)));
    writes.push(Write::DeleteJob(key(1, 2)));
    commit(&store, epoch, writes).await.unwrap();
}

async fn assert_complete(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [row()]);
    assert_eq!(store.attempts(key(1, 1)).await.unwrap(), attempts());
    assert!(store.attempts(key(1, 2)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stored_directory_with_attempts_opens() {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    assert_complete(&dir.path().join("data")).await;
}

/// Also writes the archive of this version if `LONGSHORE_WRITE_FIXTURE` names a file.
#[tokio::test]
async fn this_version_writes_the_same_attempts() {
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    write_to(&data).await;
    write_archive(&data);
    assert_complete(&data).await;
}
