//! The pace of an unmodified worker of the official SDK with concurrency 1, with the worker runtime and without it.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{SMALL_BYTES, Scenario, ScenarioContext, fill, in_queue, job_body};
use crate::cores::Cores;
use crate::readings::Readings;
use crate::server::{Endpoint, Server};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "worker-pace",
    about: "jobs a second of an unmodified SDK worker with concurrency 1, and processor time of its import: with and \
            without the worker runtime",
    once: false,
    run,
};

/// The handler, with its path relative to this package.
const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/worker/echo.py");
/// Prints the processor time of the SDK's import, with that of the programs that it starts, in seconds.
const IMPORT: &str = "import resource, runpod\n\
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n\
    print(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime)";
/// Longest time for all jobs of a worker, with its start.
const TIME_MAX: Duration = Duration::from_mins(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let python = context.python.as_deref().ok_or("no Python with the official SDK; name it with --python")?;
    let server = context.start_server()?;
    let runtime = server.worker_runtime()?;
    let edited = ("edited", if context.quick { 50 } else { 1_000 }, ("PYTHONPATH", runtime.as_str()));
    let unchanged = ("sdk", if context.quick { 2 } else { 11 }, ("LONGSHORE_RUNTIME", "off"));
    for (name, jobs, (variable, value)) in [edited, unchanged] {
        let own = BTreeMap::from([(variable.to_owned(), value.to_owned())]);
        readings.put(format!("worker-pace.{name}.import_cpu_s"), import_cpu_s(python, &own)?);
        readings.put(format!("worker-pace.{name}.per_s"), jobs_per_s(context, &server, python, own, jobs)?);
    }
    Ok(())
}

fn import_cpu_s(python: &Path, env: &BTreeMap<String, String>) -> Result<f64, String> {
    let output = Command::new(python).args(["-c", IMPORT]).envs(env).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", python.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.trim().parse().map_err(|_| format!("no import: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs `jobs` jobs that wait for the worker, at least two. Returns the rate from the first take to the last one.
fn jobs_per_s(
    context: &ScenarioContext,
    server: &Server,
    python: &Path,
    mut env: BTreeMap<String, String>,
    jobs: u64,
) -> Result<f64, String> {
    let endpoint = server.endpoint()?;
    fill(&endpoint, jobs, || job_body(SMALL_BYTES))?;
    env.extend(server.worker_env(&endpoint)?);
    let mut command = Command::new(python);
    command.args(["-u", HANDLER]).envs(env).current_dir(server.folder());
    let _worker = SdkWorker::start(&mut command, context.cores)?;
    let deadline = Instant::now() + TIME_MAX;
    let first = wait_in_queue(&endpoint, jobs - 1, deadline)?;
    let last = wait_in_queue(&endpoint, 0, deadline)?;
    Ok((first.jobs - last.jobs) as f64 / (last.at - first.at).as_secs_f64())
}

/// A worker with the processes that it starts, such as the SDK's heartbeat. Killed on drop.
struct SdkWorker(Child);

impl SdkWorker {
    fn start(command: &mut Command, cores: Cores) -> Result<Self, String> {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        cores.spawn_measured(command).map(Self).map_err(|error| format!("cannot start a worker: {error}"))
    }
}

impl Drop for SdkWorker {
    fn drop(&mut self) {
        // An error means that the group has no process.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A number of queued jobs, and when it was seen.
struct Seen {
    jobs: u64,
    at: Instant,
}

/// Waits until at most `jobs_max` jobs are queued.
fn wait_in_queue(endpoint: &Endpoint, jobs_max: u64, deadline: Instant) -> Result<Seen, String> {
    loop {
        let jobs = in_queue(endpoint)?;
        let at = Instant::now();
        if jobs <= jobs_max {
            return Ok(Seen { jobs, at });
        }
        if at > deadline {
            return Err(format!("{jobs} jobs wait after {} s: does the worker run?", TIME_MAX.as_secs()));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}
