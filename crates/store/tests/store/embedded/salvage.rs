//! A folder that is damaged is described, and what can be read of it is kept in another one.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use longshore_disk_faults::Files;
use longshore_model::{EndpointNo, JobState};
use longshore_store::{
    BlobRef, EmbeddedStore, OutcomeRow, Payload, Salvaged, SegmentLimits, Store, StoreError, Write, salvage,
    verify,
};
use tempfile::TempDir;

use super::segment::Segment;
use crate::rows::{claim, commit, endpoint, inline, job, key, put, template};

const JOBS: u64 = 60;
/// Segments of some twenty commits.
pub(super) const SMALL: SegmentLimits =
    SegmentLimits { segment_bytes: 8 << 10, ahead_bytes: 16 << 10, short_bytes: 0, dead_bytes: 8 << 20 };

fn input(seq: u64) -> Payload {
    Payload::Inline(vec![seq as u8; if seq.is_multiple_of(10) { 700 } else { 20 }].into())
}

/// A folder that was closed in order: an endpoint, a template, jobs of which the odd ones have ended, and one with files.
pub(super) async fn filled() -> TempDir {
    let dir = Files::default().rebuild().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), SMALL).unwrap();
    let epoch = claim(&store).await;
    let catalog = vec![Write::PutEndpoint(Box::new(endpoint(1))), Write::PutTemplate(Box::new(template(1)))];
    commit(&store, epoch, catalog).await.unwrap();
    for seq in 1..=JOBS {
        let mut row = job(1, seq);
        row.state = JobState::InQueue;
        commit(&store, epoch, vec![put(row), Write::PutInput(key(1, seq), input(seq))]).await.unwrap();
    }
    for seq in (1..=JOBS).step_by(2) {
        let mut row = job(1, seq);
        row.state = JobState::Completed;
        let outcome = OutcomeRow { output: Some(inline("out")), error: None };
        commit(&store, epoch, vec![put(row), Write::PutOutcome(key(1, seq), outcome)]).await.unwrap();
    }
    let blob = |name: &str| Payload::Blob(BlobRef { name: name.into(), bytes: 5 });
    let outcome = OutcomeRow { output: Some(blob("1/b.output")), error: None };
    let mut row = job(1, JOBS + 1);
    row.state = JobState::Completed;
    let with_files = vec![
        put(row),
        Write::PutInput(key(1, JOBS + 1), blob("1/a.input")),
        Write::PutOutcome(key(1, JOBS + 1), outcome),
    ];
    commit(&store, epoch, with_files).await.unwrap();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.path().join("blobs/1")).unwrap();
    for file in ["blobs/1/a.input", "blobs/1/b.output"] {
        fs::write(dir.path().join(file), "12345").unwrap();
    }
    fs::create_dir(dir.path().join("code")).unwrap();
    drop(store);
    dir
}

pub(super) fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir.join("log")).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "log"));
    files.sort_unstable();
    files
}

fn files_of(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    segments(dir).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Salvages a folder into a new one, which must be whole, and opens that.
fn salvaged(dir: &Path) -> (Salvaged, EmbeddedStore, TempDir) {
    let (before, new) = (files_of(dir), TempDir::new().unwrap());
    let kept = salvage(dir, new.path()).unwrap();
    assert_eq!(files_of(dir), before, "the old folder was changed");
    let verified = verify(new.path()).unwrap();
    assert_eq!(verified.damages, []);
    assert_eq!(verified.jobs, kept.jobs);
    let store = EmbeddedStore::open(new.path()).unwrap();
    (kept, store, new)
}

async fn seqs(store: &EmbeddedStore) -> Vec<u64> {
    store.jobs(EndpointNo(1), 0, 1_000).await.unwrap().iter().map(|row| row.key.seq).collect()
}

#[tokio::test]
async fn a_whole_folder_is_reported_whole_and_kept_whole() {
    let dir = filled().await;
    let verified = verify(dir.path()).unwrap();
    assert_eq!(verified.damages, []);
    assert_eq!((verified.jobs, verified.blobs, verified.blob_bytes), (JOBS + 1, 2, 10));
    assert_eq!((verified.payloads, verified.payload_bytes), (6, 6 * 700));
    assert!(verified.segments as usize == segments(dir.path()).len() && verified.segments > 1);
    let (kept, store, new) = salvaged(dir.path());
    assert_eq!((kept.jobs, kept.blobs, kept.dropped.len(), kept.damages.len()), (JOBS + 1, 2, 0, 0));
    assert_eq!(kept.left, ["code"]);
    assert_eq!(seqs(&store).await, (1..=JOBS + 1).collect::<Vec<_>>());
    for seq in 1..=JOBS {
        assert_eq!(store.input(key(1, seq)).await.unwrap(), Some(input(seq)));
        assert_eq!(store.outcome(key(1, seq)).await.unwrap().is_some(), !seq.is_multiple_of(2));
    }
    assert_eq!(fs::read(new.path().join("blobs/1/b.output")).unwrap(), b"12345");
    let catalog = store.catalog().await.unwrap();
    assert_eq!((catalog.endpoints, catalog.last_endpoint_no), (vec![endpoint(1)], 1));
    assert_eq!(catalog.templates, [template(1)]);
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, JOBS + 2))]).await.unwrap();
}

#[tokio::test]
async fn what_is_behind_a_damaged_frame_is_kept() {
    let dir = filled().await;
    let path = &segments(dir.path())[0];
    let mut segment = Segment::new(fs::read(path).unwrap());
    // The claim, the catalog, and then a frame for each job.
    let (third, tenth) = (segment.records()[4].clone(), segment.records()[11].clone());
    segment.bytes[third.start] ^= 1;
    segment.bytes[tenth.end + 100] ^= 1;
    fs::write(path, &segment.bytes).unwrap();
    assert!(EmbeddedStore::open(dir.path()).is_err());

    let damages = verify(dir.path()).unwrap().damages;
    let places: Vec<_> = damages.iter().map(|damage| (&*damage.file, damage.at)).collect();
    let file = "log/0000000001.log";
    assert_eq!(places, [(file, third.start as u64 - 24), (file, tenth.end as u64)], "{damages:?}");

    let (kept, store, _new) = salvaged(dir.path());
    assert_eq!(kept.damages, damages);
    // The third is known from its end, in a later frame. The tenth has not ended and cannot run.
    assert_eq!(kept.dropped, [(job(1, 10).id.to_string(), "its input is lost")]);
    assert_eq!(seqs(&store).await, (1..=JOBS + 1).filter(|&seq| seq != 10).collect::<Vec<_>>());
    assert_eq!(store.input(key(1, 3)).await.unwrap(), None);
    assert_eq!(store.input(key(1, 4)).await.unwrap(), Some(input(4)));
}

#[tokio::test]
async fn jobs_of_a_lost_endpoint_are_dropped_by_name() {
    let dir = filled().await;
    fs::remove_file(&segments(dir.path())[0]).unwrap();
    let damages = verify(dir.path()).unwrap().damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(damages[0].to_string(), "log/0000000001.log, byte 0: the file is missing");
    let (kept, store, _new) = salvaged(dir.path());
    assert_eq!(kept.jobs, 0);
    assert!(!kept.dropped.is_empty() && kept.dropped.iter().all(|(_, why)| *why == "its endpoint is lost"));
    assert_eq!(seqs(&store).await, [0; 0]);
}

#[tokio::test]
async fn a_large_payload_that_is_gone_or_cut_is_reported() {
    let dir = filled().await;
    fs::write(dir.path().join("blobs/1/b.output"), "1234").unwrap();
    let damages = verify(dir.path()).unwrap().damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert!(
        damages[0].to_string().contains("blobs/1/b.output") && damages[0].what.contains("4 bytes"),
        "{damages:?}"
    );
    fs::remove_file(dir.path().join("blobs/1/a.input")).unwrap();
    assert_eq!(verify(dir.path()).unwrap().damages.len(), 2);
    let new = TempDir::new().unwrap();
    let kept = salvage(dir.path(), new.path()).unwrap();
    assert_eq!((kept.jobs, kept.blobs, kept.damages.len()), (JOBS + 1, 0, 2));
    let store = EmbeddedStore::open(new.path()).unwrap();
    assert_eq!(store.outcome(key(1, JOBS + 1)).await.unwrap(), None);
}

#[tokio::test]
async fn nothing_is_salvaged_over_something_or_from_under_a_server() {
    let dir = filled().await;
    let (used, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(used.path().join("mine"), "").unwrap();
    let refused = |from: &Path, to: &Path| match salvage(from, to).unwrap_err() {
        StoreError::Unusable(text) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(dir.path(), used.path()).contains("not empty"));
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert!(refused(dir.path(), new.path()).contains("in use"));
    drop(store);
    assert!(refused(&dir.path().join("nothing"), new.path()).contains("cannot be read"));
}
