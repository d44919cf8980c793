//! A Longshore server that is measured: a process with an empty data directory, and its endpoints.

use std::cell::{Cell, RefCell};
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
const REPLACEMENT_TIME_MAX: Duration = Duration::from_mins(5);
const WORKERS_END_TIME_MAX: Duration = Duration::from_secs(20);
/// The bench's workers do not ping. All other settings are the defaults, without rate limits.
const CONFIG: &str = "ping_interval_ms = 3600000\nlog_level = \"warn\"\nrate_limits = \"off\"\n";

/// A running server. On drop its workers are stopped, then it is killed and its data is deleted.
pub struct Server {
    folder: TempDir,
    binary: PathBuf,
    cores: Cores,
    child: Child,
    address: SocketAddr,
    ready_after: Duration,
    /// Counter for unique endpoint names.
    endpoints: Cell<usize>,
    /// Ids of the endpoints whose workers the server starts. These processes would outlive the server.
    managed: RefCell<Vec<String>>,
}

impl Server {
    /// Starts a server with a new directory in `data` and these lines of settings, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If the server exits or is not ready in time.
    pub fn start(binary: &Path, data: &Path, cores: Cores, settings: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir_in(data);
        let folder =
            folder.map_err(|error| format!("cannot create a directory in {}: {error}", data.display()))?;
        fs::write(folder.path().join("config.toml"), format!("{CONFIG}{settings}"))
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
            managed: RefCell::default(),
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
        let token = self.manage(&format!("/v1/endpoints/{}/worker-token", endpoint.id()), &json!({}))?;
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

    /// Creates an endpoint whose one worker this server starts. The worker runs `handler`, which imports these packages.
    ///
    /// # Errors
    ///
    /// If the server refuses a request.
    pub fn endpoint_of_handler(
        &self,
        python: &Path,
        handler: &Path,
        imports: &str,
        flashboot: bool,
    ) -> Result<Endpoint, String> {
        let template = json!({
            "dockerStartCmd": [python, "-u", handler], "env": {"IMPORTS": imports},
        });
        let endpoint = self.create(
            template,
            json!({"provider": "process", "workersMax": 1, "idleTimeout": 3600, "flashboot": flashboot}),
        )?;
        self.managed.borrow_mut().push(endpoint.id().to_owned());
        Ok(endpoint)
    }

    /// Creates a load-balancing endpoint whose workers are this program's `floor http-worker`, and waits until one answers.
    ///
    /// # Errors
    ///
    /// If the server refuses a request, or no worker answers in time.
    pub fn forwarded_endpoint(&self, worker: &Path, workers: u32) -> Result<ForwardedEndpoint, String> {
        let template = json!({"name": "forwarded", "imageName": "bench", "dockerStartCmd": [worker, "floor", "http-worker"]});
        let template = self.manage("/v1/templates", &template)?;
        let endpoint = self.manage(
            "/v1/endpoints",
            &json!({
                "name": "forwarded", "type": "LB", "provider": "process", "templateId": template["id"],
                "workersMin": workers, "workersMax": workers + 1, "scalerType": "REQUEST_COUNT", "scalerValue": 1_000_000,
                "lb": {"idleTimeoutMs": 0},
            }),
        )?;
        let id = |record: &Value| record["id"].as_str().map(str::to_owned).ok_or("a record without an id");
        let (id, template) = (id(&endpoint)?, id(&template)?);
        self.managed.borrow_mut().push(id.clone());
        let prefix = format!("/lb/{id}");
        ask(self.address, &with_key(Request::get(format!("{prefix}/small"))).bare())?;
        Ok(ForwardedEndpoint { id, template, prefix, authorization: format!("Bearer {ADMIN_KEY}") })
    }

    /// Changes the environment of the endpoint's workers, and waits until none of an older version is left.
    ///
    /// # Errors
    ///
    /// If the server refuses a request, or the replacement takes too long.
    pub fn replace_workers(&self, endpoint: &ForwardedEndpoint, round: u32) -> Result<(), String> {
        let path = format!("/v1/templates/{}/update", endpoint.template);
        self.manage(&path, &json!({"env": {"ROUND": round.to_string()}}))?;
        let path = format!("/v1/endpoints/{}?includeWorkers=true", endpoint.id);
        let began = Instant::now();
        while began.elapsed() < REPLACEMENT_TIME_MAX {
            let answer = ask(self.address, &with_key(Request::get(&path)).bare())?;
            let record: Value =
                serde_json::from_slice(&answer).map_err(|error| format!("{path}: {error}"))?;
            let workers = record["workers"].as_array().map_or(&[][..], Vec::as_slice);
            let is_new = |worker: &Value| worker["version"] == record["version"];
            if workers.len() >= 2 && workers.iter().all(is_new) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the workers were not replaced".to_owned())
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops a worker of the endpoint.
    ///
    /// # Errors
    ///
    /// If the server refuses the request.
    pub fn stop_worker(&self, endpoint: &Endpoint, worker: &str) -> Result<(), String> {
        self.manage(&format!("/v1/endpoints/{}/workers/{worker}/stop", endpoint.id()), &json!({})).map(drop)
    }

    /// Whether the endpoint has workers.
    ///
    /// # Errors
    ///
    /// If the server refuses the request.
    pub fn has_workers(&self, endpoint: &Endpoint) -> Result<bool, String> {
        Ok(!self.workers(endpoint.id())?.is_empty())
    }

    fn workers(&self, endpoint: &str) -> Result<Vec<Value>, String> {
        let path = format!("/v1/endpoints/{endpoint}/workers");
        let answer = ask(self.address, &with_key(Request::get(&path)).bare())?;
        serde_json::from_slice(&answer).map_err(|error| format!("{path}: {error}"))
    }

    /// Stops the workers of an endpoint, lets no more of them start, and waits for their end.
    fn stop_workers(&self, endpoint: &str) -> Result<(), String> {
        let no_workers = json!({"workersMin": 0, "workersMax": 0});
        self.manage(&format!("/v1/endpoints/{endpoint}/update"), &no_workers)?;
        let deadline = Instant::now() + WORKERS_END_TIME_MAX;
        loop {
            let workers = self.workers(endpoint)?;
            if workers.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "workers of {endpoint} run {} s after their stop",
                    WORKERS_END_TIME_MAX.as_secs()
                ));
            }
            for id in workers.iter().filter_map(|worker| worker["id"].as_str()) {
                // It may have ended since it was listed.
                let _ = self.manage(&format!("/v1/endpoints/{endpoint}/workers/{id}/stop"), &json!({}));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Like [`Server::endpoint`], with this durability; `buffered` does not wait for the disk.
    ///
    /// # Errors
    ///
    /// If the server refuses a request.
    pub fn endpoint_with_durability(&self, durability: &str) -> Result<Endpoint, String> {
        self.create(
            json!({"dockerStartCmd": ["true"]}),
            json!({"provider": "external", "durability": durability}),
        )
    }

    fn create(&self, mut template: Value, mut endpoint: Value) -> Result<Endpoint, String> {
        self.endpoints.set(self.endpoints.get() + 1);
        let name = format!("bench-{}", self.endpoints.get());
        template["name"] = json!(name);
        template["imageName"] = json!("bench");
        let template = self.manage("/v1/templates", &template)?;
        endpoint["name"] = json!(name);
        endpoint["templateId"] = template["id"].clone();
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
        for endpoint in self.managed.take() {
            if let Err(error) = self.stop_workers(&endpoint) {
                eprintln!("workers may be left: {error}");
            }
        }
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

/// A load-balancing endpoint of the server, which the bench made for itself.
#[derive(Clone, Debug)]
pub struct ForwardedEndpoint {
    id: String,
    template: String,
    /// What paths have before that of the worker.
    pub prefix: String,
    /// The value of `Authorization`.
    pub authorization: String,
}

/// An endpoint of a server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: SocketAddr,
    mount: String,
    worker_token: String,
}

impl Endpoint {
    fn id(&self) -> &str {
        self.mount.trim_start_matches("/v2/")
    }

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
