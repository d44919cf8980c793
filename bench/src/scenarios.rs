//! The scenarios. Each measures its own baseline in the same repetition, so that both run under the same
//! conditions.

mod all_processors;
mod baseline;
mod cold_start;
mod console;
mod end_to_end;
mod half_load;
mod lb;
mod mass_expiry;
mod million;
mod parked;
mod runsync;
mod soak;
mod start;
mod store;
mod stream;
mod submit;
mod worker_pace;

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::baselines::Baseline;
use crate::cores::Cores;
use crate::http::Request;
use crate::load::{ClosedLoop, EventLoop, Role, Span, ask};
use crate::postgres_server::PostgresServer;
use crate::readings::Readings;
use crate::server::{Endpoint, Server};

/// One scenario of a run.
pub struct Scenario {
    /// The name for `--only`, and the prefix of its readings.
    pub name: &'static str,
    /// One line for `--list`.
    pub about: &'static str,
    /// Whether the scenario runs in one repetition only, because it takes minutes.
    pub once: bool,
    /// Runs the scenario and stores its readings. The error says what failed.
    pub run: fn(&ScenarioContext, &mut Readings) -> Result<(), String>,
}

/// All scenarios, in the order in which they run.
pub const SCENARIOS: &[Scenario] = &[
    baseline::SCENARIO,
    start::SCENARIO,
    submit::SMALL,
    submit::LARGE,
    end_to_end::SCENARIO,
    all_processors::SCENARIO,
    runsync::SCENARIO,
    half_load::RUNSYNC,
    half_load::STATUS,
    stream::SCENARIO,
    parked::SCENARIO,
    million::SCENARIO,
    mass_expiry::SCENARIO,
    worker_pace::SCENARIO,
    cold_start::SCENARIO,
    lb::SCENARIO,
    console::SCENARIO,
];

/// What is measured with `--store postgres` alone.
pub const DATABASE_SCENARIOS: &[Scenario] = &[store::SCENARIO, soak::SCENARIO];

/// The scenarios that `--store postgres` measures beside servers with a log, and with slower flushes.
pub const BESIDE_THE_LOG: [&str; 3] = ["submit", "end-to-end", "million"];

/// What every scenario needs.
#[derive(Clone)]
pub struct ScenarioContext {
    /// Path of the server's program.
    pub server: PathBuf,
    /// Directory for the servers' data, on a real disk.
    pub data: PathBuf,
    /// The processors of the measured programs and the generator.
    pub cores: Cores,
    /// Directory with the installed packages of other queues; `None` without `--peers`.
    pub peers: Option<PathBuf>,
    /// The Python with the official SDK that workers run with; `None` without `--python`.
    pub python: Option<PathBuf>,
    /// A Python with the packages of `worker/requirements.txt`; `None` without `--heavy-python`.
    pub heavy_python: Option<PathBuf>,
    /// Whether everything is small and short, as a check of the bench itself.
    pub quick: bool,
    /// Jobs of a crowd, if not one million.
    pub crowd: Option<u64>,
    /// The PostgreSQL that has the servers' rows; `None` for their own logs.
    pub database: Option<Rc<PostgresServer>>,
    /// What each flush of the servers' databases takes longer, in ms.
    pub flush_ms: u64,
    /// The program that commits to a database without HTTP; `None` without `--store-load`.
    pub store_load: Option<PathBuf>,
    /// Duration of `soak`, in s; `None` to leave it out.
    pub soak_s: Option<u64>,
}

impl ScenarioContext {
    /// Duration of a closed loop.
    pub fn span(&self) -> Span {
        let ms = |full, quick| Duration::from_millis(if self.quick { quick } else { full });
        Span { warm_up: ms(300, 20), counted: ms(2_000, 100) }
    }

    /// Jobs of a crowd.
    pub fn many_jobs(&self) -> u64 {
        self.crowd.unwrap_or(if self.quick { 2_000 } else { 1_000_000 })
    }

    /// Starts a server with an empty data directory.
    ///
    /// # Errors
    ///
    /// If the server does not start.
    pub fn start_server(&self) -> Result<Server, String> {
        self.start_server_with("")
    }

    /// As [`ScenarioContext::start_server`], with these lines of settings.
    ///
    /// # Errors
    ///
    /// If the server does not start.
    pub fn start_server_with(&self, settings: &str) -> Result<Server, String> {
        let store = match &self.database {
            Some(server) => {
                let database = server.new_database(self.flush_ms)?;
                format!("store = \"{}\"\n", server.url(&database))
            }
            None => String::new(),
        };
        Server::start(&self.server, &self.data, self.cores, &(store + settings))
    }

    /// Runs a closed loop without sleeping, if the generator has its own processor.
    fn drive(&self, roles: &mut [&mut dyn Role]) -> Result<(), String> {
        if self.cores.are_pinned() { EventLoop::run_awake(roles) } else { EventLoop::run(roles) }
    }

    /// Measures the echo baseline with this body and this number of connections.
    ///
    /// # Errors
    ///
    /// If the baseline fails.
    pub fn echo(&self, body: &[u8], connections: usize) -> Result<ClosedLoop, String> {
        self.baseline("echo", body, connections)
    }

    /// Like [`ScenarioContext::echo`], with each body synced before the response: the limit of a durable server.
    ///
    /// # Errors
    ///
    /// If the baseline fails.
    pub fn durable_echo(&self, body: &[u8], connections: usize) -> Result<ClosedLoop, String> {
        self.baseline("durable-echo", body, connections)
    }

    fn baseline(&self, which: &str, body: &[u8], connections: usize) -> Result<ClosedLoop, String> {
        let baseline = Baseline::start(which, self.cores, &self.data)?;
        let request = Request::post("/echo").header("Authorization", "Bearer 0").with_body(body);
        let mut clients = ClosedLoop::new(baseline.address(), request, connections, self.span());
        self.drive(&mut [&mut clients])?;
        Ok(clients)
    }
}

/// Submits `count` jobs as fast as possible. Returns the time.
fn fill(
    endpoint: &Endpoint,
    jobs: u64,
    mut body: impl FnMut() -> Vec<u8> + 'static,
) -> Result<Duration, String> {
    let run = endpoint.post("run");
    let mut clients = ClosedLoop::filling(endpoint.address(), move || run.with_body(&body()), 128, jobs);
    let began = Instant::now();
    EventLoop::run(&mut [&mut clients])?;
    Ok(began.elapsed())
}

/// Number of queued jobs of the endpoint.
fn in_queue(endpoint: &Endpoint) -> Result<u64, String> {
    let health = ask(endpoint.address(), &endpoint.get("health").bare())?;
    let health: Value = serde_json::from_slice(&health).map_err(|error| format!("health: {error}"))?;
    health["jobs"]["inQueue"].as_u64().ok_or_else(|| format!("health without inQueue: {health}"))
}

/// Returns a job's JSON of exactly `bytes` bytes.
pub fn job_body(bytes: usize) -> Vec<u8> {
    let (before, after) = (r#"{"input":{"prompt":""#, r#""}}"#);
    let text = "x".repeat(bytes.saturating_sub(before.len() + after.len()));
    format!("{before}{text}{after}").into_bytes()
}

/// Bytes of a small job's body.
pub const SMALL_BYTES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_the_length_that_was_asked_for() {
        for bytes in [100, 65_536] {
            let body = job_body(bytes);
            assert_eq!(body.len(), bytes);
            let parsed: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert!(parsed["input"]["prompt"].is_string());
        }
    }

    #[test]
    fn names_are_unique_and_have_no_dot() {
        let mut names: Vec<&str> =
            SCENARIOS.iter().chain(DATABASE_SCENARIOS).map(|scenario| scenario.name).collect();
        assert!(names.iter().all(|name| !name.contains('.')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len() + DATABASE_SCENARIOS.len());
    }
}
