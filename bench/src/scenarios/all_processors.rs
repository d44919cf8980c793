//! `submit` and `end-to-end` again, with the server on every processor but the generator's. With two processors this is
//! the same as on one; `taskset` takes some of more away.

use super::{Ground, SMALL_BYTES, Scenario, end_to_end, submit};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "all-processors",
    about: "submit and end-to-end of 100 B with the server, and its echo, on all processors but the generator's",
    once: false,
    run,
};

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    let ground = Ground { cores: ground.cores.measuring_on_all_others(), ..ground.clone() };
    readings.put("all-processors.measured_processors", ground.cores.measured_count() as f64);
    submit::beside_echo(&ground, readings, "all-processors.submit", SMALL_BYTES, &[1, 16, 64])?;
    end_to_end::measure(&ground, readings, "all-processors.end-to-end")
}
