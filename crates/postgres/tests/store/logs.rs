//! Lines of logs.

use bytes::Bytes;
use longshore_model::{EndpointNo, Epoch};
use longshore_postgres::{LogTable, NumberedLine, PostgresStore};
use longshore_store::{LogLine, Store as _, StoreError};

use crate::harness::{Server, shared};
use crate::rows::{SHARD, batch, claim, job, put};

fn line(no: i64) -> NumberedLine {
    NumberedLine { no, line: format!("line {no}").into_bytes() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_keep_their_order_and_only_the_newest_are_left() {
    let database = shared().database().with_schema("logs_in_order");
    drop(PostgresStore::open(database.clone()).await.unwrap());
    let logs = LogTable::of(database.clone());
    let line = |log: &str, text: &str| (format!("webhooks/{log}"), text.as_bytes().to_vec());
    let both = [line("a", "a"), line("b", "a"), line("a", "b"), line("b", "b"), line("a", "c")];
    logs.append(&both).await.unwrap();
    logs.append(&[line("a", "z")]).await.unwrap();
    assert_eq!(logs.lines("webhooks/a").await.unwrap().concat(), b"abcz");
    assert_eq!(logs.names().await.unwrap(), ["webhooks/a", "webhooks/b"]);
    logs.trim("webhooks/a", 2).await.unwrap();
    assert_eq!(logs.lines("webhooks/a").await.unwrap().concat(), b"cz");
    logs.remove("webhooks/a").await.unwrap();
    assert_eq!(logs.lines("webhooks/a").await.unwrap(), Vec::<Vec<u8>>::new());
    assert_eq!(logs.lines("webhooks/b").await.unwrap().concat(), b"ab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_taken_refuses_all_lines_and_later_ones_are_appended() {
    let database = shared().database().with_schema("logs_with_numbers");
    drop(PostgresStore::open(database.clone()).await.unwrap());
    let (one, other) = (LogTable::of(database.clone()), LogTable::of(database));
    assert_eq!(one.last_no("audit").await.unwrap(), None);
    assert!(one.append_numbered("audit", &[line(5), line(6)]).await.unwrap());
    assert!(!other.append_numbered("audit", &[line(6), line(7)]).await.unwrap());
    assert!(!other.append_numbered("audit", &[line(4)]).await.unwrap(), "the log would not be in order");
    assert!(other.append_numbered("audit", &[line(7), line(9)]).await.unwrap());
    assert_eq!(one.last_no("audit").await.unwrap(), Some(9));
    assert_eq!(one.newest("audit", i64::MAX, 3).await.unwrap(), [line(9), line(7), line(6)]);
    assert_eq!(one.newest("audit", 6, 3).await.unwrap(), [line(5)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_costs_no_line() {
    let server = Server::start();
    let database = server.database();
    drop(PostgresStore::open(database.clone()).await.unwrap());
    let logs = LogTable::of(database);
    assert!(logs.append_numbered("audit", &[line(1)]).await.unwrap());
    let ended =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore log'";
    assert_eq!(server.client().await.query(ended, &[]).await.unwrap().len(), 1);
    assert!(logs.append_numbered("audit", &[line(2)]).await.unwrap());
    assert_eq!(logs.lines("audit").await.unwrap(), [b"line 1", b"line 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_stored_with_its_batch_or_not_at_all() {
    let database = shared().database().with_schema("logs_with_batches");
    let store = PostgresStore::open(database.clone()).await.unwrap();
    let epoch = claim(&store).await;
    let logs = LogTable::of(database);
    let commit = async |epoch: Epoch, seq: u64, no: u64| {
        let line = LogLine { log: "audit", no, line: Bytes::from(format!("line {no}")) };
        let lines = store.with_log_lines().unwrap();
        lines.commit_with_line(SHARD, epoch, batch(vec![put(job(1, seq))]), line).await
    };
    let stored = async || {
        let jobs = store.jobs(EndpointNo(1), 0, 10).await.unwrap();
        (jobs.len(), logs.newest("audit", i64::MAX, 10).await.unwrap())
    };
    commit(epoch, 1, 5).await.unwrap();
    assert_eq!(stored().await, (1, vec![line(5)]));
    let stale = commit(Epoch(epoch.0 - 1), 2, 6).await;
    assert!(matches!(stale, Err(StoreError::StaleEpoch { .. })), "{stale:?}");
    let taken = commit(epoch, 2, 5).await;
    assert!(matches!(taken, Err(StoreError::Io(_))), "{taken:?}");
    assert_eq!(stored().await, (1, vec![line(5)]), "neither the row nor the line is there");
    commit(epoch, 2, 6).await.unwrap();
    let changed = NumberedLine { no: 6, line: b"another text".to_vec() };
    logs.replace("audit", &changed).await.unwrap();
    assert_eq!(stored().await, (2, vec![changed, line(5)]));
}
