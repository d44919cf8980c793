//! Rows that no version of the program wrote: reading them is an error with an address, never a panic.

use longshore_model::{Counters, EndpointNo, Millis, RecordKind};
use longshore_store::{EmbeddedStore, HookRow, OutcomeRow, Store, StoreError, StreamRow, Write};
use rusqlite::Connection;
use tempfile::TempDir;

use super::fresh;
use crate::rows::{api_key, chunk, claim, commit, endpoint, full_job, inline, job, key, put, template};

const NONSENSE: [&str; 12] = [
    "NULL",
    "-1",
    "2",
    "256",
    "4294967296",
    "9223372036854775807",
    "1.5",
    "''",
    "'text'",
    "'a b'",
    "x''",
    "x'ff00'",
];

/// A store with one row in every table, and a connection to spoil them with.
pub(super) async fn filled() -> (EmbeddedStore, TempDir, Connection) {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    let one = key(1, 1);
    let writes = vec![
        put(full_job(1, 1)),
        Write::PutInput(one, inline("in")),
        Write::PutOutcome(one, OutcomeRow { output: Some(inline("out")), error: Some("e".into()) }),
        Write::PutStream(one, StreamRow { next: 1, drained: 0 }),
        chunk(one, 0, "chunk"),
        Write::PutHook(HookRow { job: one, attempts: 1, due_at: Millis(1) }),
        Write::PutCounters(EndpointNo(1), Counters::default()),
        Write::PutEndpoint(Box::new(endpoint(1))),
        Write::PutTemplate(Box::new(template(1))),
        Write::PutKey(Box::new(api_key("k"))),
        Write::PutSetting("s".into(), "v".into()),
        Write::PutRecord(RecordKind::Usage, "u".into(), "{}".into()),
    ];
    commit(&store, epoch, writes).await.unwrap();
    let db = Connection::open(dir.path().join("longshore.db")).unwrap();
    (store, dir, db)
}

/// Reads everything; the errors that came.
pub(super) async fn read_all(store: &EmbeddedStore) -> Vec<StoreError> {
    let one = key(1, 1);
    let results = [
        store.catalog().await.map(drop),
        store.counters(EndpointNo(1)).await.map(drop),
        store.jobs(EndpointNo(1), 0, 10_000).await.map(drop),
        store.hooks(EndpointNo(1)).await.map(drop),
        store.input(one).await.map(drop),
        store.outcome(one).await.map(drop),
        store.stream(one).await.map(drop),
        store.chunks(one, 0, 1_000_000).await.map(drop),
    ];
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    for error in &errors {
        let text = error.to_string();
        assert!(
            !text.contains("did not finish") && !text.contains("has stopped"),
            "a thread panicked: {text}"
        );
    }
    errors
}

#[tokio::test]
async fn nonsense_in_any_column_is_an_error_that_names_the_table() {
    let (store, _dir, db) = filled().await;
    let columns: Vec<(String, String)> = db
        .prepare(
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(columns.len() > 60, "{columns:?}");
    let mut refused = 0;
    for (table, column) in columns {
        for value in NONSENSE {
            db.execute_batch(&format!(
                "CREATE TEMP TABLE kept AS SELECT rowid AS kept_rowid, * FROM {table}"
            ))
            .or_else(|_| db.execute_batch(&format!("CREATE TEMP TABLE kept AS SELECT * FROM {table}")))
            .unwrap();
            // Constraints refuse some of them; then there is nothing to read.
            let spoiled = db.execute(&format!("UPDATE OR FAIL {table} SET {column} = {value}"), []).is_ok();
            for error in read_all(&store).await {
                assert!(spoiled, "{error}");
                let StoreError::Corrupt(text) = &error else {
                    panic!("{table}.{column} = {value}: {error:?}")
                };
                assert!(text.contains(&format!("`{table}`")), "{table}.{column} = {value}: {text}");
                refused += 1;
            }
            restore(&db, &table);
        }
    }
    assert!(refused > 100, "only {refused} were noticed");
    assert!(read_all(&store).await.is_empty());
}

/// Puts the kept rows back.
fn restore(db: &Connection, table: &str) {
    let columns: Vec<String> = db
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let columns = columns.join(", ");
    db.execute_batch(&format!(
        "BEGIN; DELETE FROM {table}; INSERT INTO {table} ({columns}) SELECT {columns} FROM kept; COMMIT; DROP TABLE kept"
    ))
    .unwrap();
}

#[tokio::test]
async fn a_database_cut_short_is_an_error() {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    commit(&store, epoch, (1..=500).map(|seq| put(full_job(1, seq))).collect()).await.unwrap();
    drop(store);
    let file = dir.path().join("longshore.db");
    let whole = std::fs::read(&file).unwrap();
    for part in 1..16 {
        std::fs::write(&file, &whole[..whole.len() * part / 16]).unwrap();
        let error = match EmbeddedStore::open(dir.path()) {
            Ok(store) => store.jobs(EndpointNo(1), 0, 1_000).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, StoreError::Corrupt(_) | StoreError::Unusable(_)), "{error:?}");
        assert!(error.to_string().contains("backup"), "{error}");
    }
}

#[tokio::test]
async fn people_can_look_in() {
    let (store, _dir, db) = filled().await;
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(2, 3))]).await.unwrap();
    let seen: (u32, u64, String, String) = db
        .query_row("SELECT endpoint_no, seq, id, state FROM job_readable WHERE endpoint_no = 2", [], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(seen, (2, 3, job(2, 3).id.to_string(), "IN_QUEUE".into()));
}
