//! How many large jobs are accepted.

use super::{Ground, Scenario, job_body};
use crate::load::{ClosedLoop, Wire};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "submit-large",
    about: "POST /run of 64 KiB over 1, 16 and 64 connections and of 5 MB over 1 and 16, beside the echo of the same body",
    once: false,
    run,
};

const SIZES: [(&str, usize, &[usize]); 2] = [("64k", 64 << 10, &[1, 16, 64]), ("5m", 5_000_000, &[1, 16])];

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    for (size, bytes, all_connections) in SIZES {
        let body = job_body(bytes);
        for &connections in all_connections {
            let name = format!("submit-large.{size}.c{connections}");
            readings.put(format!("{name}.echo.per_s"), ground.echo(&body, connections)?.per_s());
            let server = ground.start_server()?;
            let endpoint = server.endpoint()?;
            let request = endpoint.post("run").with_body(&body);
            let mut clients = ClosedLoop::new(endpoint.address(), request, connections, ground.span());
            Wire::run(&mut [&mut clients])?;
            readings.put(format!("{name}.per_s"), clients.per_s());
            readings.put_times(&name, clients.times());
        }
    }
    Ok(())
}
