//! Rows of any content, and files of which any byte has changed: what is read is what was written, or an error.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use longshore_hostile::{cases, spoiled, text};
use longshore_model::{Attempt, Counters, EndpointNo, Idempotency, JobId, JobRow, JobState, Millis};
use longshore_store::{BlobRef, EmbeddedStore, OutcomeRow, Payload, Store, StoreError, StreamRow, Write};
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::foreign_bytes::{filled, read_all};
use super::fresh;
use crate::rows::{chunk, claim, commit, endpoint, full_job, inline, job, key, put};

/// What `SQLite` takes for something, or a page of it.
const TOKENS: &[&[u8]] = &[
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x0d",
    b"\x05",
    b"SQLite format 3\0",
    b"CREATE",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Any job that a queue could hand over.
fn any_job() -> impl Strategy<Value = JobRow> {
    let words = (
        prop::option::of("[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}"),
        prop::option::of((text(), any::<[u8; 16]>())),
    );
    let state = prop::sample::select(JobState::ALL.to_vec());
    (any::<[u8; 16]>(), any::<[bool; 6]>(), any::<[u64; 5]>(), any::<[u32; 6]>(), any::<i64>(), state, words)
        .prop_map(|(raw, flags, times, numbers, order, state, (worker, idempotency))| JobRow {
            key: key(1, 1),
            id: JobId::from_parts(raw, flags[0]),
            state,
            low_priority: flags[1],
            fresh: flags[2],
            pinned: flags[3],
            webhook: flags[4],
            webhook_owed: flags[5],
            retries: numbers[0] as u8,
            redeliveries: numbers[1] as u8,
            attempt: Attempt(numbers[2]),
            order,
            created_at: Millis(times[0]),
            enqueued_at: Millis(times[1]),
            started_at: Millis(times[2]),
            finished_at: Millis(times[3]),
            delete_at: Millis(times[4]),
            ttl_ms: numbers[3],
            execution_timeout_ms: numbers[4],
            input_bytes: numbers[5],
            worker: worker.map(|worker| worker.parse().unwrap()),
            idempotency: idempotency
                .map(|(key, fingerprint)| Box::new(Idempotency { key: key.into(), fingerprint })),
        })
}

fn any_payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        longshore_hostile::bytes().prop_map(|bytes| Payload::Inline(bytes.into())),
        (text(), any::<u64>()).prop_map(|(name, bytes)| Payload::Blob(BlobRef { name: name.into(), bytes })),
    ]
}

fn any_cell() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        (-2..70_000_i64).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Real),
        text().prop_map(Value::Text),
        longshore_hostile::bytes().prop_map(Value::Blob),
    ]
}

/// The columns of every table.
fn columns(db: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1, 2";
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// The database file after a tidy end with its rows in it, and beside it a log with further commits.
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
    commits: u64,
}

/// The same ones every time: to make them takes longer than to open them.
fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| runtime().block_on(made()))
}

async fn made() -> Files {
    let (store, dir, db) = filled().await;
    drop(db);
    let epoch = claim(&store).await;
    commit(&store, epoch, (2..=120).map(|seq| put(full_job(1, seq))).collect()).await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let epoch = claim(&store).await;
    let commits = 12;
    for seq in 1..=commits {
        commit(&store, epoch, vec![put(job(2, seq)), Write::PutInput(key(2, seq), inline("i"))])
            .await
            .unwrap();
    }
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    Files { database: read("longshore.db"), log: read("longshore.db-wal"), commits }
}

/// Opens such files, reads everything and goes on writing; errors are fine, and none of them may be of the kind that
/// a defect of ours causes.
async fn live_with(database: &[u8], log: &[u8], look: impl AsyncFnOnce(&EmbeddedStore)) {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("longshore.db", database);
    write("longshore.db-wal", log);
    let store = match EmbeddedStore::open(dir.path()) {
        Ok(store) => store,
        Err(error) => return is_told_with_the_folder(&error, dir.path()),
    };
    for error in read_all(&store).await {
        assert!(matches!(error, StoreError::Corrupt(_) | StoreError::Io(_)), "{error:?}");
    }
    look(&store).await;
    if let Ok(epochs) = store.claim(vec![crate::rows::SHARD]).await {
        // What it answers shows only later whether it could be kept.
        let _ = commit(&store, epochs[0], vec![put(job(3, 1)), put(full_job(1, 1))]).await;
        read_all(&store).await;
    }
}

fn is_told_with_the_folder(error: &StoreError, dir: &Path) {
    let StoreError::Unusable(text) = error else { return };
    assert!(text.contains(dir.to_str().unwrap()), "{text}");
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn any_row_is_read_as_it_was_written(
        row in any_job(),
        input in any_payload(),
        output in prop::option::of(any_payload()),
        error in prop::option::of(text()),
        chunks in prop::collection::vec(longshore_hostile::bytes(), 0..4),
        counts: [u64; 6],
        setting in (text(), longshore_hostile::bytes()),
    ) {
        runtime().block_on(async {
            let (store, _dir) = fresh();
            let epoch = claim(&store).await;
            let one = row.key;
            let outcome = OutcomeRow { output, error: error.map(Into::into) };
            let stream = StreamRow { next: counts[0] >> 1, drained: counts[1] >> 1 };
            let counters = Counters {
                completed: counts[0],
                failed: counts[1],
                retried: counts[2],
                cancelled: counts[3],
                reserved_seq: counts[4],
                purged_until: Millis(counts[5]),
            };
            let mut writes = vec![
                put(row.clone()),
                Write::PutInput(one, input.clone()),
                Write::PutOutcome(one, outcome.clone()),
                Write::PutStream(one, stream),
                Write::PutCounters(EndpointNo(1), counters),
                Write::PutSetting(setting.0.clone(), setting.1.clone().into()),
            ];
            writes.extend(chunks.iter().enumerate().map(|(no, bytes)| chunk(one, no as u64, bytes.clone())));
            commit(&store, epoch, writes).await.unwrap();
            prop_assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [row]);
            prop_assert_eq!(store.input(one).await.unwrap(), Some(input));
            prop_assert_eq!(store.outcome(one).await.unwrap(), Some(outcome));
            prop_assert_eq!(store.stream(one).await.unwrap(), Some(stream));
            prop_assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), counters);
            prop_assert_eq!(store.catalog().await.unwrap().settings.get(&setting.0).map(|value| value.to_vec()), Some(setting.1));
            let kept = store.chunks(one, 0, usize::MAX).await.unwrap();
            prop_assert_eq!(kept.iter().map(|chunk| chunk.bytes.to_vec()).collect::<Vec<_>>(), chunks);
            Ok(())
        })?;
    }

    #[test]
    fn any_value_in_any_cells_is_read_or_an_error_with_an_address(
        rounds in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), any_cell()), 1..4), 8),
        records in prop::collection::vec(spoiled(Just(serde_json::to_string(&endpoint(1)).unwrap()), longshore_hostile::JSON_TOKENS), 4),
    ) {
        runtime().block_on(async {
            let (store, _dir, db) = filled().await;
            let columns = columns(&db);
            for cells in rounds {
                for (at, value) in cells {
                    let (table, column) = at.get(&columns);
                    // A constraint may refuse it; then there is nothing to see.
                    let _ = db.execute(&format!("UPDATE OR FAIL {table} SET {column} = ?"), [value]);
                }
                for error in read_all(&store).await {
                    prop_assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
                }
            }
            for record in records {
                let _ = db.execute("UPDATE endpoint SET record = CAST(? AS TEXT)", [record]);
                read_all(&store).await;
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_log_of_which_any_bytes_changed_loses_only_what_follows(
        at in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let files = files();
        runtime().block_on(async {
            let mut log = files.log.clone();
            for (at, change) in at {
                let at = at.index(log.len());
                log[at] ^= change;
            }
            live_with(&files.database, &log, async |store| {
                let jobs = store.jobs(EndpointNo(2), 0, 1_000).await.unwrap();
                let expected: Vec<_> = (1..=jobs.len() as u64).map(|seq| job(2, seq)).collect();
                assert_eq!(jobs, expected, "not a prefix of what was committed");
                assert!(jobs.len() as u64 <= files.commits);
                for row in &jobs {
                    assert!(store.input(row.key).await.unwrap().is_some(), "half a commit is there");
                }
            })
            .await;
        });
    }

    #[test]
    fn files_of_which_any_bytes_changed_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        headers in prop::collection::vec((0..100_usize, any::<u8>()), 0..3),
        whole in any::<bool>(),
    ) {
        let mut database = files().database.clone();
        for (at, byte) in changes {
            let at = at.index(database.len());
            database[at] = byte;
        }
        for (at, byte) in headers {
            database[at] = byte;
        }
        let log = if whole { &files().log[..] } else { &[] };
        runtime().block_on(live_with(&database, log, async |_| {}));
    }

    #[test]
    fn spoiled_files_are_survived(
        database in spoiled(Just(&files().database[..]), TOKENS),
        log in longshore_hostile::bytes(),
    ) {
        runtime().block_on(live_with(&database, &log, async |_| {}));
    }
}
