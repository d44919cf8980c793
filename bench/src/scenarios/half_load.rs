//! Latency at half of the server's highest rate: `/runsync` and `/status` on a schedule.

use std::rc::Rc;

use super::{SMALL_BYTES, Scenario, ScenarioContext, job_body};
use crate::load::{ClosedLoop, EventLoop, OpenLoop, Tally, Worker, ask};
use crate::readings::Readings;
use crate::server::Endpoint;

pub(super) const RUNSYNC: Scenario = Scenario {
    name: "runsync-half-load",
    about: "POST /runsync of 100 B at half of the highest rate, on a timetable, with one worker of 16 slots",
    once: false,
    run: runsync,
};

pub(super) const STATUS: Scenario = Scenario {
    name: "status-loaded",
    about: "/status polled 2 000 times a second while /runsync runs at half of the highest rate, both on a timetable",
    once: false,
    run: status,
};

const CONNECTIONS: usize = 16;
const SLOTS: usize = 16;
const POLLS_PER_S: f64 = 2_000.0;
/// Connections of a schedule; more are never busy concurrently.
const OPEN_CONNECTIONS: usize = 256;

fn runsync(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let highest_per_s = highest(context, &endpoint)?;
    let tally = Rc::new(Tally::submitting());
    let mut clients = timetable(context, &endpoint, highest_per_s / 2.0).counting(Rc::clone(&tally));
    let mut worker = Worker::new(&endpoint, "worker", SLOTS, tally);
    EventLoop::run(&mut [&mut worker, &mut clients])?;
    readings.put("runsync-half-load.highest.per_s", highest_per_s);
    readings.put_times("runsync-half-load", clients.times());
    Ok(())
}

fn status(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let per_s = highest(context, &endpoint)? / 2.0;
    // A job of another endpoint, so that no worker takes it.
    let polled = server.endpoint()?;
    let answer = ask(polled.address(), &polled.post("run").with_body(&job_body(SMALL_BYTES)))?;
    let answer: serde_json::Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    let job = answer["id"].as_str().ok_or("a job without an id")?;
    let request = polled.get(&format!("status/{job}")).bare();
    let make = move |_| request.clone();
    let mut pollers = OpenLoop::new(polled.address(), make, POLLS_PER_S, OPEN_CONNECTIONS, context.span());
    let tally = Rc::new(Tally::submitting());
    let mut clients = timetable(context, &endpoint, per_s).counting(Rc::clone(&tally));
    let mut worker = Worker::new(&endpoint, "worker", SLOTS, tally);
    EventLoop::run(&mut [&mut worker, &mut clients, &mut pollers])?;
    readings.put_times("status-loaded", pollers.times());
    readings.put_times("status-loaded.runsync", clients.times());
    Ok(())
}

/// The rate of a closed loop.
fn highest(context: &ScenarioContext, endpoint: &Endpoint) -> Result<f64, String> {
    let tally = Rc::new(Tally::submitting());
    let request = endpoint.post("runsync").with_body(&job_body(SMALL_BYTES));
    let clients = ClosedLoop::new(endpoint.address(), request, CONNECTIONS, context.span());
    let mut clients = clients.counting(Rc::clone(&tally));
    let mut worker = Worker::new(endpoint, "worker", SLOTS, tally);
    EventLoop::run(&mut [&mut worker, &mut clients])?;
    Ok(clients.per_s())
}

fn timetable(context: &ScenarioContext, endpoint: &Endpoint, per_s: f64) -> OpenLoop<'static> {
    let request = endpoint.post("runsync").with_body(&job_body(SMALL_BYTES));
    OpenLoop::new(endpoint.address(), move |_| request.clone(), per_s, OPEN_CONNECTIONS, context.span())
}
