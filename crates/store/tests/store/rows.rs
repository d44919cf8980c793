//! Rows for tests, and short ways to write them.

use bytes::Bytes;
use longshore_model::{
    ApiKey, Attempt, AttemptEnd, Durability, EndedAttempt, Endpoint, EndpointId, EndpointNo, Epoch,
    Idempotency, JobId, JobKey, JobRow, JobState, KeyId, KeyScope, Millis, OwnerNo, ShardId, Submitter,
    Template, TemplateId, TraceContext,
};
use longshore_store::{Batch, ChunkRow, Payload, Store, StoreError, Write};

pub const SHARD: ShardId = ShardId(7);

/// Claims the shard of these tests.
pub async fn claim(store: &dyn Store) -> Epoch {
    store.claim_shards(vec![SHARD]).await.unwrap()[0]
}

pub fn batch(writes: Vec<Write>) -> Batch {
    Batch { durability: Durability::Synced, writes, chain: None }
}

pub async fn commit(store: &dyn Store, epoch: Epoch, writes: Vec<Write>) -> Result<(), StoreError> {
    store.commit(SHARD, epoch, batch(writes)).await
}

pub fn key(endpoint: u32, seq: u64) -> JobKey {
    JobKey { endpoint: EndpointNo(endpoint), seq }
}

/// A job as submitted, with an input of 12 bytes.
pub fn job(endpoint: u32, seq: u64) -> JobRow {
    let id = JobId::mint(Millis(seq), u128::from(endpoint), false);
    JobRow { input_bytes: 12, ..JobRow::queued(key(endpoint, seq), id, Millis(1_000 + seq)) }
}

/// A job of which no field has its default, and every number differs. Written out in full, so that a new field is added
/// here and passes through every test of the store.
pub fn full_job(endpoint: u32, seq: u64) -> JobRow {
    JobRow {
        key: key(endpoint, seq),
        id: JobId::mint(Millis(u64::MAX), u128::MAX - u128::from(seq), true),
        state: JobState::TimedOut,
        low_priority: true,
        never_taken: false,
        ttl_pinned: true,
        webhook: true,
        webhook_pending: true,
        retries: 201,
        redeliveries: 202,
        attempt: Attempt(u32::MAX),
        order: i64::MIN,
        created_at: Millis(101),
        enqueued_at: Millis(102),
        started_at: Millis(103),
        finished_at: Millis(104),
        first_chunk_at: Millis(106),
        retried_at: Millis(105),
        delete_at: Millis::MAX,
        ttl_ms: u32::MAX,
        execution_timeout_ms: u32::MAX - 1,
        input_bytes: u32::MAX - 2,
        worker: Some("wk-1.a:b_C".parse().unwrap()),
        gpu: Some("NVIDIA H100, \"ü\"".into()),
        progress: Some([0, 7, 7, u32::MAX].into()),
        idempotency: Some(Box::new(Idempotency {
            key: "ключ\0\"'".into(),
            fingerprint: *b"0123456789abcdef",
        })),
        submitter: Submitter { owner: OwnerNo(u32::MAX), key: KeyId::from_number(u64::MAX) },
        trace: Some(Box::new(TraceContext::new([1; 16], [2; 8], true))),
        // A reserved field of no bytes, and one of a later version.
        carried: Some([6, 0, 0x80, 1, 3, 0xff, 0, 1].into()),
    }
}

/// An ended attempt of which no field has its default.
pub fn attempt(n: u32) -> EndedAttempt {
    EndedAttempt {
        n: Attempt(n),
        worker: Some("wk-1.a:b_C".parse().unwrap()),
        gpu: Some("NVIDIA H100".into()),
        taken_at: Millis(1_000 + u64::from(n)),
        ended_at: Millis(2_000 + u64::from(n)),
        end: AttemptEnd::WorkerLost,
        reason: format!("signal 9, attempt {n}: \0 \"ü\"").into(),
    }
}

pub fn put_attempt(job: JobKey, attempt: EndedAttempt) -> Write {
    Write::PutAttempt(job, Box::new(attempt))
}

pub fn put(row: JobRow) -> Write {
    Write::PutJob(Box::new(row))
}

pub fn inline(text: &'static str) -> Payload {
    Payload::Inline(Bytes::from_static(text.as_bytes()))
}

pub fn chunk(job: JobKey, offset: u64, bytes: impl Into<Bytes>) -> Write {
    Write::AppendChunk(job, ChunkRow { offset, bytes: bytes.into() })
}

pub fn endpoint(no: u32) -> Endpoint {
    let id = EndpointId::mint(u128::from(no));
    let template_id = TemplateId::mint(1);
    let record = format!(
        r#"{{"id":"{id}","no":{no},"name":"e{no}","slug":"slug-{no}","templateId":"{template_id}","workersMin":1,
        "workersMax":3,"idleTimeout":5,"scalerType":"REQUEST_COUNT","scalerValue":4,"executionTimeoutMs":600000,
        "maxRetries":3,"retryOn":["workerLost"],"resultRetentionMs":1,"syncResultRetentionMs":2,
        "maxQueueLength":9,"provider":"docker","maxConcurrency":2,"durability":"buffered","flashboot":true,
        "computeType":"CPU","gpuCount":1,"gpuTypeIds":["a","b"],"vcpuCount":2,"version":7,"createdAt":5,
        "userId":"u"}}"#
    );
    serde_json::from_str(&record).unwrap()
}

pub fn template(number: u128) -> Template {
    let record = format!(
        r#"{{"id":"{}","name":"t{number}","imageName":"i","env":{{"A":"ü\""}},"category":"CPU",
        "containerDiskInGb":1,"volumeInGb":2,"volumeMountPath":"/w","createdAt":3}}"#,
        TemplateId::mint(number)
    );
    serde_json::from_str(&record).unwrap()
}

pub fn api_key(id: &str) -> ApiKey {
    let scopes = vec![KeyScope::manage_all(), KeyScope::Jobs { endpoint_ids: vec![EndpointId::mint(3)] }];
    ApiKey {
        expires_at: Some(Millis(2)),
        disabled: true,
        ..ApiKey::new(id.into(), format!("key {id}"), "ab".repeat(32), scopes, Millis(1))
    }
}
