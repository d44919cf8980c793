//! The log of deliveries as files: two per endpoint. When the newer one is full, it replaces the older one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use longshore_model::EndpointId;
use tokio::sync::mpsc::Receiver;

use super::{QueuedWebhookLog, WebhookLogRequest};

/// Opens the log in the files of the directory `dir`, which is created if it is missing. Each endpoint's log has about
/// `bytes_max` bytes at most. One thread does all the I/O, and ends when the log is dropped.
///
/// # Errors
///
/// The directory or the thread cannot be created.
pub fn open_webhook_log(dir: &Path, bytes_max: u64) -> io::Result<QueuedWebhookLog> {
    fs::create_dir_all(dir)?;
    let (log, requests) = QueuedWebhookLog::new();
    let files = LogFiles { dir: dir.to_owned(), file_bytes_max: bytes_max / 2 };
    thread::Builder::new().name("webhook-log".to_owned()).spawn(move || files.serve(requests))?;
    Ok(log)
}

/// The files of a directory. Owned by the writer thread.
struct LogFiles {
    dir: PathBuf,
    /// Size from which on a file is full, in bytes.
    file_bytes_max: u64,
}

impl LogFiles {
    /// Serves requests until their sender is dropped.
    fn serve(&self, mut requests: Receiver<WebhookLogRequest>) {
        let mut taken = Vec::new();
        while requests.blocking_recv_many(&mut taken, QueuedWebhookLog::BATCH_MAX) > 0 {
            let mut lines: BTreeMap<EndpointId, Vec<u8>> = BTreeMap::new();
            for request in taken.drain(..) {
                match request {
                    WebhookLogRequest::Append(endpoint, line) => {
                        let batch = lines.entry(endpoint).or_default();
                        batch.extend_from_slice(&line);
                        batch.push(b'\n');
                    }
                    WebhookLogRequest::Read(endpoint, reply) => {
                        self.append_all(std::mem::take(&mut lines));
                        // A closed channel is no error: the client disconnected.
                        let _ = reply.send(self.read(&endpoint));
                    }
                    WebhookLogRequest::Forget(endpoint) => {
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

    /// Appends lines per endpoint. Lines that cannot be written are lost.
    fn append_all(&self, lines: BTreeMap<EndpointId, Vec<u8>>) {
        for (endpoint, batch) in lines {
            if let Err(error) = self.append(&endpoint, &batch) {
                tracing::warn!(%endpoint, %error, "webhook log lines not written");
            }
        }
    }

    /// Appends lines to the newer file; a full one becomes the older file first.
    fn append(&self, endpoint: &EndpointId, batch: &[u8]) -> io::Result<()> {
        let [old, new] = self.paths(endpoint);
        let mut file = File::options().create(true).append(true).open(&new)?;
        let present = file.metadata()?.len();
        if present > 0 && present + batch.len() as u64 > self.file_bytes_max {
            fs::rename(&new, &old)?;
            file = File::options().create(true).append(true).open(&new)?;
        } else if present > 0 {
            // The last line may be cut off: the newline keeps it apart from the next one.
            file.write_all(b"\n")?;
        }
        file.write_all(batch)
    }

    /// Returns the lines of both files, oldest first.
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

    /// Returns the paths of the older file and the newer one.
    fn paths(&self, endpoint: &EndpointId) -> [PathBuf; 2] {
        ["old.jsonl", "jsonl"].map(|kind| self.dir.join(format!("{endpoint}.{kind}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::WebhookLog as _;
    use super::*;

    fn lines(log: &[u8]) -> Vec<&str> {
        let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn lines_survive_a_restart_per_endpoint_until_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (EndpointId::mint(1), EndpointId::mint(2));
        let log = open_webhook_log(dir.path(), 10_000).unwrap();
        log.append(one, b"a".to_vec());
        log.append(other, b"x".to_vec());
        log.append(one, b"b".to_vec());
        assert_eq!(lines(&log.read(one).await.unwrap()), ["a", "b"]);
        drop(log);
        let log = open_webhook_log(dir.path(), 10_000).unwrap();
        // The process died in the middle of a line.
        let path = dir.path().join(format!("{one}.jsonl"));
        File::options().append(true).open(&path).unwrap().write_all(b"{cut o").unwrap();
        log.append(one, b"c".to_vec());
        assert_eq!(lines(&log.read(one).await.unwrap()), ["a", "b", "{cut o", "c"]);
        log.forget(one);
        assert!(lines(&log.read(one).await.unwrap()).is_empty());
        assert_eq!(lines(&log.read(other).await.unwrap()), ["x"]);
    }

    #[tokio::test]
    async fn only_the_latest_lines_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = EndpointId::mint(1);
        let log = open_webhook_log(dir.path(), 1_000).unwrap();
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
