//! The entry of a change that the database commits together with the change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longshore_engine::{ChangeNote, Engine, LogLine};
use longshore_model::Millis;

use super::entry::Entry;
use super::trail::{Trail, trail_so_far};
use super::writer::AuditLog;

/// Makes the entry of a request at a time, from its trail and the id of what it made; `None` without a key.
type EntryMaker = dyn Fn(Millis, Trail, Option<String>) -> Option<Entry> + Send + Sync;

/// The entry of a request that is committed with the first change that the request makes.
pub(crate) struct CommittedEntry {
    log: AuditLog,
    log_name: &'static str,
    engine: Engine,
    entry: Box<EntryMaker>,
    state: Mutex<EntryState>,
}

/// The id and the time of an entry, as far as they are known.
#[derive(Clone, Copy, Default)]
struct EntryState {
    /// Of the line that was made last.
    made: Option<(u64, Millis)>,
    /// Whether that line was committed.
    is_committed: bool,
}

impl CommittedEntry {
    /// The entry of a request for a log that is in the database; `None` for one in files.
    pub(crate) fn in_database(
        log: &AuditLog,
        engine: &Engine,
        entry: impl Fn(Millis, Trail, Option<String>) -> Option<Entry> + Send + Sync + 'static,
    ) -> Option<Self> {
        let log_name = log.name_in_store()?;
        let (log, engine, state) = (log.clone(), engine.clone(), Mutex::default());
        Some(Self { log, log_name, engine, entry: Box::new(entry), state })
    }

    /// The id and the time of the entry, if it was committed with a change.
    pub(crate) fn place(&self) -> Option<(u64, Millis)> {
        let state = self.state();
        state.made.filter(|_| state.is_committed)
    }

    fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeNote for CommittedEntry {
    fn line(&self, made: Option<String>) -> Option<LogLine> {
        let mut state = self.state();
        if state.is_committed {
            return None;
        }
        let at = self.engine.now();
        let mut entry = (self.entry)(at, trail_so_far(), made)?;
        entry.id = self.log.next_id(at);
        let line = Bytes::from(serde_json::to_vec(&entry).ok()?);
        state.made = Some((entry.id, at));
        Some(LogLine { log: self.log_name, no: entry.id, line })
    }

    fn committed(&self) {
        self.state().is_committed = true;
    }
}
