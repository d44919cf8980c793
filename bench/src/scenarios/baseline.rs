//! The speed of this computer's disk and loopback network.

use super::{Scenario, ScenarioContext};
use crate::baselines::{Baseline, Sync, measure_disk, measure_loopback};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "floors",
    about: "a durable write of 4 KiB, appending and into a preallocated file; a loopback round trip",
    once: false,
    run,
};

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let span = context.span().counted / 2;
    for (name, kind) in [("disk.append", Sync::Append), ("disk.preallocated", Sync::Preallocated)] {
        let measured = context.cores.measured(|| measure_disk(&context.data, kind, span));
        let times = measured.map_err(|error| format!("cannot change the processor: {error}"))??;
        readings.put_times(name, &times);
    }
    let loopback = Baseline::start("loopback", context.cores, &context.data)?;
    readings.put_times("loopback", &measure_loopback(loopback.address(), span)?);
    Ok(())
}
