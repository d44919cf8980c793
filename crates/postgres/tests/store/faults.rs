//! Broken connections, a killed database, and owners that come back.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Durability, EndpointNo, Epoch, ShardId};
use longshore_postgres::{PostgresStore, RAISED_BY};
use longshore_store::{Batch, Store, StoreError, Write};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::harness::{Server, shared};
use crate::rows::{SHARD, batch, claim, commit, inline, job, key, put};

/// Waits until the condition holds, for 30 s at most.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn submit(seq: u64) -> Vec<Write> {
    vec![put(job(1, seq)), Write::PutInput(key(1, seq), inline("{}"))]
}

fn chained(chain: u64, writes: Vec<Write>) -> Batch {
    Batch { durability: Durability::Synced, writes, chain: Some(chain) }
}

async fn stored(store: &PostgresStore) -> Vec<u64> {
    store.jobs(EndpointNo(1), 0, 100_000).await.unwrap().iter().map(|row| row.key.seq).collect()
}

async fn schema_of(client: &Client) -> String {
    let sql = "SELECT schemaname::text FROM pg_tables WHERE tablename = 'shard'";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Ends the connections of one schema's lanes, as a network does, and waits for their end.
async fn break_lanes(server: &Server) {
    let client = server.client().await;
    let sql = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'longshore lane'";
    client.query(sql, &[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_batches_of_a_failed_chain_do_not_take_effect() {
    let (store, ()) = crate::harness::fresh_store().await;
    let epoch = claim(&store).await;
    // A row number out of range is refused by the database itself: the first batch takes effect, the second does not.
    let client = shared().client().await;
    let schemas = "SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE c.relname = 'shard'";
    assert!(!client.query(schemas, &[]).await.unwrap().is_empty());
    let huge = Write::PutInput(key(1, 2), longshore_store::Payload::Inline(vec![b'x'; 600 << 20].into()));
    let commits = [
        store.commit(SHARD, epoch, chained(1, submit(1))),
        store.commit(SHARD, epoch, chained(1, vec![huge])),
        store.commit(SHARD, epoch, chained(1, submit(3))),
        store.commit(SHARD, epoch, batch(submit(4))),
    ];
    let mut results = Vec::new();
    for commit in commits {
        results.push(commit.await.is_ok());
    }
    assert_eq!(results, [true, false, false, true]);
    assert_eq!(stored(&store).await, [1, 4]);
    store.commit(SHARD, epoch, chained(2, submit(5))).await.unwrap();
    assert_eq!(stored(&store).await, [1, 4, 5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_batch_survives_each_killed_database() {
    let server = Server::start();
    let store = Arc::new(PostgresStore::open(server.database()).await.unwrap());
    let epoch = claim(&*store).await;
    let mut acknowledged = Vec::new();
    let mut seq = 0;
    for round in 0..3 {
        let mut commits = Vec::new();
        for _ in 0..60 {
            seq += 1;
            commits.push((seq, store.commit(SHARD, epoch, chained(round, submit(seq)))));
        }
        // The server's own processes end immediately, without a checkpoint; its postmaster starts them again.
        let killed = Command::new("pkill").args(["-KILL", "-P", &server.pid.to_string()]).status().unwrap();
        assert!(killed.success());
        for (seq, commit) in commits {
            match commit.await {
                Ok(()) => acknowledged.push(seq),
                Err(StoreError::Io(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        eventually("the store writes again", async || {
            let probe = store.commit(SHARD, epoch, batch(vec![put(job(2, 1))]));
            probe.await.is_ok()
        })
        .await;
        let kept = stored(&store).await;
        let missing: Vec<_> = acknowledged.iter().filter(|seq| !kept.contains(seq)).collect();
        assert!(missing.is_empty(), "round {round}: acknowledged and lost: {missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_leaves_no_batch_that_takes_effect_later() {
    let server = Server::start();
    let store = PostgresStore::open(server.database()).await.unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, submit(1)).await.unwrap();
    // The statement waits for a lock that a stranger holds, so that its outcome is open when the connection breaks.
    let stranger = server.client().await;
    let schema = schema_of(&stranger).await;
    stranger
        .batch_execute(&format!("BEGIN; LOCK TABLE {schema}.chunk IN ACCESS EXCLUSIVE MODE"))
        .await
        .unwrap();
    let waiting = store.commit(SHARD, epoch, chained(7, vec![crate::rows::chunk(key(1, 1), 0, "\"late\"")]));
    let later = store.commit(SHARD, epoch, chained(7, submit(2)));
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'longshore lane' \
        AND wait_event_type = 'Lock'";
    let looker = server.client().await;
    eventually("the batch waits for the lock", async || {
        looker.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    break_lanes(&server).await;
    stranger.batch_execute("COMMIT").await.unwrap();
    assert!(waiting.await.is_err() && later.await.is_err());
    assert_eq!(stored(&store).await, [1]);
    assert!(store.chunks(key(1, 1), 0, 10).await.unwrap().is_empty());
    // The claim's epoch goes on to be good.
    store.commit(SHARD, epoch, chained(8, submit(3))).await.unwrap();
    assert_eq!(stored(&store).await, [1, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_owners_claim_refuses_the_batches_of_this_one() {
    let server = Server::start();
    let store = PostgresStore::open(server.database()).await.unwrap();
    let epoch = claim(&store).await;
    let stranger = server.client().await;
    let schema = schema_of(&stranger).await;
    stranger.batch_execute(&format!("UPDATE {schema}.shard SET epoch = epoch + 1")).await.unwrap();
    let refused = commit(&store, epoch, submit(1)).await;
    assert!(
        matches!(refused, Err(StoreError::StaleEpoch { shard: SHARD, ours, .. }) if ours == epoch),
        "{refused:?}"
    );
    assert!(stored(&store).await.is_empty());
    // Other shards are not concerned.
    let other = store.claim_shards(vec![ShardId(9)]).await.unwrap()[0];
    store.commit(ShardId(9), other, batch(submit(2))).await.unwrap();
}

/// A store with one job whose stored epochs were raised without its knowledge, and whose lanes then lost their connections.
async fn broken_with_epoch_raised_by(by: i64) -> (Server, PostgresStore, Epoch) {
    let server = Server::start();
    let store = PostgresStore::open(server.database()).await.unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, submit(1)).await.unwrap();
    let stranger = server.client().await;
    let schema = schema_of(&stranger).await;
    stranger.batch_execute(&format!("UPDATE {schema}.shard SET epoch = epoch + {by}")).await.unwrap();
    break_lanes(&server).await;
    (server, store, epoch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_owners_claim_is_not_mistaken_for_an_own_raise() {
    let (_server, store, epoch) = broken_with_epoch_raised_by(1).await;
    // The first commits may still fail with the connection that broke.
    eventually("the epoch is refused", async || match commit(&store, epoch, submit(2)).await {
        Ok(()) => panic!("the batch took effect under another owner's epoch"),
        Err(error) => matches!(error, StoreError::StaleEpoch { shard: SHARD, .. }),
    })
    .await;
    assert_eq!(stored(&store).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_without_an_answer_is_recognised() {
    let (_server, store, epoch) = broken_with_epoch_raised_by(RAISED_BY).await;
    eventually("the lane goes on", async || commit(&store, epoch, submit(2)).await.is_ok()).await;
    assert_eq!(stored(&store).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_learns_that_another_server_has_taken_its_lock() {
    let server = Server::start();
    let store = PostgresStore::open(server.database()).await.unwrap();
    let client = server.client().await;
    // The connection of the lock breaks, and another one takes the lock immediately.
    let (classid, objid): (u32, u32) = {
        let row = client
            .query_one("SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory'", &[])
            .await
            .unwrap();
        (row.get(0), row.get(1))
    };
    let key = (i64::from(classid) << 32) | i64::from(objid);
    let arguments: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&key];
    let waiting = client.query("SELECT pg_advisory_lock($1)", &arguments);
    let breaker = server.client().await;
    let end =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore lock'";
    let waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let breaks = async {
        eventually("the other one waits", async || breaker.query_opt(waits, &[]).await.unwrap().is_some())
            .await;
        breaker.query(end, &[]).await
    };
    let (taken, ended) = tokio::join!(waiting, breaks);
    assert!(taken.is_ok() && ended.is_ok());
    let lost = tokio::time::timeout(Duration::from_secs(30), store.lost())
        .await
        .expect("the loss is noticed")
        .to_string();
    assert!(lost.contains("another server from a local socket"), "{lost}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_lock_is_taken_again() {
    let server = Server::start();
    let database = server.database();
    let store = PostgresStore::open(database.clone()).await.unwrap();
    let client = server.client().await;
    let pid = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted";
    let before: i32 = client.query_one(pid, &[]).await.unwrap().get(0);
    client.query("SELECT pg_terminate_backend($1)", &[&before]).await.unwrap();
    eventually("the lock is held by another connection", async || {
        let holder = client.query_opt(pid, &[]).await.unwrap();
        holder.is_some_and(|holder| holder.get::<_, i32>(0) != before)
    })
    .await;
    let refusal = PostgresStore::open(database).await.unwrap_err().to_string();
    assert!(refusal.contains("stop it first"), "{refusal}");
    drop(store);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_has_forgotten_durable_batches_is_written_no_more() {
    // As after a failover to a standby that was behind: it lacks a batch, or also the epoch.
    for (schema, earlier) in
        [("without_batch", "batches = batches - 1"), ("without_epoch", "epoch = epoch - 1")]
    {
        let server = Server::start();
        let store = PostgresStore::open(server.database().with_schema(schema)).await.unwrap();
        let epoch = claim(&store).await;
        commit(&store, epoch, submit(1)).await.unwrap();
        let client = server.client().await;
        client.batch_execute(&format!("UPDATE {schema}.shard SET {earlier}")).await.unwrap();
        break_lanes(&server).await;
        let refusal = store.commit(SHARD, epoch, chained(1, submit(2))).await;
        assert!(refusal.is_err(), "{schema}");
        let lost = tokio::time::timeout(Duration::from_mins(1), store.lost()).await.unwrap().to_string();
        assert!(lost.contains("does not have what it had made durable"), "{lost}");
        let again = store.commit(SHARD, epoch, chained(2, submit(3))).await.unwrap_err().to_string();
        assert!(again.contains("does not have what it had made durable"), "{again}");
        let rows = format!("SELECT count(*) FROM {schema}.job");
        assert_eq!(client.query_one(&rows, &[]).await.unwrap().get::<_, i64>(0), 1);
        // The next start goes on.
        drop(store);
        let store = PostgresStore::open(server.database().with_schema(schema)).await.unwrap();
        let epoch = claim(&store).await;
        commit(&store, epoch, submit(2)).await.unwrap();
        assert_eq!(stored(&store).await, [1, 2]);
    }
}
