//! Records the history of endpoints: a sample every 2 s, a write every minute.

mod shared;

use std::sync::Arc;
use std::time::Duration;

use longshore_engine::Engine;
use longshore_history::{FAST_STEP_MS, History};
use longshore_model::Millis;
use longshore_postgres::LogTable;
use tokio::sync::Notify;

use self::shared::SharedHistory;
use crate::settings::Settings;

/// The history of a server, and where its minutes are copied to.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) history: Arc<History>,
    /// `None` without a database.
    shared: Option<Arc<SharedHistory>>,
}

impl Recording {
    /// Opens the history in the data directory, and its copies in the database. A history that cannot be opened is kept in memory
    /// only: no server depends on it.
    pub(crate) async fn open(settings: &Settings, now: Millis, table: Option<Arc<LogTable>>) -> Self {
        let (path, bytes_max) = (settings.data_dir.join("history"), settings.history_bytes_max());
        let shown = path.display().to_string();
        let open = move || {
            let history = History::open(&path, bytes_max, now)?;
            let shared = table.map(|table| SharedHistory::open(table, &path, bytes_max)).transpose()?;
            Ok(match shared {
                None => (history, None),
                Some(shared) => (history.with_copies(), Some(Arc::new(shared))),
            })
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let opened = opened.map_err(std::io::Error::other).and_then(|opened| opened);
        let (history, shared) = opened.unwrap_or_else(|error| {
            tracing::error!(path = shown, %error, "history not opened, it is not stored");
            (History::in_memory(now), None)
        });
        Self { history: Arc::new(history), shared }
    }

    /// Samples the endpoints at the end of each step of 2 s, and writes each minute that is over. Meanwhile adds what other servers
    /// recorded.
    pub(crate) async fn record(self, engine: Engine) {
        let adding = async {
            if let Some(shared) = &self.shared {
                shared.add_others(&self.history).await;
            }
        };
        let (clock, sampled) = (engine.clone(), Arc::clone(&self.history));
        let recording =
            sample_and_write(move || clock.now().0, move || engine.sample_history(&sampled), || self.write());
        tokio::join!(adding, recording);
    }

    /// Writes the present minute before the server ends. A write in flight ends first, because both need the files.
    pub(crate) async fn close(&self, engine: &Engine) {
        engine.sample_history(&self.history);
        self.history.end_minute();
        self.write().await;
    }

    async fn write(&self) {
        write(&self.history).await;
        if let Some(shared) = &self.shared {
            shared.send(&self.history).await;
        }
    }
}

/// Samples in each step, also while minutes are written: a reader of long times or the end of a day delays writing.
async fn sample_and_write<W: Future<Output = ()>>(
    now_ms: impl Fn() -> u64,
    mut sample: impl FnMut() -> bool,
    write: impl Fn() -> W,
) {
    let is_due = Notify::new();
    let sampling = async {
        loop {
            let step_left_ms = FAST_STEP_MS - now_ms() % FAST_STEP_MS;
            tokio::time::sleep(Duration::from_millis(step_left_ms)).await;
            if sample() {
                is_due.notify_one();
            }
        }
    };
    let writing = async {
        loop {
            is_due.notified().await;
            write().await;
        }
    };
    let ((), ()) = tokio::join!(sampling, writing);
}

async fn write(history: &Arc<History>) {
    let history = Arc::clone(history);
    let written = tokio::task::spawn_blocking(move || history.write()).await;
    if let Err(error) = written.map_err(std::io::Error::other).and_then(|written| written) {
        tracing::warn!(%error, "history not written, retrying");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Instant;

    use longshore_model::Millis;
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

    use super::*;

    const BEGIN: u64 = 1_896_127_200_000;
    const DEADLINE: Duration = Duration::from_secs(30);

    /// Makes the log a pipe, which blocks a writer until the test reads.
    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Lets a blocked writer end when the test fails, since the runtime waits for it.
    struct Unblocked<'a>(&'a Path);

    impl Drop for Unblocked<'_> {
        fn drop(&mut self) {
            let _ = opened(self.0);
        }
    }

    /// Opens a pipe for reading, without waiting for a writer.
    fn opened(pipe: &Path) -> std::io::Result<File> {
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(pipe)
    }

    /// Reads what is written to a pipe, without waiting for a writer.
    fn drain(pipe: &mut File) -> usize {
        let mut bytes = Vec::new();
        // There is an error while a writer has written nothing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes.len()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn samples_do_not_wait_for_a_write_and_the_end_does() {
        let dir = tempfile::tempdir().unwrap();
        let history = Arc::new(History::open(dir.path(), u64::MAX, Millis(BEGIN)).unwrap());
        let path = dir.path().join("minutes/2030-01-31.log");
        pipe(&path);
        let _unblocked = Unblocked(&path);
        let samples = Arc::new(AtomicU64::new(0));
        let (counter, observing) = (Arc::clone(&samples), Arc::clone(&history));
        let sample = move || {
            let step = counter.fetch_add(1, SeqCst) + 1;
            observing.sample(Millis(BEGIN + step * FAST_STEP_MS), [])
        };
        let writing = Arc::clone(&history);
        // Each step ends after 1 ms.
        let recording =
            tokio::spawn(
                async move { sample_and_write(|| FAST_STEP_MS - 1, sample, || write(&writing)).await },
            );
        let deadline = Instant::now() + DEADLINE;
        // The first minute is over after 30 samples.
        while samples.load(SeqCst) < 95 {
            assert!(Instant::now() < deadline, "{} samples", samples.load(SeqCst));
            tokio::task::yield_now().await;
        }
        recording.abort();
        let _ = recording.await;
        history.end_minute();
        let mut closing = tokio::spawn(async move {
            write(&history).await;
            history
        });
        let mut reader = opened(&path).unwrap();
        let mut received = 0;
        let history = loop {
            received += drain(&mut reader);
            assert!(Instant::now() < deadline, "{received} bytes");
            tokio::select! {
                biased;
                history = &mut closing => break history.unwrap(),
                () = tokio::task::yield_now() => {}
            }
        };
        received += drain(&mut reader);
        // No minute is left, and all were written.
        let last = Millis(BEGIN + samples.load(SeqCst) * FAST_STEP_MS);
        assert!(!history.sample(last, []) && received > 0);
    }
}
