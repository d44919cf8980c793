//! Who writes the audit log: one thread, which syncs whatever has come together.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use longshore_model::Millis;
use tokio::sync::oneshot;

use super::entry::Entry;
use super::files::{RotatedFiles, RotationLimits};
use super::query::{AuditPage, Filter, find};

/// Entries that wait to be written; over it they are lost, and the log of the server says so.
const WAITING_MAX: usize = 10_000;
/// How long an answer waits for its entry.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The audit log of a data folder. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog {
    shared: Arc<WriterShared>,
}

struct WriterShared {
    folder: PathBuf,
    limits: RotationLimits,
    entries: SyncSender<Waiting>,
}

/// An entry on its way, the time of its event, and who waits until it is written.
struct Waiting {
    entry: Entry,
    at: Millis,
    written: Option<oneshot::Sender<()>>,
}

impl AuditLog {
    /// Opens the log in `folder`, which is made if it is not there. There are at most `files_max` files of about
    /// `file_bytes_max` bytes.
    pub fn open(folder: &Path, file_bytes_max: u64, files_max: usize) -> io::Result<Self> {
        let limits = RotationLimits { file_bytes_max, files_max };
        let files = RotatedFiles::open(folder, limits)?;
        let (entries, waiting) = sync_channel(WAITING_MAX);
        // Ends with the last clone of the log.
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || write(files, &waiting))?;
        Ok(Self { shared: Arc::new(WriterShared { folder: folder.to_owned(), limits, entries }) })
    }

    /// Writes an entry, and waits until it is on disk; a second at most.
    pub(crate) async fn record(&self, at: Millis, entry: Entry) {
        let (written, on_disk) = oneshot::channel();
        self.send(Waiting { entry, at, written: Some(written) });
        // What could not be written was said in the log.
        let _ = tokio::time::timeout(WAIT_MAX, on_disk).await;
    }

    /// Writes an entry some time soon.
    pub(crate) fn note(&self, at: Millis, entry: Entry) {
        self.send(Waiting { entry, at, written: None });
    }

    fn send(&self, waiting: Waiting) {
        if let Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) =
            self.shared.entries.try_send(waiting)
        {
            tracing::error!(entry = ?lost.entry, "the audit log takes no more entries, one is lost");
        }
    }

    /// The entries that fit, newest first. Reads files: for threads that may block.
    pub(crate) fn find(&self, filter: &Filter) -> io::Result<AuditPage> {
        find(&self.shared.folder, self.shared.limits.files_max, filter)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

fn write(mut files: RotatedFiles, waiting: &Receiver<Waiting>) {
    while let Ok(first) = waiting.recv() {
        let batch: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let mut lines = Vec::new();
        let mut told = Vec::new();
        for Waiting { mut entry, at, written } in batch {
            // The time, as far as it goes on; else the next number.
            entry.id = (at.0 << 10).max(files.last_id + 1);
            files.last_id = entry.id;
            // Texts and numbers are always JSON.
            if serde_json::to_writer(&mut lines, &entry).is_ok() {
                lines.push(b'\n');
            }
            told.extend(written);
        }
        if let Err(error) = files.append(&lines) {
            tracing::error!(%error, "the audit log cannot be written, entries are lost");
        }
        for written in told {
            // Whoever waited has waited long enough.
            let _ = written.send(());
        }
    }
}
