//! Five thousand job lives a second in a PostgreSQL for minutes, each deleted after a retention time: commits must not become slower.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::store::{number, store_load};
use super::{Scenario, ScenarioContext};
use crate::database_cost::DatabaseCost;
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "soak",
    about: "5 000 job lives a second with retention, without HTTP, for --soak seconds: times of commits, size of the tables",
    once: true,
    run,
};

/// The load has this many equal spans. In the first one, jobs begin to be deleted.
const SPANS: u64 = 6;
const TABLES: &str = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = 'longshore' AND c.relkind = 'r'";

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let Some(seconds) = context.soak_s else { return Ok(()) };
    let server = context.database.as_ref().ok_or("it needs --store postgres")?;
    let database = server.new_database(context.flush_ms)?;
    let before = DatabaseCost::of(server)?;
    let retention = (seconds / SPANS / 2).to_string();
    let mut command = Command::new(store_load(context)?);
    command.arg(server.url(&database)).args(["soak", "--seconds", &seconds.to_string()]);
    command.args(["--retention", &retention, "--spans", &SPANS.to_string()]).stdout(Stdio::piped());
    let started = command.spawn();
    let mut load = started.map_err(|error| format!("cannot run longshore-store-load: {error}"))?;
    let printed = BufReader::new(load.stdout.take().ok_or("no output")?).lines();
    let mut lives = 0.0;
    for line in printed {
        let line = line.map_err(|error| format!("longshore-store-load: {error}"))?;
        let span: Value = serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))?;
        let name = format!("soak.span_{}", number(&span, "span")?);
        for reading in ["lives_per_s", "commit_p50_us", "commit_p99_us"] {
            readings.put(format!("{name}.{reading}"), number(&span, reading)?);
        }
        lives += number(&span, "lives_per_s")? * (seconds / SPANS) as f64;
        readings.put(format!("{name}.tables_mib"), server.number(TABLES, &database)? / 1_048_576.0);
    }
    let ended = load.wait().map_err(|error| format!("longshore-store-load: {error}"))?;
    if !ended.success() {
        return Err(format!("longshore-store-load failed ({ended})"));
    }
    let cost = DatabaseCost::of(server)?.since(before);
    readings.put("soak.database_cpu_us_per_life", cost.cpu_s * 1e6 / lives);
    readings.put("soak.log_bytes_per_life", cost.log_bytes / lives);
    Ok(())
}
