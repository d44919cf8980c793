//! The processes that a stopped job leaves behind.

use std::fs;
use std::time::{Duration, Instant};

use longshore_launch::{Born, Launcher as _};
use longshore_model::StopReason;

use crate::harness::{GRACE, Server, is_alive};

/// Waits until the clock by which the kernel dates processes has advanced. Its ticks have 10 ms, and processes that started
/// within the first or the last tick of a span are not killed.
async fn wait_for_ticks() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn the_processes_of_a_stopped_job_end_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    // The worker starts a process for each file: in its own group, or in a session of its own.
    let script = "
        begin() { while [ ! -e $1 ]; do sleep 0.02; done; }
        sleep 600 & echo before=$!
        begin job; sleep 600 & echo plain=$!
        setsid sh -c '(setsid sh -c \"sleep 599 & echo daemon=\\$\\$; wait\" &)'
        begin next; sleep 600 & echo next=$!
        begin end";
    let worker = server.start(script).await;
    let cwd = server.log_path(&worker).unwrap().with_file_name("cwd");
    let pid = async |name: &str| server.printed(&worker, name).await;
    let before = pid("before").await;
    wait_for_ticks().await;
    let since = Instant::now();
    wait_for_ticks().await;
    fs::write(cwd.join("job"), "").unwrap();
    let left = [pid("plain").await, pid("daemon").await];
    wait_for_ticks().await;
    let until = Instant::now();
    wait_for_ticks().await;
    fs::write(cwd.join("next"), "").unwrap();
    let next = pid("next").await;
    let as_of = Instant::now();
    let born = Born { since_ago: as_of - since, until_ago: as_of - until, as_of };
    let ended = server.launcher.end_leftovers(&worker, born, Duration::from_millis(100)).await.unwrap();
    assert!(ended >= 3, "with the daemon's child: {ended}");
    assert!(left.iter().all(|pid| !is_alive(pid)), "{left:?}");
    assert!(is_alive(&before) && is_alive(&next), "what began before and after lives");
    let again = server.launcher.end_leftovers(&worker, born, Duration::ZERO).await.unwrap();
    assert_eq!(again, 0);
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
}
