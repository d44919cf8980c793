//! The writer of the audit log: one thread that appends waiting entries and syncs them together.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_model::Millis;
use tokio::sync::oneshot;

use super::entry::Entry;
use super::files::{RotatedFiles, RotationLimits};
use super::query::{AuditPage, Filter, find};

/// The number of entries that may wait to be written. Further entries are lost and reported in the server's log.
const WAITING_MAX: usize = 10_000;
/// The number of entries in memory, for readers of events.
const RECENT_MAX: usize = 100;
/// How long a response waits until its entry is written.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The audit log of a data directory. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog {
    shared: Arc<WriterShared>,
}

struct WriterShared {
    folder: PathBuf,
    limits: RotationLimits,
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
        let files = RotatedFiles::open(folder, limits)?;
        let (entries, waiting) = sync_channel(WAITING_MAX);
        // The thread ends when the last clone of the log is dropped.
        let recent = Arc::<RecentEntries>::default();
        let written = Arc::clone(&recent);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(files, &waiting, &written))?;
        Ok(Self { shared: Arc::new(WriterShared { folder: folder.to_owned(), limits, entries, recent }) })
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

    /// The entries that meet the conditions, newest first. Reads files, so the call blocks.
    pub(crate) fn find(&self, filter: &Filter) -> io::Result<AuditPage> {
        find(&self.shared.folder, self.shared.limits.files_max, filter)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

fn write(mut files: RotatedFiles, waiting: &Receiver<Waiting>, recent: &RecentEntries) {
    while let Ok(first) = waiting.recv() {
        let batch: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let mut lines = Vec::new();
        let (mut replies, mut written) = (Vec::new(), Vec::new());
        for Waiting { mut entry, at, written: reply } in batch {
            // From the time, or the next number if the clock went back.
            entry.id = (at.0 << 10).max(files.last_id + 1);
            files.last_id = entry.id;
            // Serializing strings and numbers cannot fail.
            if serde_json::to_writer(&mut lines, &entry).is_ok() {
                lines.push(b'\n');
            }
            replies.extend(reply);
            written.push(entry);
        }
        if let Err(error) = files.append(&lines) {
            tracing::error!(%error, "audit log write failed, entries lost");
        }
        {
            let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.extend(written);
            let surplus = recent.len().saturating_sub(RECENT_MAX);
            recent.drain(..surplus);
        }
        for reply in replies {
            // A closed channel is no error: the response did not wait longer.
            let _ = reply.send(());
        }
    }
}
