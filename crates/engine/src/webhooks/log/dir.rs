//! The log as files: two for each endpoint, of which the older one is dropped when the newer one is full.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use longshore_model::EndpointId;
use tokio::sync::oneshot;

use super::{LogFuture, WebhookLog};

/// Orders that may wait for the disk; lines over it are lost.
const REQUESTS_MAX: usize = 10_000;
/// Lines that are written at once.
const BATCH_MAX: usize = 1_000;

/// Lines in files of one folder. One thread does all the work, so that nobody waits for the disk.
pub struct DirWebhookLog {
    requests: SyncSender<LogRequest>,
}

enum LogRequest {
    Append(EndpointId, Vec<u8>),
    Read(EndpointId, oneshot::Sender<io::Result<Vec<u8>>>),
    Forget(EndpointId),
}

impl DirWebhookLog {
    /// Opens the log in `folder`, which is made if it is not there. An endpoint gets `bytes_max` bytes.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (orders, inbox) = sync_channel(REQUESTS_MAX);
        let files = LogFiles { folder: folder.to_owned(), file_bytes_max: bytes_max / 2 };
        thread::Builder::new().name("webhook-log".to_owned()).spawn(move || files.serve(&inbox))?;
        Ok(Self { requests: orders })
    }
}

impl WebhookLog for DirWebhookLog {
    fn append(&self, endpoint: EndpointId, line: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.requests.try_send(LogRequest::Append(endpoint, line)) {
            tracing::warn!(%endpoint, "the disk is too slow for the log of webhooks: a line is lost");
        }
    }

    fn read(&self, endpoint: EndpointId) -> LogFuture<'_> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.try_send(LogRequest::Read(endpoint, reply));
        Box::pin(async move {
            let gone = || io::Error::other("the log of webhooks cannot be read at the moment");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn forget(&self, endpoint: EndpointId) {
        if self.requests.try_send(LogRequest::Forget(endpoint)).is_err() {
            tracing::warn!(%endpoint, "a deleted endpoint's log of webhooks is left over");
        }
    }
}

/// The files, in the hands of their thread.
struct LogFiles {
    folder: PathBuf,
    file_bytes_max: u64,
}

impl LogFiles {
    /// Carries out orders until nobody can give any.
    fn serve(&self, inbox: &Receiver<LogRequest>) {
        while let Ok(first) = inbox.recv() {
            // Lines that came meanwhile cost no write of their own.
            let mut lines: BTreeMap<EndpointId, Vec<u8>> = BTreeMap::new();
            for order in std::iter::once(first).chain(inbox.try_iter().take(BATCH_MAX)) {
                match order {
                    LogRequest::Append(endpoint, line) => {
                        let batch = lines.entry(endpoint).or_default();
                        batch.extend_from_slice(&line);
                        batch.push(b'\n');
                    }
                    LogRequest::Read(endpoint, reply) => {
                        self.append_all(std::mem::take(&mut lines));
                        // Whoever asked may have hung up.
                        let _ = reply.send(self.read(&endpoint));
                    }
                    LogRequest::Forget(endpoint) => {
                        lines.remove(&endpoint);
                        for path in self.paths(&endpoint) {
                            let _ = fs::remove_file(path);
                        }
                    }
                }
            }
            self.append_all(lines);
        }
    }

    fn append_all(&self, lines: BTreeMap<EndpointId, Vec<u8>>) {
        for (endpoint, batch) in lines {
            if let Err(error) = self.append(&endpoint, &batch) {
                tracing::warn!(%endpoint, %error, "lines of the log of webhooks are lost");
            }
        }
    }

    fn append(&self, endpoint: &EndpointId, batch: &[u8]) -> io::Result<()> {
        let [old, new] = self.paths(endpoint);
        let mut file = File::options().create(true).append(true).open(&new)?;
        let present = file.metadata()?.len();
        if present > 0 && present + batch.len() as u64 > self.file_bytes_max {
            fs::rename(&new, &old)?;
            file = File::options().create(true).append(true).open(&new)?;
        } else if present > 0 {
            // The last line may have been cut off: then it is lost alone.
            file.write_all(b"\n")?;
        }
        file.write_all(batch)
    }

    fn read(&self, endpoint: &EndpointId) -> io::Result<Vec<u8>> {
        let mut log = Vec::new();
        for path in self.paths(endpoint) {
            match fs::read(path) {
                Ok(bytes) => log.extend(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            log.push(b'\n');
        }
        Ok(log)
    }

    /// The older file and the newer one.
    fn paths(&self, endpoint: &EndpointId) -> [PathBuf; 2] {
        ["old.jsonl", "jsonl"].map(|kind| self.folder.join(format!("{endpoint}.{kind}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &[u8]) -> Vec<&str> {
        let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn lines_are_kept_over_a_restart_per_endpoint_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (EndpointId::mint(1), EndpointId::mint(2));
        let log = DirWebhookLog::open(folder.path(), 10_000).unwrap();
        log.append(one, b"a".to_vec());
        log.append(other, b"x".to_vec());
        log.append(one, b"b".to_vec());
        assert_eq!(lines(&log.read(one).await.unwrap()), ["a", "b"]);
        drop(log);
        let log = DirWebhookLog::open(folder.path(), 10_000).unwrap();
        // As if the process had died in the middle of a line.
        let path = folder.path().join(format!("{one}.jsonl"));
        File::options().append(true).open(&path).unwrap().write_all(b"{cut o").unwrap();
        log.append(one, b"c".to_vec());
        assert_eq!(lines(&log.read(one).await.unwrap()), ["a", "b", "{cut o", "c"]);
        log.forget(one);
        assert!(lines(&log.read(one).await.unwrap()).is_empty());
        assert_eq!(lines(&log.read(other).await.unwrap()), ["x"]);
    }

    #[tokio::test]
    async fn only_the_latest_lines_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = EndpointId::mint(1);
        let log = DirWebhookLog::open(folder.path(), 1_000).unwrap();
        for number in 0..500 {
            log.append(endpoint, format!("line {number}").into_bytes());
            if number % 10 == 0 {
                log.read(endpoint).await.unwrap();
            }
        }
        let kept = log.read(endpoint).await.unwrap();
        assert!(kept.len() <= 1_200, "{}", kept.len());
        let kept = lines(&kept);
        assert!(kept.len() >= 40);
        let latest: Vec<_> = (500 - kept.len()..500).map(|number| format!("line {number}")).collect();
        assert_eq!(kept, latest);
    }
}
