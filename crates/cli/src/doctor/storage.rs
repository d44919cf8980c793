//! Checks of the data directory and the port.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longshore_client::{Client, ClientError};

use super::Finding;
use crate::human::size;
use crate::screen::span;

/// Bytes of one test write: about a commit of a few jobs.
const WRITE_BYTES: usize = 4_096;
const SYNCS: usize = 20;
/// Median sync time above which the check warns: each accepted job waits for a sync.
const SLOW_SYNC: Duration = Duration::from_millis(20);
const FREE_BYTES_MIN: u64 = 1_000_000_000;

/// Checks whether the directory is writable, its free space, and the duration of a sync.
pub(super) fn disk(data_dir: &Path) -> Vec<Finding> {
    // The server creates the directory, so the check uses its nearest existing parent.
    let there = data_dir.ancestors().find(|path| path.is_dir());
    let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    vec![free(there), syncs(there)]
}

fn free(dir: &Path) -> Finding {
    match rustix::fs::statvfs(dir) {
        Err(error) => Finding::fail("disk", format!("cannot read {}: {error}", dir.display())),
        Ok(facts) => {
            let bytes = facts.f_bavail.saturating_mul(facts.f_frsize);
            let text = format!("{} free in {}", size(bytes), dir.display());
            if bytes < FREE_BYTES_MIN {
                Finding::warn("disk", format!("{text}; with a full disk, jobs are refused"))
            } else {
                Finding::ok("disk", text)
            }
        }
    }
}

fn syncs(dir: &Path) -> Finding {
    match sync_times(dir) {
        Err(error) => Finding::fail("disk sync", format!("cannot write to {}: {error}", dir.display())),
        Ok(mut times) => {
            times.sort();
            let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
            let text = format!("{} median, {} maximum", fine(median), fine(slowest));
            if median > SLOW_SYNC {
                Finding::warn("disk sync", format!("{text}; every accepted job waits that long"))
            } else {
                Finding::ok("disk sync", text)
            }
        }
    }
}

fn fine(time: Duration) -> String {
    match time.as_micros() {
        us @ 0..1_000 => format!("{us} µs"),
        1_000..100_000 => format!("{:.1} ms", time.as_secs_f64() * 1_000.0),
        _ => span(time),
    }
}

fn sync_times(dir: &Path) -> io::Result<Vec<Duration>> {
    struct Draft(PathBuf);
    impl Drop for Draft {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }
    let draft = Draft(dir.join(format!(".longshore-doctor-{}", std::process::id())));
    let mut file = File::options().write(true).create_new(true).open(&draft.0)?;
    (0..SYNCS)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&[0; WRITE_BYTES])?;
            file.sync_data()?;
            Ok(began.elapsed())
        })
        .collect()
}

/// Checks whether the address is free or in use by a Longshore server.
pub(super) async fn port(listen: &str) -> Finding {
    let Err(error) = tokio::net::TcpListener::bind(listen).await else {
        return Finding::ok("port", format!("{listen} is free"));
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Finding::fail("port", format!("cannot listen on {listen}: {error}"));
    }
    let local = listen.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let answers = match Client::new(&format!("http://{local}"), "") {
        Ok(client) => match client.metrics().await {
            Ok(page) => page.contains("longshore_"),
            // The error that a Longshore server returns for a request without a key.
            Err(ClientError::Refused { status, code, .. }) => {
                (status, code.as_str()) == (401, "unauthorized")
            }
            Err(_) => false,
        },
        Err(_) => false,
    };
    if answers {
        Finding::ok("port", format!("a Longshore server answers on {listen}"))
    } else {
        Finding::fail("port", format!("another program listens on {listen}; choose one with --listen"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    #[test]
    fn a_folder_is_tried_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let findings = disk(&dir.path().join("not/made/yet"));
        assert!(findings.iter().all(|one| one.verdict != CheckStatus::Fail), "{findings:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn short_times_have_one_unit_and_few_digits() {
        let said = [417, 4_017, 25_000, 99_960, 250_000].map(|us| fine(Duration::from_micros(us)));
        assert_eq!(said, ["417 µs", "4.0 ms", "25.0 ms", "100.0 ms", "250 ms"]);
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_a_finding() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let silent = tokio::spawn(async move {
            loop {
                drop(taken.accept().await);
            }
        });
        assert_eq!(port(&address).await.verdict, CheckStatus::Fail);
        silent.abort();
        assert_eq!(port("127.0.0.1:0").await.verdict, CheckStatus::Ok);
        assert_eq!(port("nonsense").await.verdict, CheckStatus::Fail);
    }
}
