//! Sessions of the console, and the codes that open them: in memory for each request's look-up, in the store for the next
//! start.

#[cfg(test)]
mod hostile;
mod open_session;
mod table;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use longshore_model::{ConsoleCode, ConsoleSession, JsonRowKind, Millis};
use longshore_store::Write;
use serde::Serialize;

use crate::CatalogError;
use crate::catalog::json_rows::StoredJson;
use crate::catalog::shard::CatalogShard;
use crate::services::Services;

pub use open_session::{OpenSession, SessionLimits};
use table::SessionTable;

/// A session that was opened.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    /// The session, with the id and times of its row.
    pub session: Arc<OpenSession>,
    /// The sessions that ended for it: that of the same browser, and one too many.
    pub ended: Vec<Arc<OpenSession>>,
}

/// The sessions and the codes of an engine. Both are bounded: at most 1 000, of one key at most 20 sessions and 10 codes. One
/// more ends the one that was unused for the longest time, of the key or of all.
///
/// Reads never wait for the disk. A change is durable when its method returns, and every later look-up sees it. Changes
/// are made one after another.
///
/// Every method that returns a [`CatalogError`] returns [`CatalogError::Store`] if the change could not be made
/// durable. After an error nothing has changed.
pub struct Sessions {
    services: Arc<Services>,
    shard: CatalogShard,
    table: RwLock<SessionTable>,
    /// Held by each change from its checks until it is in `table`.
    lock: tokio::sync::Mutex<()>,
}

impl Sessions {
    /// The stored sessions and codes. A corrupt row is logged and left out.
    pub(crate) fn new(
        services: Arc<Services>,
        shard: CatalogShard,
        sessions: &[StoredJson],
        codes: &[StoredJson],
    ) -> Self {
        let table = RwLock::new(SessionTable::load(sessions, codes));
        Self { services, shard, table, lock: tokio::sync::Mutex::new(()) }
    }

    /// Every session, also those that are over and not removed yet.
    pub fn list(&self) -> Vec<Arc<OpenSession>> {
        self.table().sessions().cloned().collect()
    }

    /// The session whose cookie has this hash (SHA-256 in lower-case hex).
    pub fn by_hash(&self, hash: &str) -> Option<Arc<OpenSession>> {
        self.table().by_hash(hash).cloned()
    }

    /// The session with this id.
    pub fn get(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.table().sessions().find(|session| session.id == id).cloned()
    }

    /// Opens a session. `replaced` is the id of one that ends at the same moment.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Sessions`].
    pub async fn open(
        &self,
        session: ConsoleSession,
        replaced: Option<&str>,
    ) -> Result<OpenedSession, CatalogError> {
        let _lock = self.lock.lock().await;
        self.put_session(session, replaced, None).await
    }

    /// Creates a code that opens one session, and stores its hash.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Sessions`].
    pub async fn add_code(&self, code: ConsoleCode) -> Result<(), CatalogError> {
        let _lock = self.lock.lock().await;
        let surplus = self.table().surplus_codes(&code.key);
        let mut writes = vec![put(JsonRowKind::ConsoleCode, &code.hash, &code)?];
        writes.extend(surplus.iter().map(|hash| delete(JsonRowKind::ConsoleCode, hash)));
        self.shard.commit(writes).await?;
        let mut table = self.table_mut();
        for hash in &surplus {
            table.remove_code(hash);
        }
        table.put_code(code);
        Ok(())
    }

    /// Uses up the code with this hash, and opens the session that `make` returns for it. `None` if there is no such code, it
    /// has expired, or `make` returns none: then the code stays as it is.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Sessions`].
    pub async fn open_by_code(
        &self,
        hash: &str,
        replaced: Option<&str>,
        make: impl FnOnce(&ConsoleCode) -> Option<ConsoleSession> + Send,
    ) -> Result<Option<OpenedSession>, CatalogError> {
        let _lock = self.lock.lock().await;
        let now = self.now();
        let code = self.table().code(hash).filter(|code| now < code.expires_at).cloned();
        let Some(session) = code.as_ref().and_then(make) else { return Ok(None) };
        self.put_session(session, replaced, Some(hash)).await.map(Some)
    }

    /// Ends a session, and returns it. `None` if there is no session with this id.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Sessions`].
    pub async fn end(&self, id: &str) -> Result<Option<Arc<OpenSession>>, CatalogError> {
        let _lock = self.lock.lock().await;
        let Some(session) = self.get(id) else { return Ok(None) };
        self.shard.commit(vec![delete(JsonRowKind::ConsoleSession, id)]).await?;
        self.table_mut().remove(id);
        Ok(Some(session))
    }

    /// Stores which sessions were used since the last call, and removes what is over, in one commit. Writes nothing if there
    /// is neither. Returns the sessions that were removed.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Sessions`]. The next call stores the use then.
    pub async fn note_use(&self, limits: &SessionLimits) -> Result<Vec<Arc<OpenSession>>, CatalogError> {
        let _lock = self.lock.lock().await;
        let now = self.now();
        let (over, open): (Vec<_>, Vec<_>) =
            self.list().into_iter().partition(|session| !session.is_open(limits, now));
        let used: Vec<_> = open.into_iter().filter_map(|session| session.unwritten_use()).collect();
        let codes = self.table().codes_over(now);
        let mut writes = Vec::new();
        for session in &used {
            writes.push(put(JsonRowKind::ConsoleSession, &session.id, session)?);
        }
        writes.extend(over.iter().map(|session| delete(JsonRowKind::ConsoleSession, &session.id)));
        writes.extend(codes.iter().map(|hash| delete(JsonRowKind::ConsoleCode, hash)));
        if writes.is_empty() {
            return Ok(over);
        }
        self.shard.commit(writes).await?;
        let mut table = self.table_mut();
        for session in used {
            if let Some(open) = table.by_hash(&session.hash) {
                open.note_written(session.used_at);
            }
        }
        for session in &over {
            table.remove(&session.id);
        }
        for hash in &codes {
            table.remove_code(hash);
        }
        Ok(over)
    }

    /// Writes a session, and removes what gives way to it. The caller holds the lock.
    async fn put_session(
        &self,
        session: ConsoleSession,
        replaced: Option<&str>,
        code: Option<&str>,
    ) -> Result<OpenedSession, CatalogError> {
        let surplus = self.table().surplus(&session.key, replaced);
        let ended: Vec<_> =
            surplus.iter().map(String::as_str).chain(replaced).filter_map(|id| self.get(id)).collect();
        let mut writes = vec![put(JsonRowKind::ConsoleSession, &session.id, &session)?];
        writes.extend(ended.iter().map(|session| delete(JsonRowKind::ConsoleSession, &session.id)));
        writes.extend(code.map(|hash| delete(JsonRowKind::ConsoleCode, hash)));
        self.shard.commit(writes).await?;
        let mut table = self.table_mut();
        for session in &ended {
            table.remove(&session.id);
        }
        if let Some(hash) = code {
            table.remove_code(hash);
        }
        Ok(OpenedSession { session: table.put(session), ended })
    }

    fn now(&self) -> Millis {
        self.services.clock.now()
    }

    fn table(&self) -> RwLockReadGuard<'_, SessionTable> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, SessionTable> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(kind: JsonRowKind, id: &str, row: &impl Serialize) -> Result<Write, CatalogError> {
    let json = serde_json::to_vec(row).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
    Ok(Write::PutJsonRow(kind, id.to_owned(), json.into()))
}

fn delete(kind: JsonRowKind, id: &str) -> Write {
    Write::DeleteJsonRow(kind, id.to_owned())
}
