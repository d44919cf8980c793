//! The writer of the audit log: one thread that appends waiting entries and syncs them together.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_model::Millis;
use tokio::sync::oneshot;

use super::entry::Entry;
use super::files::{FileStorage, RotationLimits};
use super::query::{AuditPage, Filter, find};
use super::storage::{AuditLine, AuditStorage};

/// The number of entries that may wait to be written. Further entries are lost and reported in the server's log.
const WAITING_MAX: usize = 10_000;
/// The number of entries in memory, for readers of events.
const RECENT_MAX: usize = 100;
/// How long a response waits until its entry is written.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The audit log of a server. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog {
    shared: Arc<WriterShared>,
}

struct WriterShared {
    storage: Arc<dyn AuditStorage>,
    entries: SyncSender<Waiting>,
    recent: Arc<RecentEntries>,
}

/// The entries that were written last, oldest first.
type RecentEntries = Mutex<VecDeque<Entry>>;

/// An entry to be written, the time of its event in ms, and the channel that reports the write.
struct Waiting {
    entry: Entry,
    at: Millis,
    written: Option<oneshot::Sender<()>>,
}

impl AuditLog {
    /// Opens the log in `folder`, which is created if it is missing. The log has at most `files_max` files of about
    /// `file_bytes_max` bytes each.
    ///
    /// # Errors
    ///
    /// The directory or the current file cannot be opened, or the thread cannot be started.
    pub fn open(folder: &Path, file_bytes_max: u64, files_max: usize) -> io::Result<Self> {
        let limits = RotationLimits { file_bytes_max, files_max };
        Self::over(Arc::new(FileStorage::open(folder, limits)?))
    }

    /// Opens the log in any storage. Blocks.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or the thread cannot be started.
    pub fn over(storage: Arc<dyn AuditStorage>) -> io::Result<Self> {
        let last_id = storage.last_id()?;
        let (entries, waiting) = sync_channel(WAITING_MAX);
        // The thread ends when the last clone of the log is dropped.
        let recent = Arc::<RecentEntries>::default();
        let written = Arc::clone(&recent);
        let writer = Writer { storage: Arc::clone(&storage), last_id, recent: written };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&waiting))?;
        Ok(Self { shared: Arc::new(WriterShared { storage, entries, recent }) })
    }

    /// Writes an entry and waits until it is synced, for at most one second.
    pub(crate) async fn record(&self, at: Millis, entry: Entry) {
        let (written, on_disk) = oneshot::channel();
        self.send(Waiting { entry, at, written: Some(written) });
        // The writer thread logs failures.
        let _ = tokio::time::timeout(WAIT_MAX, on_disk).await;
    }

    /// Writes an entry without waiting for it.
    pub(crate) fn note(&self, at: Millis, entry: Entry) {
        self.send(Waiting { entry, at, written: None });
    }

    fn send(&self, waiting: Waiting) {
        if let Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) =
            self.shared.entries.try_send(waiting)
        {
            let entry = serde_json::to_string(&lost.entry).unwrap_or_default();
            tracing::error!(entry, "audit log is full, entry lost");
        }
    }

    /// The entries with a larger id than `after`, oldest first, of the last 100 that this server wrote.
    pub(crate) fn recent(&self, after: u64) -> Vec<Entry> {
        let recent = self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().filter(|entry| entry.id > after).cloned().collect()
    }

    /// The entries that meet the conditions, newest first. Blocks.
    pub(crate) fn find(&self, filter: &Filter) -> io::Result<AuditPage> {
        find(self.shared.storage.as_ref(), filter)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

/// The state of the thread that writes.
struct Writer {
    storage: Arc<dyn AuditStorage>,
    /// The id of the last entry that was written.
    last_id: u64,
    recent: Arc<RecentEntries>,
}

impl Writer {
    /// Writes until the last sender of entries is dropped.
    fn run(mut self, waiting: &Receiver<Waiting>) {
        while let Ok(first) = waiting.recv() {
            let (mut entries, mut replies) = (Vec::new(), Vec::new());
            for Waiting { entry, at, written } in std::iter::once(first).chain(waiting.try_iter()) {
                entries.push((at, entry));
                replies.extend(written);
            }
            let mut appended = self.append(&mut entries);
            if let Err(error) = &appended
                && error.kind() == io::ErrorKind::AlreadyExists
            {
                appended = self.storage.last_id().and_then(|last_id| {
                    self.last_id = last_id;
                    self.append(&mut entries)
                });
            }
            if let Err(error) = appended {
                tracing::error!(%error, "audit log write failed, entries lost");
            }
            self.remember(entries.into_iter().map(|(_, entry)| entry));
            for reply in replies {
                // A closed channel is no error: the response did not wait longer.
                let _ = reply.send(());
            }
        }
    }

    /// Numbers the entries and appends them.
    fn append(&mut self, entries: &mut [(Millis, Entry)]) -> io::Result<()> {
        let mut lines = Vec::new();
        for (at, entry) in entries {
            // From the time, or the next number if the clock went back.
            entry.id = (at.0 << 10).max(self.last_id + 1);
            self.last_id = entry.id;
            lines.push(AuditLine { id: entry.id, json: serde_json::to_vec(entry)? });
        }
        self.storage.append(&lines)
    }

    fn remember(&self, entries: impl Iterator<Item = Entry>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.extend(entries);
        let surplus = recent.len().saturating_sub(RECENT_MAX);
        recent.drain(..surplus);
    }
}
