//! How many small jobs are accepted, each durable before its answer.

use super::{Ground, SMALL_BYTES, Scenario, job_body};
use crate::load::{ClosedLoop, Wire};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "submit",
    about: "POST /run of 100 B in a closed loop over 1, 16 and 64 connections, beside the echo of the same body",
    once: false,
    run,
};

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    let body = job_body(SMALL_BYTES);
    for connections in [1, 16, 64] {
        let name = format!("submit.c{connections}");
        let echo = ground.echo(&body, connections)?;
        readings.put(format!("{name}.echo.per_s"), echo.per_s());
        readings.put_times(&format!("{name}.echo"), echo.times());
        let server = ground.start_server()?;
        let endpoint = server.endpoint()?;
        let request = endpoint.post("run").with_body(&body);
        let mut clients = ClosedLoop::new(endpoint.address(), request, connections, ground.span());
        Wire::run(&mut [&mut clients])?;
        readings.put(format!("{name}.per_s"), clients.per_s());
        readings.put_times(&name, clients.times());
    }
    Ok(())
}
