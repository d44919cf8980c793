//! Opening a data folder: one server at a time, one format, and a clear word when something is in the way.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, Row};

use super::doubt::write_log_again;
use super::schema::{APPLICATION_ID, FORMAT_VERSION, UPGRADES};
use crate::StoreError;

/// How long a statement waits for somebody who looks into the file with another program.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of a writing connection: what the biggest group changes has room in it.
const CACHE_KIB: i64 = 16 * 1024;
/// Statements kept ready per connection: all that this crate has.
const STATEMENTS_MAX: usize = 64;
/// A log file longer than this is cut when it starts over.
const WAL_BYTES_KEPT: i64 = 64 << 20;

/// A data folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    /// The database file in it.
    pub database: PathBuf,
    /// The same, open. Closing any descriptor of this file drops the locks that `SQLite` has on it, so this one
    /// is closed last.
    pub file: Arc<File>,
    // The system drops the lock with the file, also when the process is killed.
    _lock: File,
}

impl Folder {
    /// Creates the folder if need be, locks it, and brings its database to the present format.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| {
            let advice = advice(&error, "choose a folder that this user can write to");
            unusable(dir, format!("cannot be created: {error}; {advice}"))
        })?;
        let lock = lock(dir)?;
        let database = dir.join("longshore.db");
        let file = private(&database).map_err(|error| not_writable(dir, &error))?;
        let folder = Self { database, file: Arc::new(file), _lock: lock };
        folder.make_up_for_failed_syncs().map_err(|error| {
            let advice = advice(&error, "check its disk");
            unusable(dir, format!("has files that cannot be synced: {error}; {advice}"))
        })?;
        let mut db = connect(&folder.database).map_err(|error| not_opened(dir, &error))?;
        bring_up_to_date(dir, &mut db)?;
        // The file's name must be as durable as what is in it.
        sync_folder_of(&folder.database)?;
        Ok(folder)
    }

    /// The server before may have been killed after a sync had failed.
    fn make_up_for_failed_syncs(&self) -> io::Result<()> {
        if self.file.metadata()?.len() == 0 {
            // `SQLite` throws the journal of an empty database away, so it must be empty on disk too.
            self.file.set_len(0)?;
            self.file.sync_all()?;
        }
        match File::options().read(true).write(true).open(log_of(&self.database)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            log => log.and_then(|log| write_log_again(&log)),
        }
    }
}

/// The write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    let mut name = database.to_owned().into_os_string();
    name.push("-wal");
    name.into()
}

/// Makes the names of the files durable.
pub(super) fn sync_folder_of(database: &Path) -> Result<(), StoreError> {
    let folder = File::open(database.parent().unwrap_or(database));
    folder.and_then(|folder| folder.sync_all()).map_err(|error| StoreError::Io(error.to_string()))
}

/// Payloads, environments and the secret that tokens are made from are in it, and the folder may be one that
/// others can look into. The files that belong to the database get its mode.
fn private(database: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(database)
}

/// A connection that may write.
pub(super) fn connect(database: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open(database)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    db.pragma_update(None, "cache_size", -CACHE_KIB)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    // The writer decides when to checkpoint.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(db)
}

/// A connection that leaves the log alone when it is closed.
pub(super) fn connect_beside(database: &Path) -> rusqlite::Result<Connection> {
    let db = connect(database)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let not_writable = |error: io::Error| not_writable(dir, &error);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(not_writable)?;
    match file.try_lock() {
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
    Ok(file)
}

/// Checks whose file it is and of which format, then carries out the upgrades that are missing.
fn bring_up_to_date(dir: &Path, db: &mut Connection) -> Result<(), StoreError> {
    let failed = |error| not_opened(dir, &error);
    let pragma = |db: &Connection, name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma(db, "application_id").map_err(failed)?;
    let version = pragma(db, "user_version").map_err(failed)?;
    let tables: i64 =
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    if application != APPLICATION_ID && (application != 0 || version != 0 || tables != 0) {
        return Err(unusable(
            dir,
            "holds a `longshore.db` that another program wrote; move that file away or choose another folder",
        ));
    }
    if version > FORMAT_VERSION {
        return Err(unusable(
            dir,
            format!(
                "was written by a newer version (format {version}, this program knows up to {FORMAT_VERSION}); \
                 install that version or restore a backup from before the upgrade"
            ),
        ));
    }
    let done = usize::try_from(version)
        .map_err(|_| unusable(dir, format!("has the unknown format {version}; restore it from a backup")))?;
    let mut mode = String::new();
    // To the end: the change is only then carried out, and can fail.
    let read_mode = |row: &Row<'_>| row.get(0).map(|read| mode = read);
    db.pragma(None, "journal_mode", "WAL", read_mode).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(unusable(
            dir,
            "is on a file system without shared memory for files; choose a folder on a local disk",
        ));
    }
    upgrade(db, &UPGRADES[done..]).map_err(failed)
}

/// All steps or none.
fn upgrade(db: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let transaction = db.transaction()?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
    transaction.commit()
}

fn not_opened(dir: &Path, error: &rusqlite::Error) -> StoreError {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "its `longshore.db` is damaged or no database at all; restore it from a backup or move it away"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "give this user the right to write to the folder and the files in it"
        }
        Some(ErrorCode::DiskFull) => "free some space on its disk",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds `longshore.db` open for writing; close it"
        }
        _ => "check its disk",
    };
    unusable(dir, format!("cannot be opened: {error}; {advice}"))
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
