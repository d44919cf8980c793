//! Plans: every statement of a job's life finds its rows by the primary key, with any statistics.

use longshore_postgres::PostgresStore;
use longshore_store::{OutcomeRow, StreamRow, WebhookRow, Write};

use crate::harness::shared;
use crate::rows::{batch, chunk, claim, commit, inline, job, key, put};
use longshore_model::Millis;
use longshore_store::Store as _;

/// Counts of scans of the tables of jobs: by an index, and of the whole table.
async fn scans(schema: &str) -> (i64, i64) {
    let client = shared().client().await;
    let sql = "SELECT coalesce(sum(idx_scan), 0)::int8, coalesce(sum(seq_scan), 0)::int8 FROM pg_stat_user_tables \
        WHERE schemaname = $1 AND relname SIMILAR TO '(job|chunk|stream|webhook)'";
    let row = client.query_one(sql, &[&schema]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_of_a_jobs_life_scans_a_table() {
    let schema = "plans";
    let store = PostgresStore::open(shared().database().with_schema(schema)).await.unwrap();
    let epoch = claim(&store).await;
    let jobs = 200;
    let submit =
        (1..=jobs).flat_map(|seq| [put(job(1, seq)), Write::PutInput(key(1, seq), inline("{}"))]).collect();
    commit(&store, epoch, submit).await.unwrap();
    let (_, seq_before) = scans(schema).await;
    commit(&store, epoch, (1..=jobs).map(|seq| put(job(1, seq))).collect()).await.unwrap();
    let done = OutcomeRow { output: Some(inline("1")), error: None };
    let ended = (1..=jobs).flat_map(|seq| [put(job(1, seq)), Write::PutOutcome(key(1, seq), done.clone())]);
    commit(&store, epoch, ended.collect()).await.unwrap();
    for seq in 1..=jobs {
        let stream = StreamRow { next: 1, consumed: 0, ..StreamRow::default() };
        let hook = WebhookRow { job: key(1, seq), attempts: 0, due_at: Millis(1) };
        let writes = vec![
            put(job(1, seq)),
            chunk(key(1, seq), 0, "\"a\""),
            Write::PutStream(key(1, seq), stream),
            Write::PutWebhook(hook),
        ];
        store.commit(crate::rows::SHARD, epoch, batch(writes)).await.unwrap();
        assert_eq!(store.input(key(1, seq)).await.unwrap(), Some(inline("{}")));
        assert_eq!(store.chunks(key(1, seq), 0, 10).await.unwrap().len(), 1);
    }
    commit(&store, epoch, (1..=jobs).map(|seq| Write::DeleteJob(key(1, seq))).collect()).await.unwrap();
    drop(store);
    // Statistics are reported when the connections end.
    crate::faults::eventually("the scans are counted", async || {
        let (by_index, _) = scans(schema).await;
        by_index >= 4 * jobs.cast_signed()
    })
    .await;
    let (_, seq_after) = scans(schema).await;
    assert_eq!(seq_after, seq_before, "a statement scanned a whole table");
}
