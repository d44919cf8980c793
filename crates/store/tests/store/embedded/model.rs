//! After any commits, and any number of times that the folder is opened again in between, the embedded store has the rows
//! of the memory store. The log is cut so small that segments come and go all the time.

use bytes::Bytes;
use longshore_disk_faults::Files;
use longshore_hostile::cases;
use longshore_model::{Counters, Durability, EndpointNo, JobKey, JsonRowKind, Millis};
use longshore_store::{
    Batch, EmbeddedStore, MemoryStore, OutcomeRow, Payload, SegmentLimits, Store, StreamRow, WebhookRow,
    Write,
};
use proptest::prelude::*;

use crate::rows::{
    SHARD, api_key, attempt, chunk, claim, endpoint, full_job, job, key, put, put_attempt, template,
};

const ENDPOINTS: u32 = 3;
const JOBS: u64 = 150;
pub(super) const TINY: SegmentLimits = SegmentLimits {
    segment_bytes: 8 << 10,
    ahead_bytes: 64 << 10,
    short_bytes: 6 << 10,
    dead_bytes: 12 << 10,
};

#[derive(Clone, Debug)]
enum Step {
    Commit(Durability, Vec<Write>),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let durability = prop_oneof![Just(Durability::Synced), Just(Durability::Buffered)];
    let commit = (durability, prop::collection::vec(writes(), 1..6))
        .prop_map(|(durability, writes)| Step::Commit(durability, writes.into_iter().flatten().collect()));
    prop::collection::vec(prop_oneof![30 => commit, 1 => Just(Step::Reopen)], 1..160)
}

fn jobs() -> impl Strategy<Value = JobKey> {
    (1..=ENDPOINTS, 1..=JOBS).prop_map(|(endpoint, seq)| key(endpoint, seq))
}

fn payloads() -> impl Strategy<Value = Payload> {
    let bytes = prop_oneof![4 => 0..300_usize, 2 => 400..600_usize, 1 => 2_000..10_000_usize];
    (bytes, any::<u8>()).prop_map(|(bytes, byte)| Payload::Inline(Bytes::from(vec![byte; bytes])))
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    prop_oneof![
        6 => (jobs(), payloads()).prop_map(|(key, input)| {
            vec![put(job(key.endpoint.0, key.seq)), Write::PutInput(key, input)]
        }),
        3 => jobs().prop_map(|key| vec![put(full_job(key.endpoint.0, key.seq))]),
        3 => (jobs(), payloads()).prop_map(|(key, output)| {
            vec![Write::PutOutcome(key, OutcomeRow { output: Some(output), error: Some("e".into()) })]
        }),
        2 => (jobs(), 1..40_u64).prop_map(|(first, count)| {
            (first.seq..first.seq + count).map(|seq| Write::DeleteJob(key(first.endpoint.0, seq))).collect()
        }),
        2 => (jobs(), 0..4_u64, payloads()).prop_map(|(key, offset, bytes)| match bytes {
            Payload::Inline(bytes) => vec![chunk(key, offset, bytes)],
            Payload::Blob(_) => Vec::new(),
        }),
        1 => (jobs(), any::<u32>()).prop_map(|(job, next)| {
            vec![Write::PutStream(job, StreamRow { next: next.into(), consumed: 1, ..StreamRow::default() })]
        }),
        1 => (jobs(), any::<u32>()).prop_map(|(job, attempts)| {
            vec![Write::PutWebhook(WebhookRow { job, attempts, due_at: Millis(7) })]
        }),
        2 => (jobs(), 1..15_u32).prop_map(|(job, n)| vec![put_attempt(job, attempt(n))]),
        2 => (jobs(), 0..4_u8).prop_map(|(job, what)| vec![match what {
            0 => Write::ClearOutcome(job),
            1 => Write::DropChunks(job),
            2 => Write::DeleteStream(job),
            _ => Write::DeleteWebhook(job),
        }]),
        2 => (any::<bool>(), 1..=8_u32, any::<u16>()).prop_map(catalog),
    ]
}

fn catalog((stays, number, value): (bool, u32, u16)) -> Vec<Write> {
    let mut template = template(number.into());
    template.name = value.to_string();
    let mut api_key = api_key(&number.to_string());
    api_key.name = value.to_string();
    let (kind, id, bytes) = (JsonRowKind::Usage, number.to_string(), Bytes::from(value.to_string()));
    if stays {
        vec![
            Write::PutTemplate(Box::new(template)),
            Write::PutSetting(id.clone(), bytes.clone()),
            Write::PutJsonRow(kind, id, bytes),
            Write::PutEndpoint(Box::new(endpoint(number))),
            Write::PutCounters(
                EndpointNo(number % ENDPOINTS),
                Counters { completed: value.into(), ..Counters::default() },
            ),
            Write::PutKey(Box::new(api_key)),
        ]
    } else {
        vec![
            Write::DeleteKey(api_key.id),
            Write::DeleteEndpoint(EndpointNo(number)),
            Write::DeleteJsonRow(kind, id),
            Write::DeleteTemplate(template.id),
        ]
    }
}

/// All that can be read.
async fn content(store: &dyn Store) -> Vec<String> {
    let catalog = store.catalog().await.unwrap();
    let mut content = vec![format!("{catalog:?}")];
    content.extend(catalog.json_rows.iter().map(|record| format!("{:?}", record.json)));
    for endpoint in (1..=ENDPOINTS).map(EndpointNo) {
        content.push(format!("{:?}", store.counters(endpoint).await.unwrap()));
        content.push(format!("{:?}", store.webhooks(endpoint).await.unwrap()));
        content.push(format!("{:?}", store.jobs(endpoint, 0, usize::MAX).await.unwrap()));
        for job in (1..=JOBS).map(|seq| key(endpoint.0, seq)) {
            let (input, outcome) = (store.input(job).await.unwrap(), store.outcome(job).await.unwrap());
            let (stream, chunks) =
                (store.stream(job).await.unwrap(), store.chunks(job, 0, usize::MAX).await.unwrap());
            let attempts = store.attempts(job).await.unwrap();
            content.push(format!("{job:?} {input:?} {outcome:?} {attempts:?} {stream:?} {chunks:?}"));
        }
    }
    content
}

async fn live(steps: Vec<Step>) {
    // In memory: it need not survive anything.
    let dir = Files::default().rebuild().unwrap();
    let model = MemoryStore::new();
    let model_epoch = claim(&model).await;
    let mut store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
    let mut epoch = claim(&store).await;
    for step in steps.into_iter().chain([Step::Reopen]) {
        match step {
            Step::Commit(durability, writes) => {
                let batch = Batch { durability, writes, chain: None };
                model.commit(SHARD, model_epoch, batch.clone()).await.unwrap();
                store.commit(SHARD, epoch, batch).await.unwrap();
            }
            Step::Reopen => {
                assert!(content(&store).await == content(&model).await, "not what was committed");
                drop(store);
                store = EmbeddedStore::open_with(dir.path(), TINY).unwrap();
                let next = claim(&store).await;
                assert_eq!(next.0, epoch.0 + 1);
                epoch = next;
                let (is, should) = (content(&store).await, content(&model).await);
                for (is, should) in is.iter().zip(&should) {
                    assert_eq!(is, should, "not what was there before");
                }
                assert_eq!(is.len(), should.len());
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn it_holds_what_the_memory_store_holds(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(live(steps));
    }
}
