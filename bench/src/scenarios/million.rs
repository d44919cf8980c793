//! A million queued jobs: their memory, and their effect on submits, takes and `explain`.

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use super::{SMALL_BYTES, Scenario, ScenarioContext, fill, in_queue, job_body};
use crate::load::{ClosedLoop, EventLoop, Tally, Worker, ask};
use crate::process::ProcessUsage;
use crate::readings::{Readings, spreads};
use crate::server::{Endpoint, Server};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "million",
    about: "submit and take with an empty queue and with 1 000 000 waiting jobs of 100 B; explain; memory; restart after a kill",
    once: true,
    run,
};

const CONNECTIONS: usize = 64;
const SLOTS: usize = 16;
/// Repetitions of the rates; the million jobs are submitted once.
const TURNS: usize = 3;

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let mut server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let took = fill(&endpoint, context.many_jobs(), || job_body(SMALL_BYTES))?;
    readings.put("million.fill_s", took.as_secs_f64());
    put_memory(readings, "million.resident_mib", &server)?;
    put_explain(context, &endpoint, readings)?;
    put_rates(context, &endpoint, readings)?;
    readings.put("million.restart_ms", milliseconds(server.restart()?));
    put_memory(readings, "million.restarted_mib", &server)?;
    let endpoint = endpoint.on(&server);
    readings.put("million.waiting_after_restart", in_queue(&endpoint)? as f64);
    Ok(())
}

/// Measures `explain` of a job behind all others, and of the endpoint.
fn put_explain(
    context: &ScenarioContext,
    endpoint: &Endpoint,
    readings: &mut Readings,
) -> Result<(), String> {
    let last = ask(endpoint.address(), &endpoint.post("run").with_body(&job_body(SMALL_BYTES)))?;
    let last: Value = serde_json::from_slice(&last).map_err(|error| format!("run: {error}"))?;
    let last = last["id"].as_str().ok_or("a job without an id")?;
    for (name, operation) in [
        ("million.explain.job", format!("explain/{last}")),
        ("million.explain.endpoint", "explain".to_owned()),
    ] {
        let request = endpoint.get(&operation).bare();
        let mut client = ClosedLoop::new(endpoint.address(), request, 1, context.span());
        EventLoop::run(&mut [&mut client])?;
        readings.put_times(name, client.times());
    }
    Ok(())
}

/// Measures the full queue and an empty one in turn.
fn put_rates(context: &ScenarioContext, full: &Endpoint, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let empty = server.endpoint()?;
    // A server whose files still grow syncs more slowly. The full server is past that, so this one must be, too.
    fill(&empty, context.many_jobs() / 20, || job_body(SMALL_BYTES))?;
    let mut all = Vec::new();
    for turn in 0..TURNS {
        let mut rates = Readings::default();
        measure_rates(context, &empty, turn, "million.empty", &mut rates)?;
        measure_rates(context, full, turn, "million.full", &mut rates)?;
        all.push(rates);
    }
    for (name, spread) in spreads(&all) {
        readings.put(name, spread.median);
    }
    Ok(())
}

/// The rate of submits, then the rate of takes with reports.
fn measure_rates(
    context: &ScenarioContext,
    endpoint: &Endpoint,
    turn: usize,
    name: &str,
    readings: &mut Readings,
) -> Result<(), String> {
    let request = endpoint.post("run").with_body(&job_body(SMALL_BYTES));
    let mut clients = ClosedLoop::new(endpoint.address(), request, CONNECTIONS, context.span());
    EventLoop::run(&mut [&mut clients])?;
    readings.put(format!("{name}.submit_per_s"), clients.per_s());
    let (tally, span) = (Rc::new(Tally::submitting()), context.span().counted);
    let worker = Worker::new(endpoint, format!("worker-{turn}"), SLOTS, Rc::clone(&tally));
    EventLoop::run(&mut [&mut worker.working_for(span)])?;
    readings.put(format!("{name}.take_per_s"), tally.finished() as f64 / span.as_secs_f64());
    Ok(())
}

fn put_memory(readings: &mut Readings, name: &str, server: &Server) -> Result<(), String> {
    readings.put(name, ProcessUsage::by(server.pid())?.resident_bytes / f64::from(1 << 20));
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
