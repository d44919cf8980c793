//! Lines of logs.

use longshore_postgres::{LogTable, NumberedLine, PostgresStore};

use crate::harness::{Server, shared};

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
