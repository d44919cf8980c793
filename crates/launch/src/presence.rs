//! Whether a server runs that uses the workers' folder.
//!
//! A server holds a lock on a file while it runs; the kernel releases the lock at any exit. So neither a wrong clock nor a
//! suspended server counts as an absence, and a restarted server is present once it has the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often the lock is tried: a shim that checks the lock holds it for a moment.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Holds the lock until the returned file is dropped.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
    for _ in 0..TRIES {
        match file.try_lock_shared() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("another program holds its lock"))
}

/// Whether a server runs; also if the lock cannot be checked.
fn is_held(path: &Path) -> bool {
    match OpenOptions::new().read(true).write(true).open(path) {
        // Closing the file releases the lock.
        Ok(file) => file.try_lock().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn is_locked_elsewhere(file: &File) -> bool {
    if file.try_lock().is_err() {
        return true;
    }
    let _ = file.unlock();
    false
}

/// How long the server has been absent, as far as it was observed.
#[derive(Debug)]
pub(crate) struct Absence {
    path: PathBuf,
    /// The file that was first at the path: it is at another path after the data directory was moved.
    file: Option<File>,
    since: Option<Instant>,
}

impl Absence {
    /// Observes the server that locks the file at `path`.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { file: OpenOptions::new().read(true).write(true).open(&path).ok(), path, since: None }
    }

    /// Observes now. `None` while the server runs.
    pub(crate) fn look(&mut self, now: Instant) -> Option<Duration> {
        let moved = self.file.as_ref().is_some_and(is_locked_elsewhere);
        self.note(moved || is_held(&self.path), now)
    }

    fn note(&mut self, is_there: bool, now: Instant) -> Option<Duration> {
        self.since = if is_there { None } else { self.since.or(Some(now)) };
        self.lasts(now)
    }

    /// The length of the absence; `None` while the server runs.
    pub(crate) fn lasts(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits: a process that another test starts meanwhile has a copy of each open file until it runs its program.
    fn eventually(mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !condition() {
            assert!(Instant::now() < deadline, "not within a minute");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_server_is_there_until_it_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("workers/server.lock");
        assert!(!is_held(&path));
        let (one, other) = (hold(&path).unwrap(), hold(&path).unwrap());
        assert!(is_held(&path));
        drop(one);
        assert!(is_held(&path), "its successor is there");
        drop(other);
        eventually(|| !is_held(&path));
        assert!(path.exists());
    }

    #[test]
    fn a_server_whose_folder_was_moved_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (before, after) = (dir.path().join("before"), dir.path().join("after"));
        let lock = |folder: &Path| folder.join("server.lock");
        drop(hold(&lock(&before)).unwrap());
        let (mut absence, now) = (Absence::of(lock(&before)), Instant::now());
        fs::rename(&before, &after).unwrap();
        eventually(|| absence.look(now).is_some());
        let held = hold(&lock(&after)).unwrap();
        assert_eq!(absence.look(now), None);
        drop(held);
        eventually(|| absence.look(now).is_some());
        let held = hold(&lock(&before)).unwrap();
        assert_eq!(absence.look(now), None, "another one took its place");
        drop(held);
        eventually(|| absence.look(now).is_some());
    }

    #[test]
    fn an_absence_begins_anew_whenever_the_server_was_back() {
        let (mut absence, now) = (Absence::of(PathBuf::new()), Instant::now());
        let s = Duration::from_secs;
        assert_eq!(absence.note(true, now), None);
        assert_eq!(absence.note(false, now + s(1)), Some(s(0)));
        assert_eq!(absence.note(false, now + s(500)), Some(s(499)));
        assert_eq!(absence.note(true, now + s(501)), None);
        assert_eq!(absence.note(false, now + s(900)), Some(s(0)));
    }
}
