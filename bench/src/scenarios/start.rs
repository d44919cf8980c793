//! How long a server takes to get ready on an empty folder.

use super::{Ground, Scenario};
use crate::process::Used;
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "start",
    about: "from the start of the process to the first 200 of /readyz, on an empty folder; memory then",
    once: false,
    run,
};

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    let server = ground.start_server()?;
    readings.put("start.ready_ms", server.ready_after().as_secs_f64() * 1000.0);
    readings.put("start.resident_mib", Used::by(server.pid())?.resident_bytes / f64::from(1 << 20));
    Ok(())
}
