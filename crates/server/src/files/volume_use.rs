//! How much of the disk each network volume takes.
//!
//! A volume can have millions of files. So a thread of its own measures, and requests get what it measured last.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longshore_http::VolumeUse;
use longshore_model::{Millis, VolumeId};

/// How long a measurement holds.
const HOLDS: Duration = Duration::from_mins(5);
/// The unit in which systems count the space of a file.
const BYTES_PER_BLOCK: u64 = 512;

/// The measurements of the volumes in one folder.
pub(super) struct VolumeUses {
    folder: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    measured: HashMap<VolumeId, (Instant, VolumeUse)>,
    /// The volumes to measure, in the order in which they were asked for.
    wanted: VecDeque<VolumeId>,
    /// Whether a thread measures the wanted volumes.
    is_measuring: bool,
}

impl VolumeUses {
    /// The volumes whose directories are in `folder`.
    pub(super) fn of(folder: PathBuf) -> Self {
        Self { folder, state: Arc::default() }
    }

    /// Returns the last measurement of a volume; `None` before the first one. Begins another one if it no longer holds.
    pub(super) fn get(&self, volume: &VolumeId) -> Option<VolumeUse> {
        let mut state = lock(&self.state);
        let known = state.measured.get(volume).copied();
        if known.is_none_or(|(at, _)| at.elapsed() >= HOLDS) && !state.wanted.contains(volume) {
            state.wanted.push_back(*volume);
            if !state.is_measuring {
                state.is_measuring = true;
                let (folder, shared) = (self.folder.clone(), Arc::clone(&self.state));
                // A detached thread: no request depends on it.
                std::thread::spawn(move || measure_wanted(&folder, &shared));
            }
        }
        known.map(|(_, measured)| measured)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures until no volume is wanted.
fn measure_wanted(folder: &Path, state: &Mutex<State>) {
    loop {
        let mut locked = lock(state);
        let Some(volume) = locked.wanted.front().copied() else {
            locked.is_measuring = false;
            return;
        };
        drop(locked);
        let bytes = bytes_below(&folder.join(volume.as_str()));
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let measured = VolumeUse { bytes, measured_at: Millis(at.as_millis() as u64) };
        let mut locked = lock(state);
        locked.wanted.pop_front();
        locked.measured.insert(volume, (Instant::now(), measured));
    }
}

/// The space of the files below a folder. A file with several names counts once. What is removed meanwhile, or cannot be
/// read, counts as nothing, as does what a link points to.
fn bytes_below(folder: &Path) -> u64 {
    let (mut bytes, mut folders, mut linked) = (0, vec![folder.to_owned()], HashSet::new());
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for metadata in entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))) {
            let (path, metadata) = metadata;
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.nlink() == 1 || linked.insert((metadata.dev(), metadata.ino())) {
                bytes += metadata.blocks() * BYTES_PER_BLOCK;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_takes_the_space_of_its_files_once() {
        let dir = tempfile::tempdir().unwrap();
        let volume = VolumeId::mint(1);
        let folder = dir.path().join(volume.as_str());
        fs::create_dir_all(folder.join("models/large")).unwrap();
        fs::write(folder.join("models/large/weights"), vec![1; 1_000_000]).unwrap();
        fs::hard_link(folder.join("models/large/weights"), folder.join("again")).unwrap();
        std::os::unix::fs::symlink(dir.path(), folder.join("elsewhere")).unwrap();
        let measured = bytes_below(&folder);
        assert!((1_000_000..1_200_000).contains(&measured), "{measured}");
        assert_eq!(bytes_below(&dir.path().join("missing")), 0);

        let uses = VolumeUses::of(dir.path().to_owned());
        assert_eq!(uses.get(&volume), None, "the first request does not wait");
        let until = Instant::now() + Duration::from_secs(20);
        let found = loop {
            match uses.get(&volume) {
                Some(found) => break found,
                None => assert!(Instant::now() < until, "the volume is measured"),
            }
            std::thread::yield_now();
        };
        assert!(found.bytes == measured && found.measured_at > Millis(0), "{found:?}");
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(uses.get(&volume), Some(found), "a measurement holds for 5 minutes");
    }
}
