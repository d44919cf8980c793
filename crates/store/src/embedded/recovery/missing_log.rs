//! Refuses a data directory whose log is missing: a server that starts on it would have no jobs.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::embedded::log::names;

/// The directories that a server creates after its log, and in which it stores data.
const AFTER_LOG: [&str; 5] = ["audit", "blobs", "code", "volumes", "webhooks"];

/// The file that makes a directory a backup.
const BACKUP: &str = "backup.json";

/// Returns why the directory `dir` cannot be used, to be put behind its name; `None` if it has a log, or none is missing.
///
/// An empty directory of [`AFTER_LOG`] is ignored: an operator may mount a disk there before the first start.
///
/// # Errors
/// If a directory cannot be read.
pub(super) fn missing_log(dir: &Path) -> io::Result<Option<String>> {
    let log = dir.join(names::LOG);
    if dir.join(names::END).exists() || !names::numbers_in(&log)?.is_empty() {
        return Ok(None);
    }
    if dir.join(BACKUP).exists() {
        return Ok(Some(format!(
            "has a `{BACKUP}`, so it is a backup and no data directory; create a data directory from it with \
             `longshore restore {} --data-dir NEW`",
            dir.display()
        )));
    }
    let mut found = Vec::new();
    for name in AFTER_LOG {
        if has_entries(&dir.join(name))? {
            found.push(format!("`{name}/`"));
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "has no log, but {}: a server would start without the jobs that were acknowledged; put `{}/` and `{}` back, \
         restore a backup into another directory with `longshore restore`, set `store` if the jobs are in a database, or \
         give an empty directory",
        found.join(", "),
        names::LOG,
        names::END
    )))
}

/// Whether the directory has an entry, other than hidden files and what a file system creates.
fn has_entries(dir: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        entries => entries?,
    };
    for entry in entries {
        if !is_ignored(&entry?.file_name()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_ignored(name: &OsStr) -> bool {
    name == "lost+found" || name.as_encoded_bytes().starts_with(b".")
}
