//! A backup with an endpoint of an earlier version, restored and served: the endpoint has the limits of this version.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longshore_model::{Durability, Endpoint, JsonRowKind, ShardId};
use longshore_store::{Batch, EmbeddedStore, Store as _, Write};

const KEY: &str = "a-key-of-the-operator";
const PATIENCE: Duration = Duration::from_mins(1);
/// The shortest `startPatienceMs` of this version, in ms.
const SHORTEST_MS: u64 = 10_000;

fn longshore(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"LONGSHORE_"))
    {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(dir).env("LONGSHORE_ADMIN_KEY", KEY).stdin(Stdio::null());
    command
}

/// Runs a command to its end and checks that it succeeded.
fn run(arguments: &[&str], dir: &Path) {
    let output = longshore(arguments, dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server that listens.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(dir: &Path, data: &str) -> Self {
        let port_file = dir.join("port");
        let _ = std::fs::remove_file(&port_file);
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--port-file", "port"];
        let mut child =
            longshore(&arguments, dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        let port = loop {
            if let Some(port) =
                std::fs::read_to_string(&port_file).ok().and_then(|text| text.trim().parse().ok())
            {
                break port;
            }
            assert!(child.try_wait().unwrap().is_none(), "the server exited");
            assert!(began.elapsed() < PATIENCE, "the server does not listen");
            std::thread::yield_now();
        };
        Self { child, port }
    }

    /// Sends a request and returns the body of its response, which must be a success.
    fn ask(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 2"), "{method} {path}: {response}");
        serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Sends SIGTERM and waits for the exit.
    fn terminate(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives the endpoint and its stored versions a `startPatienceMs` that an earlier version accepted.
#[tokio::main(flavor = "current_thread")]
async fn shorten_start_patience(data: &Path) {
    let store = EmbeddedStore::open(data).unwrap();
    let catalog = store.catalog().await.unwrap();
    let mut writes: Vec<Write> = catalog
        .endpoints
        .into_iter()
        .map(|endpoint| Write::PutEndpoint(Box::new(Endpoint { start_patience_ms: 500, ..endpoint })))
        .collect();
    let versions = catalog.json_rows.into_iter().filter(|row| row.kind == JsonRowKind::EndpointVersion);
    writes.extend(versions.map(|row| {
        let json = String::from_utf8(row.json.to_vec()).unwrap();
        assert!(json.contains("\"startPatienceMs\":20000"), "{json}");
        let json = json.replace("\"startPatienceMs\":20000", "\"startPatienceMs\":500");
        Write::PutJsonRow(row.kind, row.id, json.into())
    }));
    assert_eq!(writes.len(), 2, "the endpoint and its version");
    let epoch = store.claim_shards(vec![ShardId::CATALOG]).await.unwrap()[0];
    let batch = Batch { durability: Durability::Synced, writes, chain: None };
    store.commit(ShardId::CATALOG, epoch, batch).await.unwrap();
    store.release_shards(vec![(ShardId::CATALOG, epoch)]).await.unwrap();
}

#[test]
fn an_endpoint_of_an_earlier_version_is_restored_within_the_limits_of_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), "data");
    let old = r#"{"slug":"old","startPatienceMs":20000,"template":{"name":"t","imageName":"x"}}"#;
    server.ask("POST", "/v1/endpoints", old);
    server.terminate();
    shorten_start_patience(&dir.path().join("data"));

    run(&["backup", "--data-dir", "data", "--to", "monday.tar.zst"], dir.path());
    run(&["restore", "monday.tar.zst", "--data-dir", "restored"], dir.path());
    let server = Server::start(dir.path(), "restored");
    let patience = |endpoint: &serde_json::Value| endpoint["startPatienceMs"].as_u64();
    assert_eq!(patience(&server.ask("GET", "/v1/endpoints/old", "")), Some(SHORTEST_MS));
    let deploy = r#"{"template":{"env":{"A":"b"}},"endpoint":{"startPatienceMs":30000}}"#;
    assert_eq!(server.ask("POST", "/v1/endpoints/old/deploy", deploy)["version"], 2);
    assert_eq!(patience(&server.ask("GET", "/v1/endpoints/old", "")), Some(30_000));
    server.ask("POST", "/v1/endpoints/old/versions/1/restore", "");
    assert_eq!(patience(&server.ask("GET", "/v1/endpoints/old", "")), Some(SHORTEST_MS));
    server.ask("POST", "/v2/old/run", r#"{"input":{}}"#);
    server.terminate();
}
