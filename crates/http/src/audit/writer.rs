//! The writer of the audit log: one thread that appends waiting entries and syncs them together.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
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
/// How often entries are appended whose numbers were taken meanwhile.
const APPENDS_MAX: usize = 5;
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
    last_id: Arc<LastId>,
}

/// The id of the last entry that was numbered.
#[derive(Debug, Default)]
struct LastId(AtomicU64);

impl LastId {
    /// The id of another entry: from the time, or the next number if the clock went back.
    fn next(&self, at: Millis) -> u64 {
        let next = |last: u64| (at.0 << 10).max(last + 1);
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // The closure refuses no value.
        before.map_or(0, next)
    }
}

/// The entries that were written last, oldest first.
#[derive(Default)]
struct RecentEntries {
    entries: Mutex<VecDeque<Entry>>,
    /// The number of entries that were ever in `entries`.
    written: AtomicU64,
}

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
        let last_id = Arc::new(LastId(AtomicU64::new(last_id)));
        let writer = Writer {
            storage: Arc::clone(&storage),
            last_id: Arc::clone(&last_id),
            recent: Arc::clone(&recent),
        };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&waiting))?;
        Ok(Self { shared: Arc::new(WriterShared { storage, entries, recent, last_id }) })
    }

    /// The name of the log in the database of the rows; `None` if it is not there.
    pub(super) fn name_in_store(&self) -> Option<&'static str> {
        self.shared.storage.name_in_store()
    }

    /// The id of an entry that is written with its change.
    pub(super) fn next_id(&self, at: Millis) -> u64 {
        self.shared.last_id.next(at)
    }

    /// Writes an entry and waits until it is synced, for at most one second. An entry with an id replaces the one with that id.
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

    /// The entries that this server wrote after the first `before` ones, at most 100, in the order in which they were written, and how
    /// many it has written.
    pub(crate) fn recent(&self, before: u64) -> (Vec<Entry>, u64) {
        let RecentEntries { entries, written } = &*self.shared.recent;
        let entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.load(Ordering::Relaxed);
        let new = usize::try_from(written.saturating_sub(before)).unwrap_or(usize::MAX);
        (entries.iter().skip(entries.len().saturating_sub(new)).cloned().collect(), written)
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
    last_id: Arc<LastId>,
    recent: Arc<RecentEntries>,
}

impl Writer {
    /// Writes until the last sender of entries is dropped.
    fn run(self, waiting: &Receiver<Waiting>) {
        while let Ok(first) = waiting.recv() {
            let (mut entries, mut completed, mut replies) = (Vec::new(), Vec::new(), Vec::new());
            for Waiting { entry, at, written } in std::iter::once(first).chain(waiting.try_iter()) {
                let place = if entry.id == 0 { &mut entries } else { &mut completed };
                place.push((at, entry));
                replies.extend(written);
            }
            if !entries.is_empty()
                && let Err(error) = self.append_all(&mut entries)
            {
                tracing::error!(%error, "audit log write failed, entries lost");
            }
            if let Err(error) = self.replace(&completed) {
                tracing::warn!(%error, "audit log write failed, entries have no status");
            }
            self.remember(entries.into_iter().chain(completed).map(|(_, entry)| entry));
            for reply in replies {
                // A closed channel is no error: the response did not wait longer.
                let _ = reply.send(());
            }
        }
    }

    /// Appends entries. Numbers them again if another one was appended meanwhile: by another server, or with its change.
    fn append_all(&self, entries: &mut [(Millis, Entry)]) -> io::Result<()> {
        for _ in 1..APPENDS_MAX {
            match self.append(entries) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.last_id.0.fetch_max(self.storage.last_id()?, Ordering::Relaxed);
                }
                appended => return appended,
            }
        }
        self.append(entries)
    }

    /// Writes entries in place of those with the same ids.
    fn replace(&self, entries: &[(Millis, Entry)]) -> io::Result<()> {
        for (_, entry) in entries {
            self.storage.replace(&AuditLine { id: entry.id, json: serde_json::to_vec(entry)? })?;
        }
        Ok(())
    }

    /// Numbers the entries and appends them.
    fn append(&self, entries: &mut [(Millis, Entry)]) -> io::Result<()> {
        let mut lines = Vec::new();
        for (at, entry) in entries {
            entry.id = self.last_id.next(*at);
            lines.push(AuditLine { id: entry.id, json: serde_json::to_vec(entry)? });
        }
        self.storage.append(&lines)
    }

    fn remember(&self, entries: impl Iterator<Item = Entry>) {
        let mut recent = self.recent.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            recent.push_back(entry);
            self.recent.written.fetch_add(1, Ordering::Relaxed);
        }
        let surplus = recent.len().saturating_sub(RECENT_MAX);
        recent.drain(..surplus);
    }
}
