//! The minutes of the history as lines in the database, so that a server that goes on with the rows shows them, too.
//!
//! Each data directory has a log of its own there, to which its server appends each minute. A server that starts to decide adds what
//! the logs of others have to its files. Nothing depends on these lines.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_history::{History, MINUTE_MS, MinuteCopy};
use longshore_postgres::{LogTable, NumberedLine};
use longshore_store::StoreError;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Mutex;

/// What the name of each log begins with; the data directory's random name follows.
const LOGS: &str = "history/";
/// The file with the random name of the data directory.
const NAME_FILE: &str = "name";
/// The file with the last line of each log that was added to the files.
const ADDED_FILE: &str = "added.json";
/// Numbers of lines in a minute: servers that start again within one end more than one minute in it.
const LINES_OF_MINUTE: u64 = 1_024;
/// How long lines are kept, in minutes: as long as minutes in files.
const MINUTES_KEPT: u64 = 30 * MINUTES_OF_DAY;
const MINUTES_OF_DAY: u64 = 86_400_000 / MINUTE_MS;
/// Lines that are read together.
const PAGE: i64 = 500;

/// The minutes in the database.
pub(crate) struct SharedHistory {
    table: Arc<LogTable>,
    dir: PathBuf,
    /// The log of this data directory.
    log: String,
    bytes_max: u64,
    sent: Mutex<Sent>,
}

/// What the log of this data directory has.
#[derive(Default)]
struct Sent {
    /// The number of its last line; `None` if it must be asked for.
    last_no: Option<u64>,
    /// An append has failed, so that its lines may be there.
    is_unsure: bool,
    /// The day in which old lines were last removed.
    trimmed_on: Option<u64>,
}

impl SharedHistory {
    /// The minutes in this table, for the history in a folder, which must exist. Blocks. The log of each data directory has about
    /// `bytes_max` bytes at most.
    ///
    /// # Errors
    ///
    /// The name of the data directory cannot be read or written.
    pub(crate) fn open(table: Arc<LogTable>, dir: &Path, bytes_max: u64) -> io::Result<Self> {
        let path = dir.join(NAME_FILE);
        let name = match fs::read_to_string(&path) {
            Ok(name) if !name.is_empty() => name,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {
                let mut random = [0; 8];
                SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
                let name = const_hex::encode(random);
                replace(&path, name.as_bytes())?;
                name
            }
        };
        Ok(Self {
            table,
            dir: dir.to_owned(),
            log: format!("{LOGS}{name}"),
            bytes_max,
            sent: Mutex::default(),
        })
    }

    /// Appends the minutes that are over. Those that could not be appended are tried again with the next ones.
    pub(crate) async fn send(&self, history: &History) {
        let copies = history.take_copies();
        if copies.is_empty() {
            return;
        }
        let mut sent = self.sent.lock().await;
        if let Err(error) = self.append(&mut sent, &copies).await {
            tracing::warn!(%error, "history not copied to the database, retrying");
            *sent = Sent { last_no: None, is_unsure: true, ..*sent };
            history.return_copies(copies);
        }
    }

    async fn append(&self, sent: &mut Sent, copies: &[MinuteCopy]) -> Result<(), StoreError> {
        let mut last_no = match sent.last_no {
            Some(last_no) => last_no,
            None => self.table.last_no(&self.log).await?.map_or(0, i64::unsigned_abs),
        };
        let mut lines = Vec::new();
        for MinuteCopy { minute, bytes } in copies {
            let first_no = minute.saturating_mul(LINES_OF_MINUTE);
            if sent.is_unsure && first_no <= last_no {
                continue;
            }
            last_no = first_no.max(last_no + 1);
            lines.push(NumberedLine { no: last_no as i64, line: bytes.clone() });
        }
        self.table.append_numbered(&self.log, &lines).await?;
        (sent.last_no, sent.is_unsure) = (Some(last_no), false);
        let minute = last_no / LINES_OF_MINUTE;
        let day = minute / MINUTES_OF_DAY;
        if sent.trimmed_on != Some(day) {
            let oldest = minute.saturating_sub(MINUTES_KEPT).saturating_mul(LINES_OF_MINUTE);
            self.table.remove_before(&self.log, oldest as i64).await?;
            self.table.trim(&self.log, self.bytes_max).await?;
            sent.trimmed_on = Some(day);
        }
        Ok(())
    }

    /// Adds the minutes of other data directories to the files of this one, the newest first.
    pub(crate) async fn add_others(&self, history: &Arc<History>) {
        if let Err(error) = self.try_to_add_others(history).await {
            tracing::warn!(%error, "history of other servers not read");
        }
    }

    async fn try_to_add_others(&self, history: &Arc<History>) -> io::Result<()> {
        let path = self.dir.join(ADDED_FILE);
        // Without the file, minutes that are in open logs are found there.
        let mut added: BTreeMap<String, i64> =
            fs::read(&path).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let logs = self.table.names().await.map_err(io::Error::other)?;
        for log in logs.into_iter().filter(|log| log.starts_with(LOGS) && *log != self.log) {
            let known = added.get(&log).copied().unwrap_or_default();
            if let Some(newest) = self.add(history, &log, known).await? {
                added.insert(log, newest);
                replace(&path, &serde_json::to_vec(&added)?)?;
            }
        }
        Ok(())
    }

    /// Adds the lines of a log after the one with the number `known`. Returns the number of the last line; `None` without one.
    async fn add(&self, history: &Arc<History>, log: &str, known: i64) -> io::Result<Option<i64>> {
        let (mut before, mut newest) = (i64::MAX, None);
        loop {
            let mut page = self.table.newest(log, before, PAGE).await.map_err(io::Error::other)?;
            let is_last = (page.len() as i64) < PAGE || page.last().is_some_and(|line| line.no <= known);
            page.retain(|line| line.no > known);
            let Some(oldest) = page.last() else { return Ok(newest) };
            before = oldest.no;
            newest = newest.or(page.first().map(|line| line.no));
            let lines: Vec<Vec<u8>> = page.into_iter().rev().map(|line| line.line).collect();
            let history = Arc::clone(history);
            let adding = tokio::task::spawn_blocking(move || history.add_copies(&lines));
            adding.await.map_err(io::Error::other)??;
            if is_last {
                return Ok(newest);
            }
        }
    }
}

/// Writes a small file, in place of an earlier one.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    fs::write(&draft, content)?;
    fs::rename(&draft, path)
}
