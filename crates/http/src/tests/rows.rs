//! A store whose rows are well-formed and inconsistent: the server answers every request without a panic or a 5xx.

use std::sync::Arc;

use longshore_hostile::{cases, extreme_u64, job_row};
use longshore_model::{Counters, Durability, EndpointNo, JobId, JobRow, Millis, ShardId};
use longshore_store::{Batch, MemoryStore, Payload, Store as _, StreamRow, Write};
use proptest::prelude::*;

use super::direct::{Direct, request};

/// Starts a server on these rows and sends it every kind of request for each job.
async fn request_all(rows: Vec<JobRow>, counters: Counters, stream: StreamRow) {
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
            let is_worker = path.contains("/job-") || path.contains("/ping/");
            let body = r#"{"input":{},"output":1}"#;
            let answer = if is_worker {
                server.send(request(method, &path, Some(&token), body)).await
            } else {
                server.ask(method, &path, body).await
            };
            // An endpoint that used its last sequence number rejects submits as a full queue.
            let is_full = answer.status == 429 && answer.code() == "queue_full";
            assert!(is_full || answer.status.as_u16() < 429, "{method} {path}: {answer:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn inconsistent_rows_cause_no_server_error(
        mut rows in prop::collection::vec(job_row(), 1..5),
        counts in prop::collection::vec(extreme_u64(), 6),
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
        let stream = StreamRow { next: counts[0] >> 1, consumed: counts[1] >> 1, ..StreamRow::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(request_all(rows, counters, stream));
    }
}
