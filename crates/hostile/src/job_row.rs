//! Rows of jobs that are well-formed and need not be consistent.

use longshore_model::{
    Attempt, EndpointNo, Idempotency, JobId, JobKey, JobRow, JobState, KeyId, Millis, OwnerNo, Submitter,
    TraceContext,
};
use proptest::prelude::*;

use crate::text;

/// Generates rows of endpoint 1 with any sequence number. The other fields are independent of each other: the state, the
/// times and the counts of a row can contradict each other. Times and counts are often at the edges of their types.
pub fn job_row() -> impl Strategy<Value = JobRow> {
    let numbers = (
        any::<[bool; 6]>(),
        prop::collection::vec(extreme_u64(), 6),
        prop::collection::vec(extreme_u32(), 6),
        prop_oneof![any::<i64>(), prop::sample::select(vec![i64::MIN, i64::MAX, 0])],
    );
    let state = prop::sample::select(JobState::ALL.to_vec());
    (any::<[u8; 16]>(), 1..=JobKey::SEQ_MAX, state, numbers, texts(), submitter()).prop_map(
        |(raw, seq, state, (flags, times, numbers, order), (worker, idempotency, carried), submitter)| {
            let key = JobKey { endpoint: EndpointNo(1), seq };
            JobRow {
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
                enqueued_at: Millis(times[1]),
                started_at: Millis(times[2]),
                finished_at: Millis(times[3]),
                retried_at: Millis(times[5]),
                delete_at: Millis(times[4]),
                ttl_ms: numbers[3],
                execution_timeout_ms: numbers[4],
                input_bytes: numbers[5],
                worker: worker.and_then(|worker| worker.parse().ok()),
                idempotency,
                submitter,
                trace: flags[0]
                    .then(|| Box::new(TraceContext::new([numbers[0] as u8 | 1; 16], [1; 8], flags[1]))),
                carried,
                ..JobRow::queued(key, JobId::from_parts(raw, flags[0]), Millis(times[0]))
            }
        },
    )
}

/// Generates numbers, often those at which sums and differences overflow, and a time in ms as of 2023.
pub fn extreme_u64() -> impl Strategy<Value = u64> {
    let edges = vec![0, 1, 1_700_000_000_000, u64::MAX - 1, u64::MAX, i64::MAX as u64];
    prop_oneof![any::<u64>(), prop::sample::select(edges)]
}

fn extreme_u32() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, u32::MAX - 1, u32::MAX])]
}

type Texts = (Option<String>, Option<Box<Idempotency>>, Option<Box<[u8]>>);

/// The optional fields: the worker's id, the idempotency and the fields that this version does not know.
fn texts() -> impl Strategy<Value = Texts> {
    let worker = prop_oneof![Just("w-0".to_owned()), "[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}"];
    let idempotency = (text(), any::<[u8; 16]>())
        .prop_map(|(key, fingerprint)| Box::new(Idempotency { key: key.into(), fingerprint }));
    // Each is a sequence of unknown fields in the store's encoding.
    let carried = [&[3, 1, 5][..], &[4, 0, 5, 1, 0], &[64, 2, 0, 0xff], &[0xff, 0x7f, 0]];
    let carried = prop::sample::select(carried.map(Box::<[u8]>::from).to_vec());
    (prop::option::of(worker), prop::option::of(idempotency), prop::option::of(carried))
}

fn submitter() -> impl Strategy<Value = Submitter> {
    (any::<u32>(), any::<u64>())
        .prop_map(|(owner, key)| Submitter { owner: OwnerNo(owner), key: KeyId::from_number(key) })
}
