//! Time from a server's start to readiness with an empty data directory.

use super::{Scenario, ScenarioContext};
use crate::process::ProcessUsage;
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "start",
    about: "from the start of the process to the first 200 of /readyz, on an empty folder; memory then",
    once: false,
    run,
};

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    readings.put("start.ready_ms", server.ready_after().as_secs_f64() * 1000.0);
    readings.put("start.resident_mib", ProcessUsage::by(server.pid())?.resident_bytes / f64::from(1 << 20));
    Ok(())
}
