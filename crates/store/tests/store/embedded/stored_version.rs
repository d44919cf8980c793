//! A data directory of version 0.1.0, stored in the repository: every later version must open it and find the same rows.
//!
//! The rows are written out here and never change. A field that a later version adds has its value of `JobRow::queued` in
//! them. A version that adds a job field or a kind of record adds an archive of its own; `tests/fixtures/README.md` has
//! the command.

use std::path::Path;

use flate2::read::GzDecoder;
use longshore_model::{
    Attempt, Counters, EndpointNo, Epoch, Idempotency, JobId, JobRow, JobState, JsonRowKind, KeyId, Millis,
    OwnerNo, Submitter,
};
use longshore_store::{
    BlobRef, EmbeddedStore, JsonRow, OutcomeRow, Payload, SegmentLimits, Store as _, StreamRow, WebhookRow,
    Write,
};
use tempfile::TempDir;

use super::stored_archive::write_archive;
use crate::rows::{SHARD, api_key, chunk, claim, commit, endpoint, inline, key, put, template};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/job-fields.tar.gz");
/// Several segments, of which the first ones are sealed.
const LIMITS: SegmentLimits =
    SegmentLimits { segment_bytes: 8 << 10, ahead_bytes: 4 << 10, short_bytes: 0, dead_bytes: 1 << 30 };
const AT: Millis = Millis(1_700_000_000_000);
const LARGE_BYTES: usize = 5_000;

fn queued(seq: u64) -> JobRow {
    JobRow::queued(key(1, seq), JobId::mint(AT, u128::from(seq), false), AT)
}

/// The rows of the jobs 1 to 5 of endpoint 1.
fn rows() -> [JobRow; 5] {
    let plain = JobRow {
        delete_at: AT + 86_400_000,
        ttl_ms: 86_400_000,
        execution_timeout_ms: 600_000,
        input_bytes: 13,
        ..queued(1)
    };
    let keyed = JobRow {
        low_priority: true,
        idempotency: Some(Box::new(Idempotency {
            key: "order-17".into(),
            fingerprint: *b"0123456789abcdef",
        })),
        submitter: Submitter { owner: OwnerNo(7), key: KeyId::from_number(0x0123_4567_89ab_cdef) },
        order: -3,
        ..JobRow { key: key(1, 2), id: JobId::mint(AT, 2, true), ..plain.clone() }
    };
    let running = JobRow {
        state: JobState::InProgress,
        never_taken: false,
        retries: 1,
        redeliveries: 2,
        attempt: Attempt(3),
        enqueued_at: AT + 10,
        started_at: AT + 20,
        worker: Some("wk-1.a:b_C".parse().unwrap()),
        submitter: Submitter { owner: OwnerNo::SERVER, key: KeyId::parse("admin") },
        ..JobRow { key: key(1, 3), id: JobId::mint(AT, 3, false), order: 3, ..plain.clone() }
    };
    let failed = JobRow {
        state: JobState::Failed,
        ttl_pinned: true,
        webhook: true,
        webhook_pending: true,
        finished_at: AT + 30,
        delete_at: Millis::MAX,
        ..JobRow { key: key(1, 4), id: JobId::mint(AT, 4, false), ..running.clone() }
    };
    let newer = JobRow {
        state: JobState::Completed,
        // A reserved field and one of a later version.
        carried: Some([6, 0, 0x80, 1, 3, 0xff, 0, 1].into()),
        ..JobRow { key: key(1, 5), id: JobId::mint(AT, 5, false), ..failed.clone() }
    };
    [plain, keyed, running, failed, newer]
}

fn large() -> Payload {
    Payload::Inline((0..LARGE_BYTES).map(|at| (at * 7) as u8).collect::<Vec<_>>().into())
}

fn blob() -> Payload {
    Payload::Blob(BlobRef { name: "1/x.input.sum-0123456789abcdef".into(), bytes: 300_000 })
}

fn counters() -> Counters {
    Counters { completed: 1, failed: 1, retried: 2, cancelled: 3, reserved_seq: 1_000, purged_until: AT + 1 }
}

/// Writes the rows to a new data directory, one commit per job.
async fn write_to(dir: &Path) {
    let store = EmbeddedStore::open_with(dir, LIMITS).unwrap();
    let epoch = claim(&store).await;
    assert_eq!(epoch, Epoch(1));
    let catalog = vec![
        Write::PutEndpoint(Box::new(endpoint(1))),
        Write::PutEndpoint(Box::new(endpoint(2))),
        Write::PutTemplate(Box::new(template(1))),
        Write::PutKey(Box::new(api_key("k"))),
        Write::PutSetting("name".into(), "value".into()),
        Write::PutJsonRow(JsonRowKind::Usage, "u".into(), "{}".into()),
        Write::PutCounters(EndpointNo(1), counters()),
        Write::DeleteEndpoint(EndpointNo(2)),
    ];
    commit(&store, epoch, catalog).await.unwrap();
    let inputs = [inline("\"prompt\":\"a\""), large(), blob(), large(), inline("")];
    for (row, input) in rows().into_iter().zip(inputs) {
        let job = row.key;
        commit(&store, epoch, vec![put(row), Write::PutInput(job, input)]).await.unwrap();
    }
    let outcome = OutcomeRow { output: Some(large()), error: Some("out of memory".into()) };
    let due = WebhookRow { job: key(1, 4), attempts: 2, due_at: AT + 40 };
    let results = vec![
        chunk(key(1, 3), 0, "\"one\""),
        chunk(key(1, 3), 1, vec![b'x'; 600]),
        Write::PutStream(key(1, 3), StreamRow { next: 2, consumed: 1, ..StreamRow::default() }),
        Write::PutOutcome(key(1, 4), outcome),
        Write::PutWebhook(due),
        put(JobRow { key: key(1, 6), ..queued(6) }),
        put(JobRow { key: key(1, 7), ..queued(7) }),
    ];
    commit(&store, epoch, results).await.unwrap();
    commit(&store, epoch, vec![Write::DeleteJob(key(1, 6)), Write::DeleteJob(key(1, 7))]).await.unwrap();
}

/// Opens the data directory and compares everything in it with what [`write_to`] writes.
async fn assert_complete(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 100).await.unwrap(), rows());
    let inputs = [inline("\"prompt\":\"a\""), large(), blob(), large(), inline("")];
    for (seq, input) in (1..).zip(inputs) {
        assert_eq!(store.input(key(1, seq)).await.unwrap(), Some(input), "job {seq}");
    }
    let outcome = store.outcome(key(1, 4)).await.unwrap().unwrap();
    assert_eq!((outcome.output, outcome.error.as_deref()), (Some(large()), Some("out of memory")));
    assert_eq!(
        store.stream(key(1, 3)).await.unwrap(),
        Some(StreamRow { next: 2, consumed: 1, ..StreamRow::default() })
    );
    let chunks = store.chunks(key(1, 3), 0, usize::MAX).await.unwrap();
    let chunks: Vec<_> = chunks.iter().map(|chunk| (chunk.offset, chunk.bytes.len())).collect();
    assert_eq!(chunks, [(0, 5), (1, 600)]);
    let due = WebhookRow { job: key(1, 4), attempts: 2, due_at: AT + 40 };
    assert_eq!(store.webhooks(EndpointNo(1)).await.unwrap(), [due]);
    assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), counters());
    let catalog = store.catalog().await.unwrap();
    let slugs: Vec<_> = catalog.endpoints.iter().map(|endpoint| endpoint.slug.clone()).collect();
    assert_eq!((&slugs[..], catalog.last_endpoint_no), (&[Some("slug-1".to_owned())][..], 2));
    assert_eq!((catalog.templates[0].name.as_str(), catalog.keys[0].id.as_str()), ("t1", "k"));
    assert_eq!(catalog.settings["name"], "value");
    let usage = JsonRow { kind: JsonRowKind::Usage, id: "u".into(), json: "{}".into() };
    assert_eq!(catalog.json_rows, [usage]);
}

#[tokio::test]
async fn a_stored_directory_of_version_0_1_0_opens() {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    let data = dir.path().join("data");
    assert_complete(&data).await;
    // The rows survive being written by this version.
    let store = EmbeddedStore::open(&data).unwrap();
    let epochs = store.claim_shards(vec![SHARD]).await.unwrap();
    assert_eq!(epochs, [Epoch(2)]);
    let again = rows().into_iter().map(put).collect();
    commit(&store, epochs[0], again).await.unwrap();
    drop(store);
    assert_complete(&data).await;
}

/// Also writes the archive of this version if `LONGSHORE_WRITE_FIXTURE` names a file.
#[tokio::test]
async fn this_version_writes_the_same_rows() {
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    write_to(&data).await;
    write_archive(&data);
    assert_complete(&data).await;
}
