//! Tables of earlier and later versions, and who may change them.

use longshore_model::{EndpointNo, RequestNo};
use longshore_postgres::{Database, PostgresStore, SchemaVersions, migrate_database, versions};
use longshore_store::{Store as _, StreamRow, Write, encode_job_row};

use crate::faults::eventually;
use crate::harness::shared;
use crate::rows::{claim, commit, job, key, put};

/// Makes tables as the first version had them, with one job and its stream.
async fn of_version_two(schema: &str) -> Database {
    let client = shared().client().await;
    let schema_of_two = format!(
        "CREATE SCHEMA {schema}; SET search_path = {schema}; \
         CREATE TABLE migration (version int4 PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now()); \
         INSERT INTO migration (version, name) VALUES (1, 'rows'), (2, 'commit');"
    );
    client.batch_execute(&schema_of_two).await.unwrap();
    client.batch_execute(include_str!("../../src/schema/0001_rows.sql")).await.unwrap();
    client.batch_execute(include_str!("../../src/schema/0002_commit.sql")).await.unwrap();
    let row = encode_job_row(&job(1, 1));
    client.execute("INSERT INTO job (endpoint, seq, row) VALUES (1, 1, $1)", &[&row]).await.unwrap();
    let sql = "INSERT INTO stream (endpoint, seq, next, consumed) VALUES (1, 1, 3, 2)";
    client.execute(sql, &[]).await.unwrap();
    shared().database().with_schema(schema)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_tables_are_brought_up_to_date_with_their_rows() {
    for (schema, by_hand) in [("earlier_by_hand", true), ("earlier_at_start", false)] {
        let database = of_version_two(schema).await;
        let before = versions(&database).await.unwrap();
        assert_eq!(before.present, 2);
        if by_hand {
            assert_eq!(migrate_database(&database).await.unwrap(), before);
        }
        let store = PostgresStore::open(database.clone()).await.unwrap();
        let after = SchemaVersions { present: before.known, known: before.known };
        assert_eq!(versions(&database).await.unwrap(), after);
        assert_eq!(migrate_database(&database).await.unwrap(), after, "also while a server runs");
        assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
        let mut stream = StreamRow { next: 3, consumed: 2, ..StreamRow::default() };
        assert_eq!(store.stream(key(1, 1)).await.unwrap(), Some(stream));
        stream.posts.push(RequestNo::from_entropy(7));
        let epoch = claim(&store).await;
        commit(&store, epoch, vec![put(job(1, 2)), Write::PutStream(key(1, 1), stream)]).await.unwrap();
        assert_eq!(store.stream(key(1, 1)).await.unwrap(), Some(stream));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_may_do_with_jobs_stays_when_their_table_is_made_anew() {
    let database = of_version_two("earlier_with_rights").await;
    let client = shared().client().await;
    let grant = "CREATE ROLE \"who reads\"; SET search_path = earlier_with_rights; GRANT SELECT, UPDATE ON job TO \"who reads\"";
    client.batch_execute(grant).await.unwrap();
    migrate_database(&database).await.unwrap();
    for (right, is_given) in [("SELECT", true), ("UPDATE", true), ("DELETE", false)] {
        let has = "SELECT has_table_privilege('who reads', 'job', $1)";
        assert_eq!(client.query_one(has, &[&right]).await.unwrap().get::<_, bool>(0), is_given, "{right}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_programs_one_makes_the_tables_and_the_others_wait() {
    let database = shared().database();
    let programs: Vec<_> = (0..4)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { migrate_database(&database).await.unwrap() })
        })
        .collect();
    let mut made = 0;
    for program in programs {
        let found = program.await.unwrap();
        made += usize::from(found.present == 0);
        assert!(found.present == 0 || found.present == found.known, "{found:?}");
    }
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_a_migration_that_another_program_has_begun() {
    let database = shared().database().with_schema("being_migrated");
    let other = shared().client().await;
    let lock =
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('longshore migration being_migrated', 0))";
    other.batch_execute(lock).await.unwrap();
    let start = tokio::spawn(PostgresStore::open(database));
    eventually("the start waits", async || {
        let client = shared().client().await;
        let waits = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
            WHERE locktype = 'advisory' AND NOT granted AND query LIKE '%longshore.schema%'";
        client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) >= 1
    })
    .await;
    assert!(!start.is_finished());
    other.batch_execute("COMMIT").await.unwrap();
    start.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_make_tables_uses_those_that_another_one_made() {
    let client = shared().client().await;
    client.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    let database = |user: &str| {
        let url = format!("postgres://{user}@/postgres?host={}", shared().folder.display());
        Database::parse(&url).unwrap().with_schema("of_an_admin")
    };
    let refusal = PostgresStore::open(database("app")).await.unwrap_err().to_string();
    assert!(refusal.contains("permission denied") && refusal.contains("`longshore migrate`"), "{refusal}");
    migrate_database(&database("postgres")).await.unwrap();
    let refusal = versions(&database("app")).await.unwrap_err().to_string();
    assert!(refusal.contains("permission denied for schema of_an_admin"), "{refusal}");
    // As in the manual.
    let grants = "GRANT USAGE ON SCHEMA of_an_admin TO app; \
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA of_an_admin TO app; \
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA of_an_admin TO app;";
    client.batch_execute(grants).await.unwrap();
    let store = PostgresStore::open(database("app")).await.unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
}
