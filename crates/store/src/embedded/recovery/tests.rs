//! A log of which one part is damaged, every part in its turn: it holds everything that was acknowledged, or is refused.
//!
//! An ordinary run flips one bit in every seventh byte, others in other runs' places by `LONGSHORE_DAMAGE_FROM`; with
//! `LONGSHORE_DAMAGE_STEP=1` in every byte.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use longshore_disk_faults::Files;
use longshore_model::{EndpointNo, JobKey, ShardId};

use super::recover;
use super::scan::{ReadWindow, frame_at};
use crate::embedded::log::end_file::EndFile;
use crate::embedded::log::format::SEGMENT_HEADER_BYTES;
use crate::embedded::log::names;
use crate::embedded::log::segment::SegmentHeader;
use crate::embedded::read;
use crate::embedded::read::pool::ReadShared;
use crate::embedded::verify;
use crate::{Batch, EmbeddedStore, Payload, SegmentLimits, Store as _, StoreError, Write};

const JOBS: u64 = 200;
const SHARD: ShardId = ShardId(1);
/// Never made anew, so that opening changes nothing.
const ONE: SegmentLimits =
    SegmentLimits { segment_bytes: 1 << 20, ahead_bytes: 16 << 10, short_bytes: 0, dead_bytes: 8 << 20 };
const MANY: SegmentLimits = SegmentLimits { segment_bytes: 7 << 10, ..ONE };

fn job(seq: u64) -> JobKey {
    JobKey { endpoint: EndpointNo(1), seq }
}

/// Most are in the record, some beside it.
fn input(seq: u64) -> Payload {
    let bytes = if seq.is_multiple_of(40) { 600 } else { 8 };
    Payload::Inline(vec![seq as u8; bytes].into())
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    InOrder,
    /// As the files were when the last commit was acknowledged.
    Killed,
}

/// Returns a directory with a log of inputs, each acknowledged before the next was committed.
fn data_dir(limits: SegmentLimits, ended: Ended) -> tempfile::TempDir {
    let dir = Files::default().rebuild().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let store = EmbeddedStore::open_with(dir.path(), limits).unwrap();
        let epoch = store.claim_shards(vec![SHARD]).await.unwrap()[0];
        for seq in 1..=JOBS {
            let writes = vec![Write::PutInput(job(seq), input(seq))];
            store.commit(SHARD, epoch, Batch { writes, ..Batch::default() }).await.unwrap();
        }
        if ended == Ended::InOrder {
            return dir;
        }
        assert_eq!(
            end_of_frames(segments(dir.path()).last().unwrap()),
            end(dir.path()),
            "the end is noted before the reply"
        );
        let killed = Files::default().rebuild().unwrap();
        copy(dir.path(), killed.path());
        killed
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to.join("log")).unwrap();
    fs::copy(from.join("log-end"), to.join("log-end")).unwrap();
    for file in fs::read_dir(from.join("log")).unwrap() {
        let name = file.unwrap().file_name();
        fs::copy(from.join("log").join(&name), to.join("log").join(&name)).unwrap();
    }
}

/// Whether the log is refused, with words that name a file and a place. If not, all of it must be there, or an error for
/// what is damaged; but for the last `torn` inputs, if they may be gone.
fn is_refused(dir: &Path, torn: u64) -> bool {
    let recovered = match recover(&dir.join("log"), ONE) {
        Ok(recovered) => recovered,
        Err(StoreError::Corrupt(text)) => {
            assert!(text.contains("log") && text.contains("backup"), "{text}");
            return true;
        }
        Err(StoreError::Unusable(text)) => {
            assert!(text.contains("newer version"), "{text}");
            return true;
        }
        Err(other) => panic!("{other:?}"),
    };
    let shared = ReadShared::new(recovered.index);
    for seq in 1..=JOBS {
        match read::input(&shared, job(seq)) {
            Ok(Some(found)) => assert_eq!(found, input(seq), "another input"),
            Ok(None) => assert!(seq + torn > JOBS, "input {seq} is lost"),
            Err(error) => assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}"),
        }
    }
    false
}

fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(dir.join("log")).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    files.sort_unstable();
    files
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Whether a check of the folder finds something.
fn is_reported(dir: &Path) -> bool {
    !verify(dir).unwrap().damages.is_empty()
}

/// Flips a bit of every byte, zeroes every page, cuts at every length. Damage that `matters` must be reported, other damage must not.
/// Returns how many of these were refused.
fn damage_file(dir: &Path, path: &Path, matters: impl Fn(usize) -> bool) -> usize {
    let whole = fs::read(path).unwrap();
    let last = (0..whole.len()).rev().find(|&at| matters(at)).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let (step, from) = (number("LONGSHORE_DAMAGE_STEP", 7), number("LONGSHORE_DAMAGE_FROM", 3));
    let mut refused = 0;
    for at in (from..whole.len()).step_by(step) {
        file.write_all_at(&[whole[at] ^ 1 << (at % 8)], at as u64).unwrap();
        refused += usize::from(is_refused(dir, 0));
        assert_eq!(is_reported(dir), matters(at), "a bit of byte {at} of {path:?}");
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    for at in (0..whole.len()).step_by(4096) {
        let page = &whole[at..whole.len().min(at + 4096)];
        file.write_all_at(&vec![0; page.len()], at as u64).unwrap();
        refused += usize::from(is_refused(dir, 0));
        assert_eq!(is_reported(dir), at <= last, "the page at byte {at} of {path:?}");
        file.write_all_at(page, at as u64).unwrap();
    }
    for length in (from..whole.len()).rev().step_by(step) {
        file.set_len(length as u64).unwrap();
        refused += usize::from(is_refused(dir, 0));
        assert_eq!(is_reported(dir), length <= last, "{path:?} cut at {length}");
    }
    file.write_all_at(&whole, 0).unwrap();
    assert!(!is_refused(dir, 0) && !is_reported(dir), "a whole log is refused");
    refused
}

/// Bytes of a segment that say something.
fn of_segment(end: u64) -> impl Fn(usize) -> bool {
    move |at| (0..64).contains(&at) || (4096..end as usize).contains(&at)
}

/// Where the last segment is known to end.
fn end(dir: &Path) -> u64 {
    EndFile::read(&dir.join("log")).unwrap().unwrap().at
}

/// Where the frames of a segment end.
fn end_of_frames(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let header = SegmentHeader::read(&file, names::number_of(path.file_name().unwrap()).unwrap()).unwrap();
    let mut window = ReadWindow::new(&file, file.metadata().unwrap().len());
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(found) = frame_at(&mut window, header.salt, at).unwrap() {
        at = found.end;
    }
    u64::from(at)
}

#[test]
fn a_log_that_was_closed_is_whole_or_refused() {
    let dir = data_dir(ONE, Ended::InOrder);
    let [segment] = &segments(dir.path())[..] else { panic!("more than one segment") };
    let refused = damage_file(dir.path(), segment, of_segment(end(dir.path())));
    // Each bit of a frame but in payloads, and each length: of either there is one for each step.
    let damaged = 2 * (end(dir.path()) as usize - 4096 - 5 * 600) / number("LONGSHORE_DAMAGE_STEP", 7);
    assert!(refused >= damaged, "{refused} of {damaged}");
}

#[test]
fn a_log_of_a_killed_server_is_whole_or_refused() {
    let dir = data_dir(ONE, Ended::Killed);
    let [segment] = &segments(dir.path())[..] else { panic!("more than one segment") };
    assert!(damage_file(dir.path(), segment, of_segment(end(dir.path()))) > 1_000);
}

/// As an older program left it, or a copy: the last commit may be torn, none before it.
#[test]
fn a_log_of_which_no_end_is_known_loses_its_last_commit_at_most() {
    let dir = data_dir(ONE, Ended::Killed);
    let end = end(dir.path());
    fs::remove_file(dir.path().join("log-end")).unwrap();
    let [segment] = &segments(dir.path())[..] else { panic!("more than one segment") };
    let whole = fs::read(segment).unwrap();
    let file = File::options().write(true).open(segment).unwrap();
    for at in (4096..end as usize).step_by(number("LONGSHORE_DAMAGE_STEP", 7)) {
        file.write_all_at(&[whole[at] ^ 1 << (at % 8)], at as u64).unwrap();
        is_refused(dir.path(), 1);
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    assert!(!is_refused(dir.path(), 0));
}

#[test]
fn no_segment_can_be_missing_or_damaged() {
    for ended in [Ended::InOrder, Ended::Killed] {
        let dir = data_dir(MANY, ended);
        let files = segments(dir.path());
        assert!(files.len() > 3, "{files:?}");
        for path in &files {
            let aside = dir.path().join("aside");
            fs::rename(path, &aside).unwrap();
            assert!(is_refused(dir.path(), 0) && is_reported(dir.path()), "{ended:?} {path:?} missing");
            fs::rename(&aside, path).unwrap();
        }
        for first in 0..files.len() {
            // All from here on.
            let aside = Files::default().rebuild().unwrap();
            copy(dir.path(), aside.path());
            for path in &files[first..] {
                fs::remove_file(aside.path().join("log").join(path.file_name().unwrap())).unwrap();
            }
            assert!(is_reported(aside.path()), "{ended:?} the last {} missing", files.len() - first);
            assert!(is_refused(aside.path(), 0), "{ended:?} the last {} missing", files.len() - first);
        }
        for path in [&files[1], &files[files.len() - 1]] {
            damage_file(dir.path(), path, of_segment(end_of_frames(path)));
        }
        assert!(!is_refused(dir.path(), 0));
    }
}

#[test]
fn a_damaged_word_on_the_end_is_refused_or_ignored() {
    let dir = data_dir(ONE, Ended::InOrder);
    let says_something = |at: usize| (0..48).contains(&at);
    damage_file(dir.path(), &dir.path().join("log-end"), says_something);
}
