//! The folders of fetched code and of Python environments on a computer of workers: those in use are locked, and of the others
//! the last ones stay.

use std::fs::{self, File};
use std::io;
use std::os::fd::IntoRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longshore_model::CodeHash;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

/// The beginning of the name of an environment's folder.
pub(super) const ENVIRONMENT: &str = "env-";
/// How many versions of code stay that were used last.
const VERSIONS_KEPT: usize = 20;
/// How many environments stay that were used last. One with `torch` has several gigabytes.
const ENVIRONMENTS_KEPT: usize = 5;
/// How long the folder of a download that has not ended stays.
const DRAFT_KEPT: Duration = Duration::from_hours(24);

/// Keeps a folder from being removed, by this process and the programs that it executes, until they end. Returns whether the
/// folder is there.
///
/// # Errors
///
/// The folder cannot be locked.
pub(super) fn keep(folder: &Path) -> io::Result<bool> {
    let opened = match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    flock(&opened, FlockOperation::LockShared)?;
    // It may have been removed before it was locked.
    let is_there =
        fs::metadata(folder).is_ok_and(|now| opened.metadata().is_ok_and(|it| it.ino() == now.ino()));
    if is_there {
        // A folder of another user has another time, and is removed sooner.
        let _ = opened.set_modified(SystemTime::now());
        fcntl_setfd(&opened, FdFlags::empty())?;
        // The lock ends with the last process that has the file open.
        let _ = opened.into_raw_fd();
    }
    Ok(is_there)
}

/// Removes the folders in `cache` that were used least recently and are not in use. A folder that cannot be removed stays.
pub(super) fn prune(cache: &Path) {
    let (mut versions, mut environments) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(used_at) = entry.metadata().and_then(|facts| facts.modified()) else { continue };
        if name.parse::<CodeHash>().is_ok() {
            versions.push((used_at, entry.path()));
        } else if name.starts_with(ENVIRONMENT) {
            environments.push((used_at, entry.path()));
        } else if name.starts_with('.') && used_at.elapsed().is_ok_and(|age| age > DRAFT_KEPT) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    for (mut folders, kept) in [(versions, VERSIONS_KEPT), (environments, ENVIRONMENTS_KEPT)] {
        folders.sort();
        let surplus = folders.len().saturating_sub(kept);
        folders.into_iter().take(surplus).for_each(|(_, folder)| remove(&folder));
    }
}

/// Removes a folder that no process keeps. It disappears whole.
fn remove(folder: &Path) {
    let Ok(opened) = File::open(folder) else { return };
    if flock(&opened, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let Some(name) = folder.file_name() else { return };
    let draft: PathBuf = folder.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    if fs::rename(folder, &draft).is_ok() {
        let _ = fs::remove_dir_all(draft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_folders_and_those_in_use_stay() {
        let dir = tempfile::tempdir().unwrap();
        let names = (0..VERSIONS_KEPT + 3).map(|at| format!("{at:064x}"));
        let environments = (0..=ENVIRONMENTS_KEPT).map(|at| format!("{ENVIRONMENT}{at:016x}"));
        let old = SystemTime::now() - DRAFT_KEPT * 3;
        let all: Vec<PathBuf> = names.chain(environments).map(|name| dir.path().join(name)).collect();
        for (at, folder) in all.iter().enumerate() {
            fs::create_dir_all(folder.join("inside")).unwrap();
            File::open(folder).unwrap().set_modified(old + Duration::from_secs(at as u64)).unwrap();
        }
        for other in ["theirs", ".draft.1"] {
            fs::create_dir(dir.path().join(other)).unwrap();
            File::open(dir.path().join(other)).unwrap().set_modified(old).unwrap();
        }
        // The first is locked by another process, the second was used last.
        let locked = File::open(&all[0]).unwrap();
        flock(&locked, FlockOperation::LockShared).unwrap();
        assert!(keep(&all[1]).unwrap());
        prune(dir.path());
        let gone: Vec<usize> = (0..all.len()).filter(|at| !all[*at].exists()).collect();
        assert_eq!(gone, [2, 3, VERSIONS_KEPT + 3]);
        assert!(dir.path().join("theirs").exists() && !dir.path().join(".draft.1").exists());
        assert!(!keep(&all[2]).unwrap(), "it is fetched again");
    }
}
