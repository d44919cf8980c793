//! A data directory with a session of the console, a code for one and a version of an endpoint, stored in the repository:
//! every later version must open it and find the same rows. `tests/fixtures/README.md` has the command that wrote it.

use std::path::Path;

use flate2::read::GzDecoder;
use longshore_model::{ConsoleCode, ConsoleSession, Endpoint, JsonRowKind, Millis};
use longshore_store::{EmbeddedStore, JsonRow, Store as _, Write};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stored_archive::write_archive;
use crate::rows::{claim, commit, endpoint, template};

const ARCHIVE: &[u8] = include_bytes!("../../fixtures/console.tar.gz");

fn session() -> ConsoleSession {
    ConsoleSession {
        id: "0123456789abcdef".to_owned(),
        hash: "0123456789abcdef".repeat(4),
        key: "admin".to_owned(),
        key_hash: "ab".repeat(32),
        opened_at: Millis(5),
        used_at: Millis(6),
        address: "2001:db8::1".parse().ok(),
        agent: Some("Browser \"1\"".to_owned()),
    }
}

fn code() -> ConsoleCode {
    ConsoleCode {
        hash: "cd".repeat(32),
        key: "admin".to_owned(),
        key_hash: "ab".repeat(32),
        expires_at: Millis(u64::MAX),
    }
}

/// A version of endpoint 1, as the engine writes it.
fn version() -> Value {
    let entry =
        json!({ "at": 7, "by": "admin", "fields": [{ "name": "env.A", "from": null, "to": "changed" }] });
    json!({
        "version": 7, "code": "ef".repeat(32), "entries": [entry],
        "content": { "endpoint": endpoint(1), "template": template(1) },
    })
}

/// The rows in the order of their kinds, with their ids.
fn rows() -> Vec<(JsonRowKind, String, Value)> {
    vec![
        (JsonRowKind::ConsoleSession, session().id, serde_json::to_value(session()).unwrap()),
        (JsonRowKind::EndpointVersion, format!("{}/7", endpoint(1).id), version()),
        (JsonRowKind::ConsoleCode, code().hash, serde_json::to_value(code()).unwrap()),
    ]
}

async fn write_to(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    let epoch = claim(&store).await;
    let put =
        |(kind, id, json): (JsonRowKind, String, Value)| Write::PutJsonRow(kind, id, json.to_string().into());
    commit(&store, epoch, rows().into_iter().map(put).collect()).await.unwrap();
}

async fn assert_complete(dir: &Path) {
    let mut found = EmbeddedStore::open(dir).unwrap().catalog().await.unwrap().json_rows;
    found.sort_by_key(|row| row.kind.number());
    let parsed = |row: JsonRow| -> (JsonRowKind, String, Value) {
        (row.kind, row.id, serde_json::from_slice(&row.json).unwrap())
    };
    let mut found: Vec<_> = found.into_iter().map(parsed).collect();
    // Fields of endpoints that came after the directory was stored have their defaults.
    let content = &mut found[1].2["content"]["endpoint"];
    let read: Endpoint = serde_json::from_value(content.take()).unwrap();
    *content = serde_json::to_value(read).unwrap();
    assert_eq!(found, rows());
    assert_eq!(serde_json::from_value::<ConsoleSession>(found[0].2.clone()).unwrap(), session());
    assert_eq!(serde_json::from_value::<ConsoleCode>(found[2].2.clone()).unwrap(), code());
}

#[tokio::test]
async fn a_stored_directory_with_sessions_and_versions_opens() {
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(ARCHIVE)).unpack(dir.path()).unwrap();
    assert_complete(&dir.path().join("data")).await;
}

/// Also writes the archive of this version if `LONGSHORE_WRITE_FIXTURE` names a file.
#[tokio::test]
async fn this_version_writes_the_same_sessions_and_versions() {
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    write_to(&data).await;
    write_archive(&data);
    assert_complete(&data).await;
}
