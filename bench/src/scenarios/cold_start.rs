//! Cold starts of managed Python workers, from the submit of a job to its result: as forks of a zygote, and by their command.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Scenario, ScenarioContext};
use crate::load::ask;
use crate::readings::Readings;
use crate::server::{Endpoint, Server};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cold-start",
    about: "time and processor time from a job to its result without a worker: as a fork of a zygote and by the command",
    once: false,
    run,
};

/// The handler, with its path relative to this package.
const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/worker/imports.py");
/// The packages of the heavy handler.
const HEAVY: &str =
    "numpy scipy.optimize scipy.stats pandas sklearn.ensemble sklearn.linear_model transformers";
/// What it imports where these are not installed.
const QUICK: &str = "numpy";
const SETTINGS: &str = "zygotes_max = 2\n";
/// Starts until a worker must be a fork.
const WARM_STARTS_MAX: usize = 10;
/// Longest time until no worker runs.
const TIME_MAX: Duration = Duration::from_mins(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The output of the handler.
#[derive(Deserialize)]
struct Output {
    worker: String,
    cpu_s: f64,
    fork: bool,
}

#[derive(Deserialize)]
struct Job {
    output: Output,
}

/// A start and its first result.
struct Started {
    wall_s: f64,
    output: Output,
}

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let sdk = context.python.as_deref().ok_or("no Python with the official SDK; name it with --python")?;
    let heavy = context.heavy_python.as_deref().map_or((sdk, QUICK), |python| (python, HEAVY));
    let server = context.start_server_with(SETTINGS)?;
    for (name, (python, imports)) in [("sdk", (sdk, "")), ("heavy", heavy)] {
        let endpoint = |flashboot| server.endpoint_of_handler(python, Path::new(HANDLER), imports, flashboot);
        let (warm, plain) = (endpoint(true)?, endpoint(false)?);
        start(&server, &plain)?;
        warm_up(&server, &warm)?;
        for (how, endpoint, is_fork) in [("plain", &plain, false), ("fork", &warm, true)] {
            let Started { wall_s, output } = start(&server, endpoint)?;
            if output.fork != is_fork {
                return Err(format!("a worker of {name} was started otherwise than as {how}"));
            }
            readings.put(format!("cold-start.{name}.{how}.wall_s"), wall_s);
            readings.put(format!("cold-start.{name}.{how}.cpu_s"), output.cpu_s);
        }
    }
    Ok(())
}

/// Starts workers until one is a fork.
fn warm_up(server: &Server, endpoint: &Endpoint) -> Result<(), String> {
    for _ in 0..WARM_STARTS_MAX {
        if start(server, endpoint)?.output.fork {
            return Ok(());
        }
    }
    Err(format!("none of {WARM_STARTS_MAX} workers was a fork"))
}

/// Runs a job without a worker, and ends its worker.
fn start(server: &Server, endpoint: &Endpoint) -> Result<Started, String> {
    let began = Instant::now();
    let answer =
        ask(endpoint.address(), &endpoint.post("runsync?wait=300000").with_body(br#"{"input":{}}"#))?;
    let wall_s = began.elapsed().as_secs_f64();
    let job: Job = serde_json::from_slice(&answer)
        .map_err(|error| format!("no result: {error}: {}", String::from_utf8_lossy(&answer)))?;
    server.stop_worker(endpoint, &job.output.worker)?;
    let deadline = Instant::now() + TIME_MAX;
    while server.has_workers(endpoint)? {
        if Instant::now() > deadline {
            return Err(format!("worker {} runs {} s after its stop", job.output.worker, TIME_MAX.as_secs()));
        }
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(Started { wall_s, output: job.output })
}
