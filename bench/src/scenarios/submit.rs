//! The rate of accepted jobs, each durable before its response.

use super::{SMALL_BYTES, Scenario, ScenarioContext, job_body};
use crate::load::ClosedLoop;
use crate::readings::Readings;

pub(super) const SMALL: Scenario = Scenario {
    name: "submit",
    about: "POST /run of 100 B in a closed loop over 1, 16 and 64 connections, beside the echo of the same body",
    once: false,
    run: small,
};

pub(super) const LARGE: Scenario = Scenario {
    name: "submit-large",
    about: "POST /run of 64 KiB over 1, 16 and 64 connections and of 5 MB over 1 and 16, beside the echo of the same body",
    once: false,
    run: large,
};

fn small(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    beside_echo(context, readings, "submit", SMALL_BYTES, &[1, 16, 64])
}

fn large(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    beside_echo(context, readings, "submit-large.64k", 64 << 10, &[1, 16, 64])?;
    beside_echo(context, readings, "submit-large.5m", 5_000_000, &[1, 16])
}

/// Measures submits with bodies of this length, and the two echoes of the same body.
pub(super) fn beside_echo(
    context: &ScenarioContext,
    readings: &mut Readings,
    name: &str,
    bytes: usize,
    all_connections: &[usize],
) -> Result<(), String> {
    let body = job_body(bytes);
    for &connections in all_connections {
        let name = format!("{name}.c{connections}");
        let echo = context.echo(&body, connections)?;
        readings.put(format!("{name}.echo.per_s"), echo.per_s());
        readings.put_times(&format!("{name}.echo"), echo.times());
        let durable = context.durable_echo(&body, connections)?;
        readings.put(format!("{name}.durable_echo.per_s"), durable.per_s());
        readings.put_times(&format!("{name}.durable_echo"), durable.times());
        let server = context.start_server()?;
        let endpoint = server.endpoint()?;
        let request = endpoint.post("run").with_body(&body);
        let mut clients = ClosedLoop::new(endpoint.address(), request, connections, context.span());
        context.drive(&mut [&mut clients])?;
        readings.put(format!("{name}.per_s"), clients.per_s());
        readings.put_times(&name, clients.times());
    }
    Ok(())
}
