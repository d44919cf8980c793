//! Opening a data folder: one server at a time, and a clear word when something is in the way.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::embedded::log::names;

/// How long a lock is waited for. A server that was killed may have been starting a process, which has the server's
/// files until it runs a program of its own.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A data folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub(in crate::embedded) struct DataDir {
    dir: PathBuf,
    // The system drops the locks with the files, also when the process is killed.
    locks: [File; 2],
}

impl Drop for DataDir {
    /// A process that is just being started has the file, too: to close it here would not be enough.
    fn drop(&mut self) {
        for lock in &self.locks {
            // It goes with the file at the latest.
            let _ = lock.unlock();
        }
    }
}

impl DataDir {
    /// Creates the folder if need be, and locks it.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let cannot_create = |error: io::Error| {
            let advice = advice(&error, "choose a folder that this user can write to");
            unusable(dir, format!("cannot be created: {error}; {advice}"))
        };
        make_private(dir).map_err(cannot_create)?;
        let locks = lock(dir)?;
        if dir.join("longshore.db").exists() {
            return Err(unusable(
                dir,
                "holds a `longshore.db`, which this version cannot read: it was made before the first release, or by \
                 another program; move that file away or choose another folder",
            ));
        }
        let folder = Self { dir: dir.to_owned(), locks };
        // What names it now must be as durable as what comes.
        let made = make_private(&folder.log()).and_then(|()| sync(&folder.log())).and_then(|()| sync(dir));
        made.map_err(|error| not_writable(dir, &error))?;
        Ok(folder)
    }

    /// Keeps servers away from a folder that is there, without changing anything in it.
    pub fn lock_as_it_is(dir: &Path) -> Result<File, StoreError> {
        let folder = File::open(dir).map_err(|error| unusable(dir, format!("cannot be read: {error}")))?;
        match wait_for_lock(&folder) {
            Ok(()) => Ok(folder),
            Err(TryLockError::WouldBlock) => {
                Err(unusable(dir, "is in use by a server; stop that one, or take a copy of the folder"))
            }
            Err(TryLockError::Error(error)) => Err(unusable(dir, format!("cannot be locked: {error}"))),
        }
    }

    /// The folder of the log in it.
    pub fn log(&self) -> PathBuf {
        self.dir.join(names::LOG)
    }

    /// The file that keeps segments where they are, see [`names::COPY_LOCK`].
    pub fn copy_lock(&self) -> Result<File, StoreError> {
        let hold = private_file(&self.log().join(names::COPY_LOCK));
        hold.map_err(|error| not_writable(&self.dir, &error))
    }

    /// Why the log cannot be opened, in words for whoever starts the server.
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

/// Payloads, environments and the secret that tokens are made from are in it, and the folder above may be one that
/// others can look into.
fn make_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Locks the file `lock`, which says who has the folder, and the folder itself: files are sometimes removed by people who
/// take them for left-overs.
fn lock(dir: &Path) -> Result<[File; 2], StoreError> {
    let not_writable = |error: io::Error| not_writable(dir, &error);
    let mut file = private_file(&dir.join("lock")).map_err(not_writable)?;
    let folder = File::open(dir).map_err(not_writable)?;
    match wait_for_lock(&file).and_then(|()| wait_for_lock(&folder)) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            // Who it is only helps the reader of the message.
            let _ = file.read_to_string(&mut owner);
            let owner = owner.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
            return Err(unusable(
                dir,
                format!("is in use by another server{owner}; stop that one or choose another folder"),
            ));
        }
        Err(TryLockError::Error(error)) => {
            return Err(unusable(dir, format!("cannot be locked: {error}; choose a folder on a local disk")));
        }
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(not_writable)?;
    Ok([file, folder])
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
    let advice = advice(error, "give this user the right to write or choose another folder");
    unusable(dir, format!("is not writable: {error}; {advice}"))
}

/// What to do about an error of the system.
fn advice(error: &io::Error, otherwise: &'static str) -> &'static str {
    const EIO: i32 = 5;
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space on its disk",
        _ if error.raw_os_error() == Some(EIO) => "check its disk",
        _ => otherwise,
    }
}

fn unusable(dir: &Path, what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("the data folder {} {what}", dir.display()))
}
