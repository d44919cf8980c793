//! Tests with notes of any content and logs of any bytes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use longshore_hostile::{JSON_TOKENS, cases, mutated};
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use crate::log::RotatedLog;
use crate::log_tail::tail;
use crate::mirror::mirror;
use crate::shim::ShimSpec;
use crate::worker_dir::WorkerDir;
use crate::{InstallationId, LaunchEvent, Launcher as _, ProcessLauncher, RotationLimits, ShimCommand};

/// An id of no boot of this computer, so that a mutated note names no process of this computer.
const STATE: &str = r#"{"worker":"w-1","endpoint":"abcdefghijklmn","version":1,"shim":{"pid":4000001,"start_ticks":1,"boot_id":"never"},"process":{"pid":4000002,"start_ticks":2,"boot_id":"never"}}"#;
const EXIT: &str = r#"{"code":1,"signal":null,"ran_ms":77}"#;
const ORDER: &str = r#"{"worker":"w-1","endpoint":"abcdefghijklmn","version":1,"command":["run"],"workdir":null,"server_url":"http://s","env":{"A":"b"},"private_home":true,"log":{"file_bytes_max":10,"files_max":3}}"#;

fn note(valid: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => mutated(Just(valid), JSON_TOKENS), 1 => longshore_hostile::bytes()]
}

/// Names of entries of a folder, none of which leads out of the folder.
fn file_name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>().prop_map(|byte| if byte == b'/' { b'_' } else { byte }), 1..20)
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// The names of the log files in a folder, without those of their times.
fn log_names(folder: &Path) -> Vec<OsString> {
    let mut names = names(folder);
    names.retain(|name| !name.to_str().is_some_and(|name| name.ends_with("times")));
    names
}

/// The bytes of all log files, the oldest first.
fn kept(dir: &TempDir) -> Vec<u8> {
    let mut names = log_names(dir.path());
    names.sort_by_key(|name| {
        let number = name.to_str().and_then(|name| name.strip_prefix("log.")?.parse::<u32>().ok());
        std::cmp::Reverse(number.unwrap_or(0))
    });
    names.iter().flat_map(|name| fs::read(dir.path().join(name)).unwrap()).collect()
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn notes_of_any_bytes_are_read_or_not_there(state in note(STATE), exit in note(EXIT), order in note(ORDER)) {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("state.json"), state).unwrap();
        fs::write(dir.path().join("exit.json"), exit).unwrap();
        let dir = WorkerDir::at(dir.path());
        if let Some(state) = dir.state() {
            prop_assert!(!state.shim.is_alive());
            let _ = (state.shim.pid(), state.process.map(|process| process.is_alive()));
        }
        let _ = dir.exit();
        let _ = serde_json::from_slice::<ShimSpec>(&order);
    }

    #[test]
    fn a_launcher_clears_away_any_notes_that_it_finds(notes in prop::collection::vec((note(STATE), note(EXIT)), 1..5)) {
        let dir = tempdir().unwrap();
        for (at, (state, exit)) in notes.iter().enumerate() {
            let folder = dir.path().join(format!("live/w-{at}"));
            fs::create_dir_all(folder.join("cwd")).unwrap();
            fs::write(folder.join("state.json"), state).unwrap();
            fs::write(folder.join("exit.json"), exit).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let launcher = ProcessLauncher::new(dir.path().to_owned(), ShimCommand::this_program("none"));
        let mut events = launcher.events().unwrap();
        let present = runtime.block_on(launcher.adopt(InstallationId(1))).unwrap();
        prop_assert_eq!(present, []);
        // Each worker is reported once, and none remains for the next server.
        let mut reported = Vec::new();
        while let Ok(LaunchEvent::Exited(exited)) = events.try_recv() {
            reported.push(exited.worker);
        }
        let count = reported.len();
        reported.sort();
        reported.dedup();
        prop_assert_eq!(reported.len(), count);
        prop_assert_eq!(names(&dir.path().join("live")), Vec::<OsString>::new());
    }

    #[test]
    fn the_end_of_any_log_is_short_text(newer in prop::collection::vec(any::<u8>(), 0..6_000), older in longshore_hostile::bytes()) {
        let dir = tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, &newer).unwrap();
        fs::write(dir.path().join("log.1"), &older).unwrap();
        let text = tail(&path);
        prop_assert!(text.len() <= 4 * 1024 && text.lines().count() <= 20, "{} bytes", text.len());
        let whole = [older, newer].concat();
        let last = String::from_utf8_lossy(&whole).lines().last().unwrap_or_default().to_owned();
        prop_assert!(last.ends_with(text.lines().last().unwrap_or_default()) || text.lines().last().unwrap_or_default().ends_with(&last));
    }

    #[test]
    fn a_log_keeps_the_end_of_what_was_written_and_no_more_than_it_may(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
        file_bytes_max in 0..120_u64,
        files_max in 0..5_u32,
    ) {
        let dir = tempdir().unwrap();
        let mut log = RotatedLog::open(&dir.path().join("log"), RotationLimits { file_bytes_max, files_max }).unwrap();
        for piece in &pieces {
            log.write(piece).unwrap();
        }
        let written = pieces.concat();
        let kept = kept(&dir);
        prop_assert!(written.ends_with(&kept));
        prop_assert!(kept.len() >= pieces.last().map_or(0, Vec::len));
        // A piece that is longer than the limit of a file is not split.
        let longest = pieces.iter().map(Vec::len).max().unwrap_or(0) as u64;
        prop_assert!(kept.len() as u64 <= file_bytes_max.max(longest) * u64::from(files_max.max(1)));
        let files = log_names(dir.path()).len();
        prop_assert!(files <= files_max.max(1) as usize);
        prop_assert!(names(dir.path()).len() <= 2 * files, "every file of times belongs to a log file");
    }

    #[test]
    fn a_mirror_shows_files_of_any_name(files in prop::collection::btree_set(file_name(), 0..12)) {
        let dir = tempdir().unwrap();
        let (shown, folder) = (dir.path().join("shown"), dir.path().join("folder"));
        fs::create_dir(&shown).unwrap();
        for name in files {
            // Some names are invalid for the file system.
            let _ = fs::write(shown.join(OsString::from_vec(name)), "content");
        }
        fs::write(shown.join("hidden"), "").unwrap();
        mirror(&shown, &folder, |name| name == "hidden").unwrap();
        let mut expected = names(&shown);
        expected.retain(|name| name != "hidden");
        prop_assert_eq!(names(&folder), expected.clone());
        for name in expected {
            prop_assert_eq!(fs::read(folder.join(name)).unwrap(), b"content");
        }
    }
}
