//! The behaviour of every storage of blobs, and failures of the directory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use longshore_blobs::{BlobError, Blobs, DirBlobs, MemoryBlobs};
use tempfile::TempDir;

async fn on_each(case: impl AsyncFn(Arc<dyn Blobs>)) {
    case(Arc::new(MemoryBlobs::new())).await;
    let dir = TempDir::new().unwrap();
    case(Arc::new(DirBlobs::open(dir.path()).unwrap())).await;
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_blob_is_put_read_and_deleted() {
    on_each(async |blobs| {
        let big: Bytes = (0..20_000_000_u32).map(|i| (i >> 3) as u8).collect::<Vec<_>>().into();
        for (name, bytes) in [("7/1.input", big), ("7/2.input", Bytes::new()), ("top", "x".into())] {
            assert_eq!(blobs.get(name).await.unwrap(), None);
            blobs.put(name, bytes.clone()).await.unwrap();
            assert!(blobs.get(name).await.unwrap() == Some(bytes));
            blobs.delete(name).await.unwrap();
            assert_eq!(blobs.get(name).await.unwrap(), None);
            blobs.delete(name).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_second_put_replaces_the_first() {
    on_each(async |blobs| {
        blobs.put("7/1.input", "longer than the next".into()).await.unwrap();
        blobs.put("7/1.input", "short".into()).await.unwrap();
        assert_eq!(blobs.get("7/1.input").await.unwrap(), Some("short".into()));
    })
    .await;
}

#[tokio::test]
async fn a_folder_lists_its_own_blobs_with_full_names() {
    on_each(async |blobs| {
        for name in ["7/b.input", "7/a.output.1", "70/c.input", "7/deep/d", "top"] {
            blobs.put(name, "x".into()).await.unwrap();
        }
        assert_eq!(blobs.list("7").await.unwrap(), names(&["7/a.output.1", "7/b.input"]));
        assert_eq!(blobs.list("7/deep").await.unwrap(), names(&["7/deep/d"]));
        assert_eq!(blobs.folders().await.unwrap(), names(&["7", "70"]));
        assert!(blobs.list("8").await.unwrap().is_empty());
        assert!(blobs.list("top").await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn no_name_leads_out_of_the_folder() {
    on_each(async |blobs| {
        for name in ["../x", "/tmp/x", "7/../../x", ".tmp/0", ""] {
            assert!(matches!(blobs.put(name, "x".into()).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.get(name).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.delete(name).await, Err(BlobError::Name(_))), "{name}");
            assert!(matches!(blobs.list(name).await, Err(BlobError::Name(_))), "{name}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_put_concurrently() {
    let dir = TempDir::new().unwrap();
    let blobs = DirBlobs::open(dir.path()).unwrap();
    let puts: Vec<_> = (0..64_u8)
        .map(|i| {
            let blobs = blobs.clone();
            tokio::spawn(async move { blobs.put(&format!("{}/{i}", i % 4), vec![i; 10_000].into()).await })
        })
        .collect();
    for put in puts {
        put.await.unwrap().unwrap();
    }
    for i in 0..64_u8 {
        assert_eq!(blobs.get(&format!("{}/{i}", i % 4)).await.unwrap(), Some(vec![i; 10_000].into()));
    }
    assert_eq!(count_of_files(&dir.path().join(".tmp")), 0);
}

#[tokio::test]
async fn blobs_are_there_after_reopening_and_leftovers_are_not() {
    let dir = TempDir::new().unwrap();
    DirBlobs::open(dir.path()).unwrap().put("7/1.input", "kept".into()).await.unwrap();
    // A crash between write and rename leaves this file.
    fs::write(dir.path().join(".tmp/0"), "half").unwrap();
    let blobs = DirBlobs::open(dir.path()).unwrap();
    assert_eq!(count_of_files(&dir.path().join(".tmp")), 0);
    assert_eq!(blobs.get("7/1.input").await.unwrap(), Some("kept".into()));
    assert_eq!(blobs.folders().await.unwrap(), names(&["7"]));
}

#[tokio::test]
async fn deletions_wait_while_the_copy_lock_is_held() {
    let dir = TempDir::new().unwrap();
    let blobs = DirBlobs::open(dir.path()).unwrap();
    for name in ["7/old", "7/again", "7/other"] {
        blobs.put(name, "first".into()).await.unwrap();
    }
    let hold = fs::File::open(dir.path().join(longshore_blobs::COPY_LOCK)).unwrap();
    hold.lock_shared().unwrap();
    blobs.delete("7/old").await.unwrap();
    blobs.delete("7/again").await.unwrap();
    blobs.delete("7/missing").await.unwrap();
    assert_eq!(blobs.list("7").await.unwrap(), names(&["7/again", "7/old", "7/other"]));
    blobs.put("7/again", "second".into()).await.unwrap();
    drop(hold);
    blobs.delete("7/other").await.unwrap();
    assert_eq!(blobs.list("7").await.unwrap(), names(&["7/again"]));
    assert_eq!(blobs.get("7/again").await.unwrap(), Some("second".into()));
    assert_eq!(blobs.folders().await.unwrap(), names(&["7"]));
}

#[tokio::test]
async fn a_failed_put_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    let blobs = DirBlobs::open(dir.path()).unwrap();
    // The folder's name is taken by a file.
    fs::write(dir.path().join("7"), "").unwrap();
    let error = blobs.put("7/1.input", "x".into()).await.unwrap_err();
    assert!(matches!(&error, BlobError::Io(text) if text.contains("7/1.input")), "{error}");
    assert_eq!(count_of_files(&dir.path().join(".tmp")), 0);
    assert_eq!(blobs.get("7/1.input").await.unwrap(), None);
}

#[tokio::test]
async fn no_blob_is_reported_missing_while_the_directory_is() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("blobs");
    let blobs = DirBlobs::open(&root).unwrap();
    blobs.put("7/x", Bytes::from_static(b"kept")).await.unwrap();
    assert_eq!(blobs.get("7/y").await.unwrap(), None);
    // The disk is unmounted.
    fs::rename(&root, dir.path().join("away")).unwrap();
    fs::create_dir(&root).unwrap();
    assert!(matches!(blobs.get("7/x").await, Err(BlobError::Io(_))));
    fs::remove_dir(&root).unwrap();
    fs::rename(dir.path().join("away"), &root).unwrap();
    assert_eq!(blobs.get("7/x").await.unwrap().unwrap(), "kept");
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_with_its_name() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("taken");
    fs::write(&file, "").unwrap();
    let error = DirBlobs::open(&file).unwrap_err();
    assert!(error.to_string().contains("taken"), "{error}");
}

fn count_of_files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn other_users_cannot_read_the_directory() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("blobs");
    DirBlobs::open(&root).unwrap().put("7/1.input", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o077, 0);
}
