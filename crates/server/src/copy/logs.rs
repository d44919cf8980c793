//! The audit log and the logs of webhook deliveries: files of a data directory, lines of a database.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use longshore_postgres::{LogTable, NumberedLine};
use serde::Deserialize;

use crate::logs::{AUDIT, DELIVERIES};
use crate::startup_error::StartupError;

/// Lines that are written together.
const LINES_MAX: usize = 1_000;

/// The number of lines that were copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogTally {
    audit: usize,
    deliveries: usize,
}

impl fmt::Display for LogTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines of the audit log, {} of webhook deliveries", self.audit, self.deliveries)
    }
}

/// The part of an entry of the audit log that orders it.
#[derive(Deserialize)]
struct Numbered {
    id: i64,
}

/// Copies the logs of a data directory to a database.
///
/// # Errors
/// A file cannot be read, or the database cannot be reached.
pub(super) async fn to_table(dir: &Path, table: &LogTable) -> Result<LogTally, StartupError> {
    let mut tally = LogTally::default();
    let mut lines = Vec::new();
    for path in audit_files(&dir.join("audit")).map_err(|cause| failed(dir, &cause))? {
        for line in lines_of(&path)? {
            // A line that a power failure has torn is no entry.
            if let Ok(Numbered { id }) = serde_json::from_slice(&line) {
                lines.push(NumberedLine { no: id, line });
            }
        }
    }
    lines.sort_by_key(|line| line.no);
    lines.dedup_by_key(|line| line.no);
    for some in lines.chunks(LINES_MAX) {
        table.append_numbered(AUDIT, some).await?;
        tally.audit += some.len();
    }
    for (endpoint, path) in delivery_files(&dir.join("webhooks")).map_err(|cause| failed(dir, &cause))? {
        let lines = lines_of(&path)?;
        let named: Vec<(String, Vec<u8>)> =
            lines.into_iter().map(|line| (format!("{DELIVERIES}{endpoint}"), line)).collect();
        for some in named.chunks(LINES_MAX) {
            table.append(some).await?;
            tally.deliveries += some.len();
        }
    }
    Ok(tally)
}

/// Copies the logs of a database to a data directory.
///
/// # Errors
/// The database cannot be reached, or a file cannot be written.
pub(super) async fn to_files(table: &LogTable, dir: &Path) -> Result<LogTally, StartupError> {
    let mut tally = LogTally::default();
    for log in table.names().await? {
        let lines = table.lines(&log).await?;
        if log == AUDIT {
            write(&dir.join("audit"), "audit.jsonl", &lines)?;
            tally.audit += lines.len();
        } else if let Some(endpoint) = log.strip_prefix(DELIVERIES) {
            write(&dir.join("webhooks"), &format!("{endpoint}.jsonl"), &lines)?;
            tally.deliveries += lines.len();
        }
    }
    Ok(tally)
}

/// The files of an audit log.
fn audit_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let names = names_in(dir)?;
    let is_audit =
        |name: &String| name.strip_prefix("audit.").is_some_and(|rest| rest.strip_suffix("jsonl").is_some());
    Ok(names.into_iter().filter(is_audit).map(|name| dir.join(name)).collect())
}

/// The endpoints with their files, the older file of each first.
fn delivery_files(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files: Vec<(String, bool, PathBuf)> = Vec::new();
    for name in names_in(dir)? {
        let Some(stem) = name.strip_suffix(".jsonl") else { continue };
        let (endpoint, is_newer) =
            stem.strip_suffix(".old").map_or((stem, true), |endpoint| (endpoint, false));
        files.push((endpoint.to_owned(), is_newer, dir.join(&name)));
    }
    files.sort();
    Ok(files.into_iter().map(|(endpoint, _, path)| (endpoint, path)).collect())
}

/// The names in a directory; none if there is no directory.
fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn lines_of(path: &Path) -> Result<Vec<Vec<u8>>, StartupError> {
    let text = fs::read(path).map_err(|cause| failed(path, &cause))?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(<[u8]>::to_vec).collect())
}

fn write(dir: &Path, name: &str, lines: &[Vec<u8>]) -> Result<(), StartupError> {
    let path = dir.join(name);
    let written = (|| {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let mut text = lines.join(&b'\n');
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()
    })();
    written.map_err(|cause| failed(&path, &cause))
}

fn failed(path: &Path, cause: &io::Error) -> StartupError {
    StartupError::Copy(format!("cannot copy {}: {cause}", path.display()))
}
