//! What is checked when a store is opened.

use std::time::Duration;

use longshore_postgres::{Database, PostgresStore};
use longshore_store::Store as _;

use crate::harness::{Server, shared};
use crate::rows::{claim, commit, job, put};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_outlive_the_store_and_a_later_start_applies_no_migration_again() {
    let database = shared().database();
    let store = PostgresStore::open(database.clone()).await.unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    drop(store);
    let store = PostgresStore::open(database).await.unwrap();
    assert_eq!(store.jobs(longshore_model::EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
    assert!(claim(&store).await > epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_tables_is_refused() {
    let database = shared().database();
    let _first = PostgresStore::open(database.clone()).await.unwrap();
    let refusal = PostgresStore::open(database).await.unwrap_err().to_string();
    assert!(refusal.contains("another server") && refusal.contains("stop it first"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_newer_program_are_refused() {
    let database = shared().database().with_schema("of_a_newer_program");
    drop(PostgresStore::open(database.clone()).await.unwrap());
    let client = shared().client().await;
    client
        .execute("INSERT INTO of_a_newer_program.migration (version, name) VALUES (99, 'later')", &[])
        .await
        .unwrap();
    let refusal = PostgresStore::open(database).await.unwrap_err().to_string();
    assert!(refusal.contains("version 99") && refusal.contains("start the newer program"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_named_without_its_password() {
    let password = std::env::temp_dir().join(format!("longshore-password-{}", std::process::id()));
    let database = Database::parse("postgres://user@127.0.0.1:1/jobs").unwrap().with_password_file(&password);
    let refusal = PostgresStore::open(database.clone()).await.unwrap_err().to_string();
    assert!(refusal.contains("cannot read `store_password_file`"), "{refusal}");
    std::fs::write(&password, "hidden\n").unwrap();
    let refusal = PostgresStore::open(database).await.unwrap_err().to_string();
    std::fs::remove_file(&password).unwrap();
    assert!(refusal.contains("jobs of 127.0.0.1, port 1"), "{refusal}");
    assert!(!refusal.contains("hidden"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_loses_commits_in_a_power_cut_is_refused() {
    let server = Server::start();
    let client = server.client().await;
    client.batch_execute("ALTER SYSTEM SET fsync = off").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    crate::faults::eventually("fsync is off", async || {
        let client = server.client().await;
        client.query_one("SHOW fsync", &[]).await.unwrap().get::<_, String>(0) == "off"
    })
    .await;
    let refusal = PostgresStore::open(server.database()).await.unwrap_err().to_string();
    assert!(refusal.contains("set fsync = on"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_another_program_that_stays_open_is_told_once() {
    let server = Server::start();
    let mut store = PostgresStore::open(server.database()).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    store.watch_transactions(Duration::from_millis(100), move |old| tell.send(old).unwrap());
    let reads = "SET application_name = 'a report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    let writes = "SET application_name = 'an import'; BEGIN; CREATE TABLE imported (id int)";
    for (statements, name) in [(reads, "a report"), (writes, "an import")] {
        let other = server.client().await;
        other.batch_execute(statements).await.unwrap();
        let old = tokio::time::timeout(Duration::from_mins(1), told.recv()).await.unwrap().unwrap();
        assert_eq!(old.application, name);
        assert!(old.pid > 0);
        // While it lasts, commits go on.
        let epoch = claim(&store).await;
        commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
        other.batch_execute("COMMIT").await.unwrap();
    }
    assert!(told.is_empty(), "each is told once");
}
