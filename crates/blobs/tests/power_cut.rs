//! A power cut at any moment: every acknowledged blob is whole afterwards, and no name has a part of a blob.
//!
//! As in the store's tests, a separate process writes and deletes blobs while its disk is recorded. The directory is
//! rebuilt and opened as each cut may have left it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use longshore_blobs::{Blobs, DirBlobs};
use longshore_disk_faults::{Disk, Files, Loss, Random, Recorded, Step, after_every_step, record};

const SEED: &str = "LONGSHORE_TEST_POWER_CUT_SEED";
const FAILING: &str = "LONGSHORE_TEST_POWER_CUT_FAILING";
const BLOBS: u64 = 36;
const BLOBS_PER_LIFE: u64 = 12;
/// The faults of a failing disk: lines for `disk.c`.
const FAULTS: [&str; 5] =
    ["sync EIO", "sync EIO /folder", "write EIO", "write ENOSPC\ncreate ENOSPC", "create EIO"];

/// Returns the name and the bytes of blob `number`.
fn blob(number: u64) -> (String, Bytes) {
    let bytes = [0, 1, 511, 3_000, 9_000][number as usize % 5];
    (format!("{}/{number}.input", number / 3), vec![number as u8; bytes].into())
}

fn run(seed: u64, failing: bool) -> Vec<Step> {
    let mut environment = vec![(SEED, seed.to_string())];
    environment.extend(failing.then(|| (FAILING, "yes".to_owned())));
    record("the_program_that_is_recorded", &environment).unwrap()
}

/// Does nothing unless a test below started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_that_is_recorded() {
    let Some(disk) = Recorded::here() else { return };
    let (disk, failing) = (disk.unwrap(), std::env::var_os(FAILING).is_some());
    let mut random = Random(std::env::var(SEED).unwrap().parse().unwrap());
    let mut blobs = DirBlobs::open(&disk.folder).unwrap();
    for number in 1..=BLOBS {
        if failing && random.below(3) == 0 {
            disk.fail(FAULTS[random.below(FAULTS.len() as u64) as usize]).unwrap();
        }
        // Two concurrent puts: the second may fail.
        let ((name, bytes), (beside, other)) = (blob(number), blob(number + BLOBS));
        let second = tokio::spawn({
            let blobs = blobs.clone();
            async move { blobs.put(&beside, other).await }
        });
        while blobs.put(&name, bytes.clone()).await.is_err() {
            assert!(failing);
            disk.fail("").unwrap();
        }
        disk.mark(&format!("put {number}")).unwrap();
        if second.await.unwrap().is_ok() {
            disk.mark(&format!("put {}", number + BLOBS)).unwrap();
        }
        if random.below(3) == 0 {
            let number = 1 + random.below(number);
            disk.mark(&format!("deletes {number}")).unwrap();
            blobs.delete(&blob(number).0).await.unwrap();
        }
        disk.fail("").unwrap();
        if number.is_multiple_of(BLOBS_PER_LIFE) {
            blobs = DirBlobs::open(&disk.folder).unwrap();
        }
    }
}

/// Returns the blobs that must exist after each step.
fn promises(steps: &[Step]) -> Vec<Vec<u64>> {
    let mut kept = BTreeMap::new();
    let after = |step: &Step| {
        if let Some((what, number)) = step.mark().and_then(|mark| mark.split_once(' ')) {
            kept.insert(number.parse::<u64>().unwrap(), what == "put");
        }
        kept.iter().filter(|(_, kept)| **kept).map(|(number, _)| *number).collect()
    };
    steps.iter().map(after).collect()
}

/// Returns the blobs in the directory, each checked to be whole; then puts one more.
fn open(files: &Files) -> Result<Vec<u64>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let dir = files.rebuild().unwrap();
        let blobs = DirBlobs::open(dir.path()).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        for number in 1..=2 * BLOBS {
            let (name, expected) = blob(number);
            match blobs.get(&name).await.map_err(|error| error.to_string())? {
                Some(bytes) if bytes != expected => return Err(format!("half of {name} is there")),
                Some(_) => found.push(number),
                None => {}
            }
        }
        let (name, bytes) = blob(1_000);
        blobs.put(&name, bytes).await.map_err(|error| error.to_string())?;
        Ok(found)
    })
}

/// Cuts the record after every step, with every loss. Returns the violations.
#[expect(clippy::print_stdout, reason = "figures of a test")]
fn cut_everywhere<'a>(steps: &'a [Step], disk: impl Fn() -> Disk<'a> + Sync) -> Vec<String> {
    let (promises, cuts) = (promises(steps), AtomicUsize::new(0));
    let opened: Mutex<HashMap<u64, Result<Vec<u64>, String>>> = Mutex::default();
    let violations: Mutex<Vec<String>> = Mutex::default();
    after_every_step(steps, disk, |number, disk| {
        for loss in Loss::ALL {
            cuts.fetch_add(1, Ordering::Relaxed);
            let files = disk.cut(loss, number as u64);
            let mut hasher = DefaultHasher::new();
            files.hash(&mut hasher);
            let hash = hasher.finish();
            let known = opened.lock().unwrap().get(&hash).cloned();
            let found = known.unwrap_or_else(|| open(&files));
            opened.lock().unwrap().insert(hash, found.clone());
            let verdict = found.and_then(|found| {
                match promises[number - 1].iter().find(|kept| !found.contains(kept)) {
                    Some(lost) => Err(format!("blob {lost} is lost")),
                    None => Ok(()),
                }
            });
            if let Err(text) = verdict {
                violations.lock().unwrap().push(format!("prefix {number}, {loss:?}: {text}"));
            }
        }
    });
    let (violations, opened) = (violations.into_inner().unwrap(), opened.into_inner().unwrap().len());
    let (prefixes, cuts) = (steps.len(), cuts.into_inner());
    println!(
        "{prefixes} prefixes, {cuts} cuts, {opened} different folders opened, {} violations",
        violations.len()
    );
    violations
}

#[test]
fn no_cut_loses_or_halves_a_blob() {
    assert_eq!(cut_everywhere(&run(1, false), Disk::new), [] as [String; 0]);
}

#[test]
fn no_cut_after_failures_of_the_disk_loses_or_halves_a_blob() {
    let steps = run(2, true);
    assert_eq!(cut_everywhere(&steps, Disk::new), [] as [String; 0]);
    assert_eq!(cut_everywhere(&steps, || Disk::new().failed_syncs_leave_some(2)), [] as [String; 0]);
}

#[test]
fn the_loss_of_a_lying_disk_is_noticed() {
    let violations = cut_everywhere(&run(3, false), || Disk::new().lying());
    assert!(violations.iter().any(|text| text.contains("is lost")));
    assert!(violations.iter().any(|text| text.contains("half of")));
}
