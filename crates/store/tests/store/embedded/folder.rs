//! Opening, closing and refusing data directories.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use longshore_model::{Durability, EndpointNo};
use longshore_store::{Batch, EmbeddedStore, Payload, SegmentLimits, Store, StoreError, Write};
use tempfile::TempDir;

use super::fresh;
use crate::rows::{SHARD, chunk, claim, commit, job, key, put};

/// Returns the text of a refusal, which must name the directory.
fn refusal(dir: &Path) -> String {
    match EmbeddedStore::open(dir).unwrap_err() {
        StoreError::Unusable(text) => {
            assert!(text.contains(dir.to_str().unwrap()), "{text}");
            text
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rows_and_epochs_survive_reopening() {
    let (store, dir) = fresh();
    let before = claim(&store).await;
    commit(&store, before, vec![put(job(1, 1))]).await.unwrap();
    let buffered = Batch { durability: Durability::Buffered, writes: vec![put(job(1, 2))], chain: None };
    store.commit(SHARD, before, buffered).await.unwrap();
    drop(store);

    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1), job(1, 2)]);
    assert!(claim(&store).await > before);
    assert!(commit(&store, before, vec![put(job(1, 3))]).await.is_err());
}

#[tokio::test]
async fn other_users_cannot_read_the_files() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    let open_to_others = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    for file in ["lock", "log", "log-end", "log/hold", "log/0000000001.log"] {
        assert_eq!(open_to_others(&dir.path().join(file)), 0, "{file}");
    }
    let made = dir.path().join("some/where");
    drop(EmbeddedStore::open(&made).unwrap());
    assert_eq!(open_to_others(&made), 0);
}

/// Truncation is damage, and no passing error of reading.
#[tokio::test]
async fn a_payload_that_was_cut_off_while_the_store_is_open_is_damaged() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    let large = Payload::Inline(vec![1; 50_000].into());
    commit(&store, epoch, vec![Write::PutInput(key(1, 1), large.clone())]).await.unwrap();
    assert_eq!(store.input(key(1, 1)).await.unwrap(), Some(large));
    let log = fs::File::options().write(true).open(dir.path().join("log/0000000001.log")).unwrap();
    log.set_len(20_000).unwrap();
    let StoreError::Corrupt(text) = store.input(key(1, 1)).await.unwrap_err() else { panic!("not damaged") };
    assert!(text.contains("log/0000000001.log") && text.contains("truncated"), "{text}");
}

#[tokio::test]
async fn a_page_of_chunks_ends_before_a_damaged_one() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    let chunks = (0..3_u8).map(|at| chunk(key(1, 1), at.into(), vec![at + 1; 600]));
    commit(&store, epoch, std::iter::once(put(job(1, 1))).chain(chunks).collect()).await.unwrap();
    let path = dir.path().join("log/0000000001.log");
    let at = fs::read(&path).unwrap().windows(600).position(|bytes| bytes == [2; 600]).unwrap();
    let log = fs::File::options().write(true).open(path).unwrap();
    log.write_all_at(&[3], at as u64 + 300).unwrap();
    let offsets = async |from| {
        let page = store.chunks(key(1, 1), from, 100_000).await?;
        Ok::<_, StoreError>(page.into_iter().map(|chunk| chunk.offset).collect::<Vec<_>>())
    };
    assert_eq!(offsets(0).await.unwrap(), [0]);
    let damaged = offsets(1).await;
    assert!(matches!(damaged, Err(StoreError::Corrupt(_))), "{damaged:?}");
    assert_eq!(offsets(2).await.unwrap(), [2]);
}

#[tokio::test]
async fn dropping_the_store_writes_every_queued_batch() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    for seq in 1..=200 {
        // The reply is dropped.
        drop(store.commit(SHARD, epoch, crate::rows::batch(vec![put(job(1, seq))])));
    }
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 1_000).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_second_server_is_refused_until_the_first_is_gone() {
    let (store, dir) = fresh();
    let text = refusal(dir.path());
    assert!(text.contains("in use") && text.contains(&std::process::id().to_string()), "{text}");
    // The first did not notice.
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    drop(store);
    EmbeddedStore::open(dir.path()).unwrap();
}

/// An operator removed the file as a left-over of a killed server.
#[tokio::test]
async fn a_second_server_is_refused_although_the_lock_file_was_removed() {
    let (store, dir) = fresh();
    fs::remove_file(dir.path().join("lock")).unwrap();
    for _ in 0..2 {
        let text = refusal(dir.path());
        assert!(text.contains("in use"), "{text}");
    }
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    drop(store);
    EmbeddedStore::open(dir.path()).unwrap();
}

/// A process that a killed server has forked holds the server's open files until it executes another program.
#[test]
fn a_lock_that_is_just_being_given_up_is_waited_for() {
    let (store, dir) = fresh();
    drop(store);
    let lock = fs::File::open(dir.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut child = Command::new("sleep").arg("0.1").stdin(lock).spawn().unwrap();
    EmbeddedStore::open(dir.path()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (store, dir) = fresh();
    drop(store);
    let file = dir.path().join("log/0000000001.log");
    let mut bytes = fs::read(&file).unwrap();
    // The offset of the version is the same in every format.
    bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
    fs::write(&file, &bytes).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("newer version") && text.contains("99"), "{text}");
    assert!(fs::read(&file).unwrap() == bytes, "the refused file was changed");
}

#[test]
fn a_database_of_another_kind_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("longshore.db");
    fs::write(&file, "SQLite format 3\0 and so on").unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("longshore.db") && text.contains("move that file away"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), b"SQLite format 3\0 and so on");
    assert!(!dir.path().join("log").exists());
}

#[test]
fn a_file_of_garbage_is_refused_and_left_alone() {
    let (store, dir) = fresh();
    drop(store);
    let file = dir.path().join("log/0000000001.log");
    let garbage: Vec<u8> = (0..10_000_u32).map(|i| (i * 31) as u8).collect();
    fs::write(&file, &garbage).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("damaged") && text.contains("0000000001.log"), "{text}");
    assert!(fs::read(&file).unwrap() == garbage, "the refused file was changed");
}

#[tokio::test]
async fn a_missing_segment_is_noticed() {
    let dir = TempDir::new().unwrap();
    for _ in 0..3 {
        let limits = SegmentLimits { short_bytes: 0, ..SegmentLimits::default() };
        drop(EmbeddedStore::open_with(dir.path(), limits).unwrap());
    }
    fs::remove_file(dir.path().join("log/0000000002.log")).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("0000000002.log") && text.contains("missing"), "{text}");
}

/// `log-end` notes that the log went on.
#[tokio::test]
async fn a_missing_end_of_the_log_is_noticed() {
    let limits = SegmentLimits { short_bytes: 0, ..SegmentLimits::default() };
    for missing in [
        &["0000000003.log"][..],
        &["0000000002.log", "0000000003.log"],
        &["0000000001.log", "0000000002.log", "0000000003.log"],
    ] {
        let dir = TempDir::new().unwrap();
        for _ in 0..3 {
            drop(EmbeddedStore::open_with(dir.path(), limits).unwrap());
        }
        for file in missing {
            fs::remove_file(dir.path().join("log").join(file)).unwrap();
        }
        let text = refusal(dir.path());
        assert!(text.contains("`log/0000000003.log`, byte 0: the file is missing"), "{text}");
        assert!(!dir.path().join("log/0000000003.log").exists());
    }
    let (store, dir) = fresh();
    drop(store);
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let text = refusal(dir.path());
    assert!(text.contains("0000000001.log") && text.contains("missing"), "{text}");
}

/// `log-end` is missing in a directory of an older program, and in a copy that was made while the server ran.
#[tokio::test]
async fn a_log_without_a_note_of_its_end_is_opened() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    drop(store);
    fs::remove_file(dir.path().join("log-end")).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
}

#[tokio::test]
async fn a_directory_with_data_and_no_log_is_refused() {
    for part in ["audit", "blobs", "code", "volumes", "webhooks"] {
        for empty_log in [false, true] {
            let dir = TempDir::new().unwrap();
            fs::create_dir(dir.path().join(part)).unwrap();
            fs::write(dir.path().join(part).join("x"), "x").unwrap();
            if empty_log {
                fs::create_dir(dir.path().join("log")).unwrap();
            }
            let text = refusal(dir.path());
            assert!(text.contains(&format!("has no log, but `{part}/`")), "{text}");
            assert!(text.contains("put `log/` and `log-end` back"), "{text}");
            assert_eq!(dir.path().join("log").exists(), empty_log);
        }
    }
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("backup.json"), "{}").unwrap();
    let text = refusal(dir.path());
    assert!(text.contains(&format!("`longshore restore {} --data-dir NEW`", dir.path().display())), "{text}");
}

#[tokio::test]
async fn a_directory_without_data_of_a_server_is_opened() {
    let dir = TempDir::new().unwrap();
    for part in ["blobs", "log", "lost+found", "others", "volumes/lost+found", "workers/live"] {
        fs::create_dir_all(dir.path().join(part)).unwrap();
    }
    for file in ["lock", "longshore.toml", "blobs/.hold", "others/file"] {
        fs::write(dir.path().join(file), "").unwrap();
    }
    drop(EmbeddedStore::open(dir.path()).unwrap());
}

#[tokio::test]
async fn starting_often_leaves_no_files_behind() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    drop(store);
    for before in 1..20 {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(claim(&store).await.0, epoch.0 + before);
        assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
    }
    let files: Vec<_> =
        fs::read_dir(dir.path().join("log")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[tokio::test]
async fn a_creation_that_was_interrupted_starts_over() {
    let dir = TempDir::new().unwrap();
    // The crash came after files were made and before there was a segment.
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/spare-1"), "half of a head").unwrap();
    fs::write(dir.path().join("lock"), "12345678901234567890 not a number\n").unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let text = refusal(&file.join("data"));
    assert!(text.contains("cannot be created"), "{text}");
}

#[test]
fn a_folder_without_the_right_to_write_is_refused() {
    // No user can create files here, not even root.
    let text = refusal(Path::new("/proc/self"));
    assert!(text.contains("is not writable"), "{text}");
}

#[test]
fn folders_are_made_all_the_way() {
    let dir = TempDir::new().unwrap();
    EmbeddedStore::open(&dir.path().join("a/b/c")).unwrap();
}
