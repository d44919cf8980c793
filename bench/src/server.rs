//! A Longshore server that is measured: a process with an empty data directory, and its endpoints.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cores::Cores;
use crate::http::Request;
use crate::load::ask;

const ADMIN_KEY: &str = "ls_bench_0123456789abcdef0123456789abcdef";
const START_TIME_MAX: Duration = Duration::from_mins(1);
/// The bench's workers do not ping. All other settings are the defaults, without rate limits.
const CONFIG: &str = "ping_interval_ms = 3600000\nlog_level = \"warn\"\nrate_limits = \"off\"\n";

/// A running server. Killed on drop; its data is deleted.
pub struct Server {
    folder: TempDir,
    binary: PathBuf,
    cores: Cores,
    child: Child,
    address: SocketAddr,
    ready_after: Duration,
    /// Counter for unique endpoint names.
    endpoints: Cell<usize>,
}

impl Server {
    /// Starts a server with a new directory in `data` and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If the server exits or is not ready in time.
    pub fn start(binary: &Path, data: &Path, cores: Cores) -> Result<Self, String> {
        let folder = tempfile::tempdir_in(data);
        let folder =
            folder.map_err(|error| format!("cannot create a directory in {}: {error}", data.display()))?;
        fs::write(folder.path().join("config.toml"), CONFIG)
            .map_err(|error| format!("cannot write the server's config: {error}"))?;
        let began = Instant::now();
        let child = spawn(binary, folder.path(), cores)?;
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let binary = binary.to_owned();
        let mut server = Self {
            folder,
            binary,
            cores,
            child,
            address: unknown,
            ready_after: Duration::ZERO,
            endpoints: Cell::new(0),
        };
        server.wait_ready(began)?;
        Ok(server)
    }

    /// Kills the server and starts it again with its data. Returns the time until it is ready.
    ///
    /// # Errors
    ///
    /// If the server exits or is not ready in time.
    pub fn restart(&mut self) -> Result<Duration, String> {
        self.kill();
        fs::remove_file(self.port_file()).map_err(|error| format!("cannot remove the port file: {error}"))?;
        let began = Instant::now();
        self.child = spawn(&self.binary, self.folder.path(), self.cores)?;
        self.wait_ready(began)?;
        Ok(self.ready_after)
    }

    /// Time until the last start was ready.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn port_file(&self) -> PathBuf {
        self.folder.path().join("port")
    }

    fn wait_ready(&mut self, began: Instant) -> Result<(), String> {
        let ready = Request::get("/readyz").bare();
        while began.elapsed() < START_TIME_MAX {
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                return Err(format!("the server exited ({status}): {log}"));
            }
            if let Some(port) = self.port() {
                self.address = (Ipv4Addr::LOCALHOST, port).into();
                if ask(self.address, &ready).is_ok() {
                    self.ready_after = began.elapsed();
                    return Ok(());
                }
            }
            thread::sleep(Duration::from_micros(500));
        }
        Err(format!("the server was not ready after {} s", START_TIME_MAX.as_secs()))
    }

    fn port(&self) -> Option<u16> {
        fs::read_to_string(self.port_file()).ok()?.trim().parse().ok()
    }

    fn kill(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The folder with the server's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the worker runtime that this server puts into the `PYTHONPATH` of its own workers.
    ///
    /// # Errors
    ///
    /// If the server has written none.
    pub fn worker_runtime(&self) -> Result<String, String> {
        let cache = self.folder.path().join("data/cache");
        let entries =
            fs::read_dir(&cache).map_err(|error| format!("cannot read {}: {error}", cache.display()))?;
        let mut names = entries.flatten().map(|entry| entry.path().display().to_string());
        names.find(|path| path.contains("worker-runtime-")).ok_or_else(|| "no worker runtime".to_owned())
    }

    /// The variables of an external worker of `endpoint`.
    ///
    /// # Errors
    ///
    /// If the server refuses the request.
    pub fn worker_env(&self, endpoint: &Endpoint) -> Result<BTreeMap<String, String>, String> {
        let id = endpoint.mount.trim_start_matches("/v2/");
        let token = self.manage(&format!("/v1/endpoints/{id}/worker-token"), &json!({}))?;
        let env: BTreeMap<String, String> =
            serde_json::from_value(token["env"].clone()).map_err(|error| format!("worker-token: {error}"))?;
        // The addresses in it have the host of the request, which is no name that workers can look up.
        let here = format!("//{}/", self.address);
        Ok(env.into_iter().map(|(name, value)| (name, value.replace("//bench/", &here))).collect())
    }

    /// Creates an endpoint with external workers.
    ///
    /// # Errors
    ///
    /// If the server refuses a request.
    pub fn endpoint(&self) -> Result<Endpoint, String> {
        self.endpoint_with_durability("synced")
    }

    /// Like [`Server::endpoint`], with this durability; `buffered` does not wait for the disk.
    ///
    /// # Errors
    ///
    /// If the server refuses a request.
    pub fn endpoint_with_durability(&self, durability: &str) -> Result<Endpoint, String> {
        self.endpoints.set(self.endpoints.get() + 1);
        let name = format!("bench-{}", self.endpoints.get());
        let template = json!({"name": name, "imageName": "bench", "dockerStartCmd": ["true"]});
        let template = self.manage("/v1/templates", &template)?;
        let endpoint = json!({
            "name": name, "provider": "external", "templateId": template["id"], "durability": durability,
        });
        let endpoint = self.manage("/v1/endpoints", &endpoint)?;
        let id = endpoint["id"].as_str().ok_or("an endpoint without an id")?.to_owned();
        let token = self.manage(&format!("/v1/endpoints/{id}/worker-token"), &json!({}))?;
        let worker_token = token["token"].as_str().ok_or("a token without text")?.to_owned();
        Ok(Endpoint { address: self.address, mount: format!("/v2/{id}"), worker_token })
    }

    fn manage(&self, path: &str, body: &Value) -> Result<Value, String> {
        let answer =
            ask(self.address, &with_key(Request::post(path)).with_body(body.to_string().as_bytes()))?;
        serde_json::from_slice(&answer).map_err(|error| format!("{path}: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(binary: &Path, folder: &Path, cores: Cores) -> Result<Child, String> {
    let log = fs::File::create(folder.join("log")).map_err(|error| format!("cannot write a log: {error}"))?;
    let mut command = Command::new(binary);
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder);
    for (flag, name) in [("--data-dir", "data"), ("--port-file", "port"), ("--config", "config.toml")] {
        command.arg(flag).arg(folder.join(name));
    }
    command.env("LONGSHORE_ADMIN_KEY", ADMIN_KEY);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    cores.spawn_measured(&mut command).map_err(|error| format!("cannot start {}: {error}", binary.display()))
}

fn with_key(request: Request) -> Request {
    request.header("Authorization", &format!("Bearer {ADMIN_KEY}"))
}

/// An endpoint of a server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: SocketAddr,
    mount: String,
    worker_token: String,
}

impl Endpoint {
    /// The address that its server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A worker's `GET` request for `operation`.
    pub fn worker_get(&self, operation: &str) -> Request {
        self.with_token(Request::get(format!("{}/{operation}", self.mount)))
    }

    /// A worker's `POST` request for `operation`.
    pub fn worker_post(&self, operation: &str) -> Request {
        self.with_token(Request::post(format!("{}/{operation}", self.mount)))
    }

    fn with_token(&self, request: Request) -> Request {
        // Without `keep-alive` the server closes workers' connections, as a precaution for the SDK's blocking handlers.
        request.header("Authorization", &self.worker_token).header("Connection", "keep-alive")
    }

    /// Returns the same endpoint with the current address of `server`.
    #[must_use]
    pub fn on(&self, server: &Server) -> Self {
        Self { address: server.address, ..self.clone() }
    }

    /// A client's `POST` request for `operation`.
    pub fn post(&self, operation: &str) -> Request {
        with_key(Request::post(format!("{}/{operation}", self.mount)))
    }

    /// A client's `GET` request for `operation`.
    pub fn get(&self, operation: &str) -> Request {
        with_key(Request::get(format!("{}/{operation}", self.mount)))
    }
}
