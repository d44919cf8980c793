//! `submit` and `end-to-end` with the server on every processor except the generator's. With two processors this
//! equals one; `taskset` limits the number.

use super::{SMALL_BYTES, Scenario, ScenarioContext, end_to_end, submit};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "all-processors",
    about: "submit and end-to-end of 100 B with the server, and its echo, on all processors but the generator's",
    once: false,
    run,
};

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let context = ScenarioContext { cores: context.cores.measuring_on_all_others(), ..context.clone() };
    readings.put("all-processors.measured_processors", context.cores.measured_count() as f64);
    submit::beside_echo(&context, readings, "all-processors.submit", SMALL_BYTES, &[1, 16, 64])?;
    end_to_end::measure(&context, readings, "all-processors.end-to-end")
}
