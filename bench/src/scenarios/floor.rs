//! What the disk and the network of this machine take.

use super::{Ground, Scenario};
use crate::floors::{Floor, Sync, measure_disk, measure_loopback};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "floors",
    about: "a durable write of 4 KiB, appending and into a preallocated file; a loopback round trip",
    once: false,
    run,
};

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    let span = ground.span().counted / 2;
    readings.put_times("disk.append", &measure_disk(&ground.data, Sync::Append, span)?);
    readings.put_times("disk.preallocated", &measure_disk(&ground.data, Sync::Preallocated, span)?);
    let loopback = Floor::start("loopback", ground.cores)?;
    readings.put_times("loopback", &measure_loopback(loopback.address(), span)?);
    Ok(())
}
