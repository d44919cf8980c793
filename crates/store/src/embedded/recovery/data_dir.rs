//! Creates, locks and checks the data directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::missing_log::missing_log;
use crate::StoreError;
use crate::embedded::log::names;

/// Limit of the wait for a lock. A killed server may have forked a process, which holds the server's open files until it
/// executes another program.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A data directory that is locked for this process until the value is dropped.
#[derive(Debug)]
pub(in crate::embedded) struct DataDir {
    dir: PathBuf,
    // The kernel releases the locks when the files are closed, also after a kill.
    locks: [File; 2],
}

impl Drop for DataDir {
    /// Unlocks the files explicitly: a process that was just forked has them open too, so closing them here is not
    /// enough.
    fn drop(&mut self) {
        for lock in &self.locks {
            // The lock is released with the file at the latest.
            let _ = lock.unlock();
        }
    }
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]; the text says what to do.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let locks = make_and_lock(dir)?;
        if dir.join("longshore.db").exists() {
            return Err(unusable(
                dir,
                "holds a `longshore.db`, which this version cannot read: it was made before the first release, or by \
                 another program; move that file away or choose another directory",
            ));
        }
        let unreadable = |error: io::Error| unusable(dir, format!("cannot be read: {error}"));
        if let Some(what) = missing_log(dir).map_err(unreadable)? {
            return Err(unusable(dir, what));
        }
        let data_dir = Self { dir: dir.to_owned(), locks };
        // The directory entries must be durable before the first commit is.
        let log = data_dir.log();
        let made = make_private(&log).and_then(|()| sync(&log)).and_then(|()| sync(dir));
        made.map_err(|error| not_writable(dir, &error))?;
        Ok(data_dir)
    }

    /// Locks an existing directory against servers, without changing a file. The lock ends with the returned file.
    pub fn lock_as_it_is(dir: &Path) -> Result<File, StoreError> {
        let file = File::open(dir).map_err(|error| unusable(dir, format!("cannot be read: {error}")))?;
        match wait_for_lock(&file) {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(unusable(dir, "is in use by a server; stop that one, or take a copy of the directory"))
            }
            Err(TryLockError::Error(error)) => Err(unusable(dir, format!("cannot be locked: {error}"))),
        }
    }

    /// Returns the path of the log's directory.
    pub fn log(&self) -> PathBuf {
        self.dir.join(names::LOG)
    }

    /// Opens the file of [`names::COPY_LOCK`], creating it if it is missing.
    pub fn copy_lock(&self) -> Result<File, StoreError> {
        let file = private_file(&self.log().join(names::COPY_LOCK));
        file.map_err(|error| not_writable(&self.dir, &error))
    }

    /// Converts an error of opening the log into the text that the operator reads at the server's start.
    pub fn refuse(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unusable(what) => unusable(&self.dir, what),
            StoreError::Corrupt(what) => unusable(&self.dir, format!("is damaged: {what}")),
            StoreError::Full(what) => {
                unusable(&self.dir, format!("cannot be opened: the disk is full: {what}"))
            }
            other => unusable(&self.dir, format!("cannot be opened: {other}; check its disk")),
        }
    }
}

/// A data directory without a log, locked for this process until the value is dropped. The rows are in a database.
#[derive(Debug)]
pub struct HeldDataDir {
    _dir: DataDir,
}

impl HeldDataDir {
    /// Creates the directory if it is missing, and locks it. Blocks for 2 s at most, while another process has the lock.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the directory cannot be used or has a log, whose jobs a server with another store would not
    /// serve. The text says what to do.
    pub fn hold(dir: &Path) -> Result<Self, StoreError> {
        let held = DataDir { dir: dir.to_owned(), locks: make_and_lock(dir)? };
        let has_log = [names::LOG, names::END].into_iter().any(|name| dir.join(name).exists());
        if has_log {
            return Err(unusable(
                dir,
                "has the log of an embedded store, whose jobs are not in the database; name another directory, or serve these \
                 jobs without the setting `store`",
            ));
        }
        Ok(Self { _dir: held })
    }
}

fn make_and_lock(dir: &Path) -> Result<[File; 2], StoreError> {
    let cannot_create = |error: io::Error| {
        let advice = advice(&error, "choose a directory that this user can write to");
        unusable(dir, format!("cannot be created: {error}; {advice}"))
    };
    make_private(dir).map_err(cannot_create)?;
    lock(dir)
}

/// Creates a directory for this user alone. It will have payloads, environments and the secret of worker tokens, and other
/// users may read its parent.
fn make_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Locks the file `lock`, which contains the owner's process id, and the directory itself: operators sometimes remove
/// `lock` as a left-over.
fn lock(dir: &Path) -> Result<[File; 2], StoreError> {
    let not_writable = |error: io::Error| not_writable(dir, &error);
    let mut file = private_file(&dir.join("lock")).map_err(not_writable)?;
    let opened_dir = File::open(dir).map_err(not_writable)?;
    match wait_for_lock(&file).and_then(|()| wait_for_lock(&opened_dir)) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            // The process id is only for the message, so a failed read is ignored.
            let _ = file.read_to_string(&mut owner);
            let owner = owner.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
            return Err(unusable(
                dir,
                format!("is in use by another server{owner}; stop that one or choose another directory"),
            ));
        }
        Err(TryLockError::Error(error)) => {
            return Err(unusable(
                dir,
                format!("cannot be locked: {error}; choose a directory on a local disk"),
            ));
        }
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(not_writable)?;
    Ok([file, opened_dir])
}

fn wait_for_lock(file: &File) -> Result<(), TryLockError> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => thread::sleep(LOCK_POLL),
            outcome => return outcome,
        }
    }
}

fn not_writable(dir: &Path, error: &io::Error) -> StoreError {
    let advice = advice(error, "give this user the right to write or choose another directory");
    unusable(dir, format!("is not writable: {error}; {advice}"))
}

/// Returns what to do about an I/O error.
fn advice(error: &io::Error, otherwise: &'static str) -> &'static str {
    const EIO: i32 = 5;
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space on its disk",
        _ if error.raw_os_error() == Some(EIO) => "check its disk",
        _ => otherwise,
    }
}

fn unusable(dir: &Path, what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("the data directory {} {what}", dir.display()))
}
