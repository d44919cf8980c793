//! The console in a browser: bytes and times of visits, the cost of long lists and of news, and what the server spends on
//! open tabs. A script drives Debian's Chromium, with what the black-box tests use.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::{Scenario, ScenarioContext};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "console",
    about: "the console in Chromium: bytes and times of a visit, a list of 100 000 jobs, news, and the server's share",
    once: true,
    run,
};

/// The script, with its path relative to this package.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/measure_console.py");

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let python = context.python.as_deref().ok_or("no Python with Playwright; name it with --python")?;
    let mut script = Command::new(python);
    script.arg(SCRIPT).arg("--data").arg(&context.data).env("LONGSHORE_BIN", &context.server);
    if context.quick {
        script.arg("--quick");
    }
    let output = script.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run {SCRIPT}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{SCRIPT} ended ({})", output.status));
    }
    let figures: BTreeMap<String, f64> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("figures of {SCRIPT}: {error}"))?;
    for (name, value) in figures {
        readings.put(format!("console.{name}"), value);
    }
    Ok(())
}
