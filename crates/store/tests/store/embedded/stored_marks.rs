//! A data directory with jobs that have the GPU of their worker and the times of progress values, stored in the repository: every
//! later version must open it and find the same rows. `tests/fixtures/README.md` has the command that wrote it.

use std::path::Path;

use flate2::read::GzDecoder;
use longshore_model::{EndpointNo, JobRow, JobState, Millis};
use longshore_store::{EmbeddedStore, Store as _};
use tempfile::TempDir;

use super::stored_archive::write_archive;
use crate::rows::{claim, commit, job, put};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/marks.tar.gz");

fn rows() -> [JobRow; 4] {
    let both = JobRow {
        gpu: Some("NVIDIA H100 80GB HBM3".into()),
        progress: Some((0..32).map(|number| number * 1_000).collect()),
        started_at: Millis(1_700_000_000_000),
        finished_at: Millis(1_700_000_040_000),
        state: JobState::Completed,
        ..job(1, 1)
    };
    let gpu = JobRow { gpu: Some("ü".into()), ..job(1, 2) };
    let progress = JobRow { progress: Some([0, 0, u32::MAX].into()), ..job(1, 3) };
    [both, gpu, progress, job(1, 4)]
}

async fn assert_complete(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), rows());
}

#[tokio::test]
async fn a_stored_directory_with_gpus_and_progress_opens() {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    assert_complete(&dir.path().join("data")).await;
}

/// Also writes the archive of this version if `LONGSHORE_WRITE_FIXTURE` names a file.
#[tokio::test]
async fn this_version_writes_the_same_gpus_and_progress() {
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    let store = EmbeddedStore::open(&data).unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, rows().into_iter().map(put).collect()).await.unwrap();
    drop(store);
    write_archive(&data);
    assert_complete(&data).await;
}
