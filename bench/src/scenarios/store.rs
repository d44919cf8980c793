//! The store in a PostgreSQL, without HTTP: job lives a second and what they cost the database, beside a queue with
//! `FOR UPDATE SKIP LOCKED` and pgbench, with the disk's own flushes and with slower ones.

use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;

use serde_json::Value;

use super::{Scenario, ScenarioContext};
use crate::database_cost::DatabaseCost;
use crate::peers;
use crate::postgres_server::PostgresServer;
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "store",
    about: "job lives at the store without HTTP, beside SKIP LOCKED and pgbench, with 0 and 2 ms more per flush; 1 M rows",
    once: false,
    run,
};

/// What flushes take longer, in ms.
const FLUSHES_MS: [u64; 2] = [0, 2];
/// The database of the queue and of pgbench.
const DATABASE: &str = "postgres";
const BATCHES: [&str; 3] = ["1", "16", "64"];
/// Clients of pgbench, as many as the queue has connections that submit.
const PGBENCH: [&str; 6] = ["-n", "-c", "16", "-j", "1", "-T"];

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.database.as_ref().ok_or("it needs --store postgres")?;
    let ms = context.span().counted.as_millis().to_string();
    server.run_program("pgbench", &["-i", "-q", "-s", if context.quick { "1" } else { "10" }], DATABASE)?;
    for flush_ms in FLUSHES_MS {
        let name = format!("store.flush_{flush_ms}ms");
        for batch in BATCHES {
            let lives = Lives::measure(context, server, flush_ms, &["--batch", batch, "--ms", &ms])?;
            lives.put(readings, &format!("{name}.b{batch}"));
        }
        server.slow_flushes(DATABASE, flush_ms)?;
        let per_s = peers::skip_locked_jobs_per_s(context, Rc::clone(server))?;
        readings.put(format!("{name}.skip_locked.lives_per_s"), per_s);
        readings.put(format!("{name}.pgbench.transactions_per_s"), pgbench(context, server)?);
    }
    let jobs = context.many_jobs().to_string();
    let url = server.url(&server.new_database(0)?);
    let loaded = output(context, &url, &["million", "--jobs", &jobs])?;
    readings.put("store.million.load_ms", number(&loaded, "load_ms")?);
    readings.put("store.million.fill_s", number(&loaded, "fill_s")?);
    Ok(())
}

/// The results of a load without HTTP.
struct Lives {
    count: f64,
    seconds: f64,
    commit_p50_us: f64,
    cost: DatabaseCost,
}

impl Lives {
    fn measure(
        context: &ScenarioContext,
        server: &PostgresServer,
        flush_ms: u64,
        arguments: &[&str],
    ) -> Result<Self, String> {
        let url = server.url(&server.new_database(flush_ms)?);
        // Makes the tables, so that they are not measured.
        output(context, &url, &["lives", "--ms", "1"])?;
        server.ask("CHECKPOINT").map_err(|error| format!("cannot write a checkpoint: {error}"))?;
        let before = DatabaseCost::of(server)?;
        let lives = output(context, &url, &[&["lives"], arguments].concat())?;
        let cost = DatabaseCost::of(server)?.since(before);
        let (count, seconds) = (number(&lives, "lives")?, number(&lives, "seconds")?);
        Ok(Self { count, seconds, commit_p50_us: number(&lives, "commit_p50_us")?, cost })
    }

    fn put(&self, readings: &mut Readings, name: &str) {
        readings.put(format!("{name}.lives_per_s"), self.count / self.seconds);
        readings.put(format!("{name}.commit_p50_us"), self.commit_p50_us);
        readings.put(format!("{name}.database_cpu_us_per_life"), self.cost.cpu_s * 1e6 / self.count);
        readings.put(format!("{name}.log_bytes_per_life"), self.cost.log_bytes / self.count);
    }
}

fn pgbench(context: &ScenarioContext, server: &PostgresServer) -> Result<f64, String> {
    let seconds = context.span().counted.as_secs().max(1).to_string();
    let printed = server.run_program("pgbench", &[&PGBENCH[..], &[&seconds]].concat(), DATABASE)?;
    let rate = printed.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench printed no rate: {printed}"))
}

/// The program that commits without HTTP.
pub(super) fn store_load(context: &ScenarioContext) -> Result<&Path, String> {
    context
        .store_load
        .as_deref()
        .ok_or_else(|| "no longshore-store-load; name it with --store-load".to_owned())
}

/// Runs a load. Returns the result that it printed.
fn output(context: &ScenarioContext, url: &str, arguments: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(store_load(context)?);
    let printed = command.arg(url).args(arguments).stderr(Stdio::inherit()).output();
    let printed = printed.map_err(|error| format!("cannot run longshore-store-load: {error}"))?;
    serde_json::from_slice(&printed.stdout).map_err(|error| format!("longshore-store-load: {error}"))
}

/// A number of a result.
pub(super) fn number(result: &Value, name: &str) -> Result<f64, String> {
    result[name].as_f64().ok_or_else(|| format!("a result without `{name}`: {result}"))
}
