//! A store whose rows are well-formed and inconsistent: the server survives them.

use std::sync::Arc;

use longshore_hostile::cases;
use longshore_model::{
    Attempt, Counters, Durability, EndpointNo, JobId, JobKey, JobRow, JobState, Millis, ShardId, Submitter,
};
use longshore_store::{Batch, MemoryStore, Payload, Store as _, StreamRow, Write};
use proptest::prelude::*;

use super::direct::{Direct, request};

/// Numbers at which sums and differences overflow.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        prop::sample::select(vec![0, 1, 1_700_000_000_000, u64::MAX - 1, u64::MAX, i64::MAX as u64])
    ]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, u32::MAX - 1, u32::MAX])]
}

fn row() -> impl Strategy<Value = JobRow> {
    let state = prop::sample::select(JobState::ALL.to_vec());
    let times = prop::collection::vec(number(), 5);
    let numbers = prop::collection::vec(small(), 6);
    let order = prop_oneof![any::<i64>(), prop::sample::select(vec![i64::MIN, i64::MAX, 0])];
    (any::<[u8; 16]>(), any::<[bool; 7]>(), times, numbers, order, state, 1..=JobKey::SEQ_MAX).prop_map(
        |(raw, flags, times, numbers, order, state, seq)| JobRow {
            key: JobKey { endpoint: EndpointNo(1), seq },
            id: JobId::from_parts(raw, flags[0]),
            state,
            low_priority: flags[1],
            never_taken: flags[2],
            ttl_pinned: flags[3],
            webhook: flags[4],
            webhook_pending: flags[5],
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
            worker: flags[6].then(|| "w-0".parse().unwrap()),
            idempotency: None,
            submitter: Submitter::default(),
            carried: None,
        },
    )
}

async fn live_with(rows: Vec<JobRow>, counters: Counters, stream: StreamRow) {
    let store = Arc::new(MemoryStore::new());
    let first = Direct::start_on(store.clone()).await;
    let shard = ShardId::of(&first.endpoint);
    first.engine.close().await;
    let epoch = store.claim_shards(vec![shard]).await.unwrap()[0];
    let jobs: Vec<JobId> = rows.iter().map(|row| row.id).collect();
    let mut writes = vec![Write::PutCounters(EndpointNo(1), counters)];
    for row in rows {
        writes.push(Write::PutInput(row.key, Payload::Inline("\"input\":{}".into())));
        writes.push(Write::PutStream(row.key, stream));
        writes.push(Write::PutJob(Box::new(row)));
    }
    store.commit(shard, epoch, Batch { durability: Durability::Synced, writes, chain: None }).await.unwrap();

    let server = Direct::again_on(store).await;
    let token = server.engine.worker_token(&server.endpoint);
    for job in jobs {
        for (method, path) in [
            ("GET", format!("/v2/demo/status/{job}")),
            ("GET", "/v2/demo/requests".to_owned()),
            ("GET", "/v2/demo/job-take/w-1".to_owned()),
            ("GET", format!("/v2/demo/ping/w-1?job_id={job}")),
            ("POST", format!("/v2/demo/job-stream/w-1/{job}")),
            ("GET", format!("/v2/demo/stream/{job}?wait=0")),
            ("POST", format!("/v2/demo/job-done/w-1/{job}")),
            ("POST", format!("/v2/demo/cancel/{job}")),
            ("POST", format!("/v2/demo/retry/{job}")),
            ("GET", format!("/v2/demo/status/{job}?ttl=1000")),
            ("GET", "/v2/demo/health".to_owned()),
            ("POST", "/v2/demo/run".to_owned()),
            ("POST", "/v2/demo/purge-queue".to_owned()),
        ] {
            let is_workers = path.contains("/job-") || path.contains("/ping/");
            let body = r#"{"input":{},"output":1}"#;
            let answer = if is_workers {
                server.send(request(method, &path, Some(&token), body)).await
            } else {
                server.ask(method, &path, body).await
            };
            // An endpoint that used its last sequence number is full, and never out of order.
            let is_full = answer.status == 429 && answer.code() == "queue_full";
            assert!(is_full || answer.status.as_u16() < 429, "{method} {path}: {answer:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn rows_that_make_no_sense_are_lived_with(
        mut rows in prop::collection::vec(row(), 1..5),
        counts in prop::collection::vec(number(), 6),
    ) {
        rows.sort_by_key(|row| row.key);
        rows.dedup_by_key(|row| row.key);
        let counters = Counters {
            completed: counts[0],
            failed: counts[1],
            retried: counts[2],
            cancelled: counts[3],
            reserved_seq: counts[4],
            purged_until: Millis(counts[5]),
        };
        // The store refuses larger ones when it reads them from a disk.
        let stream = StreamRow { next: counts[0] >> 1, consumed: counts[1] >> 1 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(live_with(rows, counters, stream));
    }
}
