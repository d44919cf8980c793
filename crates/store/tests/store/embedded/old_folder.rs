//! A data directory of a version whose jobs had no API key and no owner: every row is still there.
//!
//! The archive has the directory `data` as that version left it, and `expected.json`: what that version returned per job.

use std::collections::BTreeMap;

use flate2::read::GzDecoder;
use longshore_model::{EndpointNo, JobState, JsonRowKind, OwnerNo, Submitter, WorkerId};
use longshore_store::{EmbeddedStore, Payload, Store as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rows::{claim, commit, put};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/before-owners.tar.gz");

fn unpacked() -> (TempDir, Value) {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    let expected = std::fs::read(dir.path().join("expected.json")).unwrap();
    (dir, serde_json::from_slice(&expected).unwrap())
}

#[tokio::test]
async fn every_job_is_there_and_belongs_to_the_server() {
    let (dir, expected) = unpacked();
    let store = EmbeddedStore::open(&dir.path().join("data")).unwrap();
    let mut rows = store.jobs(EndpointNo(1), 0, 100).await.unwrap();
    rows.extend(store.jobs(EndpointNo(2), 0, 100).await.unwrap());
    let rows: BTreeMap<String, _> = rows.into_iter().map(|row| (row.id.to_string(), row)).collect();
    let jobs = expected["jobs"].as_object().unwrap();
    assert_eq!(rows.len(), jobs.len());
    let mut states: Vec<JobState> = Vec::new();
    for (name, job) in jobs {
        let (row, record) = (&rows[job["id"].as_str().unwrap()], &job["record"]);
        assert_eq!(record["status"], row.state.as_str(), "{name}");
        assert_eq!((row.submitter, &row.carried), (Submitter::default(), &None), "{name}");
        assert_eq!(row.worker.as_ref().map(WorkerId::as_str), record["workerId"].as_str(), "{name}");
        assert_eq!(row.idempotency.is_some(), name == "queued_once");
        assert_eq!(row.low_priority, name == "queued_low");
        assert_eq!(row.webhook_pending, name == "webhook_owed");
        assert!(store.input(row.key).await.unwrap().is_some(), "{name}");
        let outcome = store.outcome(row.key).await.unwrap();
        let error = outcome.as_ref().and_then(|outcome| outcome.error.as_deref());
        assert_eq!(error, record["error"].as_str(), "{name}");
        match outcome.and_then(|outcome| outcome.output) {
            Some(Payload::Inline(text)) => {
                assert_eq!(record["output"], serde_json::from_slice::<Value>(&text).unwrap(), "{name}");
            }
            Some(Payload::Blob(file)) => assert_eq!((name.as_str(), file.bytes), ("large", 300_002)),
            None => assert!(record["output"].is_null(), "{name}"),
        }
        states.push(row.state);
    }
    states.sort();
    states.dedup();
    assert_eq!(states, JobState::ALL, "there is a job in every state");
    for (name, chunks) in [("completed", json!(["one", { "two": 2.0 }])), ("running", json!(["so far"]))] {
        let row = &rows[jobs[name]["id"].as_str().unwrap()];
        let kept = store.chunks(row.key, 0, 1_000).await.unwrap();
        let values = kept.iter().map(|chunk| serde_json::from_slice::<Value>(&chunk.bytes).unwrap());
        assert_eq!(Value::Array(values.collect()), chunks, "{name}");
    }
    assert_eq!(store.webhooks(EndpointNo(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_catalog_is_there_and_every_key_is_the_servers() {
    let (dir, expected) = unpacked();
    let store = EmbeddedStore::open(&dir.path().join("data")).unwrap();
    let catalog = store.catalog().await.unwrap();
    let ids = |name: &str| expected[name].as_str().unwrap().to_owned();
    let endpoints: Vec<_> = catalog.endpoints.iter().map(|endpoint| endpoint.id.to_string()).collect();
    assert_eq!(endpoints, [ids("endpoint"), ids("other")]);
    assert_eq!(catalog.templates[0].id.to_string(), ids("template"));
    let keys: Vec<_> = catalog.keys.iter().map(|key| key.id.as_str()).collect();
    let made = |name: &str| expected["keys"][name]["id"].as_str().unwrap();
    assert_eq!(keys, ["admin", made("website"), made("reader")]);
    assert!(catalog.keys.iter().all(|key| key.owner == OwnerNo::SERVER && key.submitter().key.is_some()));
    let of = |kind| catalog.json_rows.iter().filter(|record| record.kind == kind).count();
    assert_eq!(
        (of(JsonRowKind::RegistryAuth), of(JsonRowKind::NetworkVolume), of(JsonRowKind::Owner)),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn old_rows_are_written_again_as_they_were() {
    let (dir, _) = unpacked();
    let folder = dir.path().join("data");
    let store = EmbeddedStore::open(&folder).unwrap();
    let rows = store.jobs(EndpointNo(1), 0, 100).await.unwrap();
    let epoch = claim(&store).await;
    commit(&store, epoch, rows.iter().cloned().map(put).collect()).await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(&folder).unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 100).await.unwrap(), rows);
}
