//! Records that no version of the program wrote, in frames that are whole: opening or reading them is an error with an
//! address, never a panic.

use std::fs;
use std::path::Path;

use longshore_disk_faults::Files;
use longshore_model::{Counters, EndpointNo, JsonRowKind, Millis};
use longshore_store::{EmbeddedStore, OutcomeRow, Store, StoreError, StreamRow, WebhookRow, Write};

use super::fresh;
use super::segment::Segment;
use crate::rows::{
    api_key, attempt, chunk, claim, commit, endpoint, full_job, inline, key, put, put_attempt, template,
};

/// The only segment of a store with one of everything in it, and what was committed in its last frame.
pub(super) async fn filled() -> Segment {
    let (store, dir) = fresh();
    let epoch = claim(&store).await;
    let one = key(1, 1);
    let writes = vec![
        put(full_job(1, 1)),
        Write::PutInput(one, longshore_store::Payload::Inline(vec![7; 600].into())),
        Write::PutOutcome(one, OutcomeRow { output: Some(inline("out")), error: Some("e".into()) }),
        put_attempt(one, attempt(1)),
        Write::PutStream(one, StreamRow { next: 1, consumed: 0, ..StreamRow::default() }),
        chunk(one, 0, "chunk"),
        Write::PutWebhook(WebhookRow { job: one, attempts: 1, due_at: Millis(1) }),
        Write::PutCounters(EndpointNo(1), Counters::default()),
        Write::PutEndpoint(Box::new(endpoint(1))),
        Write::PutTemplate(Box::new(template(1))),
        Write::PutKey(Box::new(api_key("k"))),
        Write::PutSetting("s".into(), "v".into()),
        Write::PutJsonRow(JsonRowKind::Usage, "u".into(), "{}".into()),
        Write::DeleteJob(key(2, 1)),
        Write::ClearOutcome(key(2, 1)),
        Write::DropChunks(key(2, 1)),
        Write::DeleteStream(key(2, 1)),
        Write::DeleteWebhook(key(2, 1)),
        Write::DeleteTemplate(longshore_model::TemplateId::mint(9)),
    ];
    commit(&store, epoch, writes).await.unwrap();
    drop(store);
    Segment::new(fs::read(dir.path().join("log/0000000001.log")).unwrap())
}

/// Reads everything; the errors that came.
pub(super) async fn read_all(store: &EmbeddedStore) -> Vec<StoreError> {
    let one = key(1, 1);
    let results = [
        store.catalog().await.map(drop),
        store.counters(EndpointNo(1)).await.map(drop),
        store.jobs(EndpointNo(1), 0, 10_000).await.map(drop),
        store.webhooks(EndpointNo(1)).await.map(drop),
        store.input(one).await.map(drop),
        store.outcome(one).await.map(drop),
        store.attempts(one).await.map(drop),
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

/// Opens a folder with this segment in it, reads everything and goes on writing. Whether anything was refused.
pub(super) async fn live_with(segment: &[u8]) -> bool {
    let dir = Files::default().rebuild().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/0000000001.log"), segment).unwrap();
    live_in(dir.path()).await
}

/// As [`live_with`], with what is there.
pub(super) async fn live_in(dir: &Path) -> bool {
    let store = match EmbeddedStore::open(dir) {
        Ok(store) => store,
        Err(error) => {
            let StoreError::Unusable(text) = &error else { panic!("{error:?}") };
            assert!(text.contains(dir.to_str().unwrap()), "{text}");
            return true;
        }
    };
    let errors = read_all(&store).await;
    for error in &errors {
        assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    }
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(full_job(3, 1)), Write::DeleteJob(key(1, 1))]).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(3), 0, 10).await.unwrap(), [full_job(3, 1)]);
    !errors.is_empty()
}

/// The bits of a byte that are changed.
const CHANGES: [u8; 3] = [0x01, 0x80, 0xff];

#[tokio::test]
async fn any_byte_of_any_record_may_be_nonsense() {
    let whole = filled().await;
    let records = whole.records().pop().unwrap();
    assert!(!live_with(&whole.bytes).await);
    let end = whole.end();
    let mut refused = 0;
    for pass in 0..passes() {
        for at in records.clone() {
            let mut segment = whole.clone();
            segment.bytes.truncate(end);
            segment.bytes[at] ^= CHANGES[(at + pass) % CHANGES.len()];
            segment.seal(&records);
            refused += usize::from(live_with(&segment.bytes).await);
        }
    }
    // The others changed a number or a letter to another one.
    assert!(refused > records.len() * passes() / 6, "{refused} of {}", records.len() * passes());
}

/// How often each byte is changed: once in an ordinary run, in each way with `LONGSHORE_DAMAGE_STEP=1`.
fn passes() -> usize {
    if std::env::var("LONGSHORE_DAMAGE_STEP").is_ok_and(|step| step == "1") { CHANGES.len() } else { 1 }
}

#[tokio::test]
async fn records_may_be_cut_off() {
    let whole = filled().await;
    let records = whole.records().pop().unwrap();
    for end in records.clone().skip(1).step_by(3) {
        let mut segment = whole.clone();
        segment.bytes.truncate(end);
        let bytes = (end - records.start) as u32;
        segment.bytes[records.start - 16..records.start - 12].copy_from_slice(&bytes.to_le_bytes());
        segment.bytes[records.start - 12..records.start - 8].copy_from_slice(&[0; 4]);
        segment.seal(&(records.start..end));
        live_with(&segment.bytes).await;
    }
}

#[tokio::test]
async fn secrets_are_in_no_error() {
    let whole = filled().await;
    let records = whole.records().pop().unwrap();
    let at = whole.bytes.windows(7).position(|bytes| bytes == b"\"env\":{").unwrap();
    let mut segment = whole.clone();
    segment.bytes[at] = b'?';
    segment.seal(&records);
    let dir = Files::default().rebuild().unwrap();
    fs::create_dir(dir.path().join("log")).unwrap();
    fs::write(dir.path().join("log/0000000001.log"), &segment.bytes).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let text = store.catalog().await.unwrap_err().to_string();
    assert!(text.contains("class 2") && !text.contains('ü') && !text.contains("env"), "{text}");
}
