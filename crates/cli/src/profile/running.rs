//! Addresses and keys of running `longshore dev` servers: one file per port in `~/.config/longshore/dev`.
//!
//! `dev` holds a lock on its file while it runs and removes the file when it ends. A file that is not locked belongs to
//! a killed `dev`: its port may be another program's now, so the file is ignored.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::Profile;

/// Extension of the files. A draft has another one until it is locked.
const EXTENSION: &str = "toml";

/// The file of this process's server. Dropping the value removes the file.
#[derive(Debug)]
pub(crate) struct RunningProfile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl RunningProfile {
    /// Stores the profile of the server at `port` in `folder`, readable by its owner only. The caller has bound the
    /// port, so no other running `dev` of this computer owns the file.
    pub(crate) fn store(folder: &Path, port: u16, profile: &Profile) -> io::Result<Self> {
        let text = toml::to_string(profile).map_err(io::Error::other)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{port}.{EXTENSION}"));
        let draft = path.with_extension("new");
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        // Locked before the rename, so that a reader never finds the file without a lock.
        file.try_lock()?;
        file.write_all(text.as_bytes())?;
        fs::rename(draft, &path)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for RunningProfile {
    fn drop(&mut self) {
        // The lock ends with the process, so a file that cannot be removed is ignored from then on.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the profiles of the servers that run, ordered by address. An unreadable file counts as none.
pub(crate) fn running(folder: &Path) -> Vec<Profile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut profiles: Vec<Profile> = entries.filter_map(|entry| live(&entry.path())).collect();
    profiles.sort_by(|one, other| one.url.cmp(&other.url));
    profiles
}

/// Returns the profile in the file if a process holds its lock.
fn live(path: &Path) -> Option<Profile> {
    if path.extension()? != EXTENSION {
        return None;
    }
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => toml::from_str(&io::read_to_string(file).ok()?).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn profile(url: &str) -> Profile {
        Profile { url: url.into(), api_key: "k".into(), ca_file: None }
    }

    #[test]
    fn two_servers_have_a_file_each_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("longshore/dev");
        let one = RunningProfile::store(&folder, 8080, &profile("http://127.0.0.1:8080")).unwrap();
        let other = RunningProfile::store(&folder, 8081, &profile("http://127.0.0.1:8081")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&one.path)), (0o700, 0o600));
        assert_eq!(running(&folder), [profile("http://127.0.0.1:8080"), profile("http://127.0.0.1:8081")]);
        drop(one);
        assert_eq!(running(&folder), [profile("http://127.0.0.1:8081")]);
        drop(other);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_a_killed_process_is_ignored_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("8080.toml"), "url = \"http://old\"\napi_key = \"old\"\n").unwrap();
        assert!(running(dir.path()).is_empty());
        let ours = RunningProfile::store(dir.path(), 8080, &profile("http://new")).unwrap();
        assert_eq!(running(dir.path()), [profile("http://new")]);
        drop(ours);
    }
}
