//! A session with its use. A use writes no row: the task that writes them reads it, about once a minute.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use longshore_model::{ConsoleSession, Millis};

/// How long sessions last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// The time without a request after which a session is over, in ms.
    pub idle_ms: u64,
    /// The time from its opening after which a session is over, in ms.
    pub max_ms: u64,
}

impl Default for SessionLimits {
    /// 12 hours without use, 7 days in all.
    fn default() -> Self {
        Self { idle_ms: 12 * 3_600_000, max_ms: 7 * 24 * 3_600_000 }
    }
}

/// A session with its use since the server started.
#[derive(Debug)]
pub struct OpenSession {
    session: ConsoleSession,
    used_at: AtomicU64,
    /// The use that the store has.
    written_at: AtomicU64,
}

impl Deref for OpenSession {
    type Target = ConsoleSession;

    fn deref(&self) -> &ConsoleSession {
        &self.session
    }
}

impl OpenSession {
    pub(super) fn new(session: ConsoleSession) -> Self {
        let used_at = session.used_at.0;
        Self { session, used_at: AtomicU64::new(used_at), written_at: AtomicU64::new(used_at) }
    }

    /// Records that the session was used at `now`.
    pub fn touch(&self, now: Millis) {
        self.used_at.fetch_max(now.0, Ordering::Relaxed);
    }

    /// When the session was last used.
    pub fn last_used_at(&self) -> Millis {
        Millis(self.used_at.load(Ordering::Relaxed))
    }

    /// When the session is over if it is not used again.
    pub fn expires_at(&self, limits: &SessionLimits) -> Millis {
        let idle = self.last_used_at().0.saturating_add(limits.idle_ms);
        Millis(idle.min(self.opened_at.0.saturating_add(limits.max_ms)))
    }

    /// Whether requests of the session are served at `now`.
    pub fn is_open(&self, limits: &SessionLimits, now: Millis) -> bool {
        now < self.expires_at(limits)
    }

    /// The session to be written, with its last use; `None` if it was not used since it was written.
    pub(super) fn unwritten_use(&self) -> Option<ConsoleSession> {
        let used_at = self.last_used_at();
        let is_unwritten = used_at.0 > self.written_at.load(Ordering::Relaxed);
        is_unwritten.then(|| ConsoleSession { used_at, ..self.session.clone() })
    }

    pub(super) fn note_written(&self, used_at: Millis) {
        self.written_at.fetch_max(used_at.0, Ordering::Relaxed);
    }
}
