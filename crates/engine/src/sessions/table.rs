//! Sessions and codes in memory.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_model::{ConsoleCode, ConsoleSession, JsonRowKind, Millis};

use super::open_session::OpenSession;
use crate::catalog::json_rows::{StoredJson, decoded};

/// Most sessions, and most codes.
const ALL_MAX: usize = 1_000;
/// Most sessions of one key.
const SESSIONS_OF_KEY_MAX: usize = 20;
/// Most codes of one key.
const CODES_OF_KEY_MAX: usize = 10;

/// The sessions and codes in memory. What it has is durable.
#[derive(Default)]
pub(super) struct SessionTable {
    by_hash: HashMap<String, Arc<OpenSession>>,
    codes: HashMap<String, ConsoleCode>,
}

impl SessionTable {
    /// The sessions and codes in stored rows. A corrupt row is logged and left out, and so is one under another id than its
    /// own: the end of its session would delete another row, and the session would be back after a restart.
    pub(super) fn load(sessions: &[StoredJson], codes: &[StoredJson]) -> Self {
        let mut table = Self::default();
        for row in sessions {
            let session: Option<ConsoleSession> = decoded(JsonRowKind::ConsoleSession, row);
            if let Some(session) = session.filter(|session| has_id(row, &session.id)) {
                table.put(session);
            }
        }
        for row in codes {
            let code: Option<ConsoleCode> = decoded(JsonRowKind::ConsoleCode, row);
            if let Some(code) = code.filter(|code| has_id(row, &code.hash)) {
                table.put_code(code);
            }
        }
        table
    }

    /// Returns all sessions, in no order. Some may have expired.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Arc<OpenSession>> {
        self.by_hash.values()
    }

    /// The session whose cookie has this hash.
    pub(super) fn by_hash(&self, hash: &str) -> Option<&Arc<OpenSession>> {
        self.by_hash.get(hash)
    }

    pub(super) fn put(&mut self, session: ConsoleSession) -> Arc<OpenSession> {
        let open = Arc::new(OpenSession::new(session));
        self.by_hash.insert(open.hash.clone(), Arc::clone(&open));
        open
    }

    /// Removes the session with this id, if there is one.
    pub(super) fn remove(&mut self, id: &str) {
        self.by_hash.retain(|_, session| session.id != id);
    }

    /// The ids of the sessions that must end before another one of this key is opened in place of `replaced`: those that were
    /// unused for the longest time.
    pub(super) fn surplus(&self, key: &str, replaced: Option<&str>) -> Vec<String> {
        let used = |session: &Arc<OpenSession>| (session.last_used_at(), session.id.clone());
        let staying = || self.sessions().filter(|session| Some(session.id.as_str()) != replaced);
        let of_key = staying().filter(|session| session.key == key).map(used).collect();
        let mut surplus = oldest_above(of_key, SESSIONS_OF_KEY_MAX);
        if surplus.is_empty() {
            surplus = oldest_above(staying().map(used).collect(), ALL_MAX);
        }
        surplus
    }

    /// The code with this hash.
    pub(super) fn code(&self, hash: &str) -> Option<&ConsoleCode> {
        self.codes.get(hash)
    }

    pub(super) fn put_code(&mut self, code: ConsoleCode) {
        self.codes.insert(code.hash.clone(), code);
    }

    pub(super) fn remove_code(&mut self, hash: &str) {
        self.codes.remove(hash);
    }

    /// The hashes of the codes that give way to another one of this key: the oldest.
    pub(super) fn surplus_codes(&self, key: &str) -> Vec<String> {
        let made = |code: &ConsoleCode| (code.expires_at, code.hash.clone());
        let of_key = self.codes.values().filter(|code| code.key == key).map(made).collect();
        let mut surplus = oldest_above(of_key, CODES_OF_KEY_MAX);
        if surplus.is_empty() {
            surplus = oldest_above(self.codes.values().map(made).collect(), ALL_MAX);
        }
        surplus
    }

    /// The hashes of the codes that have expired.
    pub(super) fn codes_over(&self, now: Millis) -> Vec<String> {
        self.codes.values().filter(|code| code.expires_at <= now).map(|code| code.hash.clone()).collect()
    }
}

/// Whether a row is stored under this id. One that is not is logged.
fn has_id(row: &StoredJson, id: &str) -> bool {
    let is_own = row.id == id;
    if !is_own {
        tracing::error!(id = row.id, "JSON row under a foreign id ignored");
    }
    is_own
}

/// The names of the oldest items, without which there are `most - 1` items or fewer.
fn oldest_above(mut items: Vec<(Millis, String)>, most: usize) -> Vec<String> {
    let surplus = (items.len() + 1).saturating_sub(most);
    items.sort_unstable();
    items.into_iter().take(surplus).map(|(_, name)| name).collect()
}
