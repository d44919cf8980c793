//! Latency of a job that a parked worker completes immediately.

use std::rc::Rc;

use super::{SMALL_BYTES, Scenario, ScenarioContext, job_body};
use crate::load::{ClosedLoop, Tally, Worker};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "runsync",
    about: "POST /runsync of 100 B by one client, with one worker that is parked when the request leaves",
    once: false,
    run,
};

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let body = job_body(SMALL_BYTES);
    readings.put_times("runsync.echo", context.echo(&body, 1)?.times());
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let tally = Rc::new(Tally::submitting());
    let request = endpoint.post("runsync").with_body(&body);
    let mut client = ClosedLoop::new(endpoint.address(), request, 1, context.span());
    client = client.counting(Rc::clone(&tally)).when_parked();
    let mut worker = Worker::new(&endpoint, "worker", 1, tally);
    context.drive(&mut [&mut worker, &mut client])?;
    readings.put_times("runsync", client.times());
    Ok(())
}
