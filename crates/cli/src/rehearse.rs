//! `longshore rehearse`: what other scaling settings would have done with an endpoint's jobs.

mod recorded;
mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use longshore_client::Collection;
use longshore_rehearse::{Conditions, Outcome, Quantiles, Trace, rehearse as replay};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::exit::{CommandError, CommandExit, CommandResult, cannot, needing};
use crate::human::{at_clock, count, ms_cell, percent_cell};
use crate::jobs::{endpoint_name, span};
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;
use recorded::Recorded;
use settings::{ScalingSettings, assignment};

/// The start time of workers if none is known.
const START: Duration = Duration::from_secs(10);
/// The most jobs of a rehearsal: they need about 1.2 GB of memory.
const JOBS_MAX: u64 = 20_000_000;
/// The scopes that permit a rehearsal.
const READERS: &str = "`read` or `manage`";

const COLUMNS: &[Column] = &[
    Column::new("SETTINGS", "settings"),
    Column::new("WAIT P50", "waitP50Ms").shown_as(ms_cell),
    Column::new("P95", "waitP95Ms").shown_as(ms_cell),
    Column::new("P99", "waitP99Ms").shown_as(ms_cell),
    Column::new("LONGEST", "waitMaxMs").shown_as(ms_cell),
    Column::new("STARTS", "starts"),
    Column::new("WORKERS", "workersMost"),
    Column::new("WORKER TIME", "paidMs").shown_as(ms_cell),
    Column::new("BUSY", "busyShare").shown_as(percent_cell),
    Column::new("COST", "cost"),
];

/// Arguments of `longshore rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: String,
    /// The jobs of this time up to now [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "trace")]
    last: Option<Duration>,
    /// The jobs of a file with lines of `TIME,RUN_MS`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// A setting to try, such as workersMax=4; repeatable
    #[arg(long, value_name = "SETTING=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,
    /// The start of a worker [default: as recorded]
    #[arg(long, value_name = "TIME", value_parser = span)]
    start: Option<Duration>,
    /// Of a worker's hour [default: of one that runs]
    #[arg(long, value_name = "PRICE", value_parser = price_of_text)]
    price: Option<f64>,
    /// Seed of the random times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Replays the jobs with the endpoint's settings and with those to try, and prints both outcomes.
pub(crate) async fn rehearse(args: &RehearseArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let endpoint = endpoint(&session, &args.endpoint).await?;
    let today = ScalingSettings::of(&endpoint)?;
    let tried = if args.set.is_empty() { None } else { Some(today.with(&args.set)?) };
    let recorded = Recorded::read(&session.client, args).await?;
    let trace = match &args.trace {
        Some(file) => read_trace(file)?,
        None => recorded.trace(args.seed)?,
    };
    if trace.arrivals().is_empty() {
        return Err(match &args.trace {
            Some(file) => CommandError::usage(format!("{} has no job", file.display())),
            None => CommandError::new(
                CommandExit::Failure,
                format!("no job of {} is known from that time", args.endpoint),
            )
            .next("give a longer time, such as --last 30d, or a file with --trace"),
        });
    }
    let starts = args.start.map(|start| Quantiles::of_one(start.as_millis() as u64)).or(recorded.starts);
    let is_start_known = starts.is_some();
    let starts = starts.unwrap_or_else(|| Quantiles::of_one(START.as_millis() as u64));
    let price = args.price.or_else(|| price_of_running(&endpoint));
    let run = |name: String, settings: &ScalingSettings| {
        let conditions = Conditions { rules: settings.rules(), starts: starts.clone(), seed: args.seed };
        row(&name, &replay(&trace, &conditions), price)
    };
    let mut rows = vec![run("today".to_owned(), &today)?];
    if let Some(tried) = &tried {
        let words = args.set.iter().map(|(name, value)| format!("{name}={}", settings::shown(value)));
        rows.push(run(words.collect::<Vec<_>>().join(" "), tried)?);
    }
    session.output.say(&about(args, &trace))?;
    session.output.records(COLUMNS, &rows)?;
    if !is_start_known {
        let text =
            format!("no start of a worker is recorded: {} s assumed; --start sets it", START.as_secs());
        session.screen.note(&text);
    }
    Ok(CommandExit::Success)
}

/// The endpoint's record with its workers.
async fn endpoint(session: &Connection, name: &str) -> CommandResult<Value> {
    let record = session.client.get(Collection::Endpoints, name, "includeWorkers=true").await;
    let record = record.map_err(needing(READERS, name))?;
    serde_json::from_str(record.get()).map_err(|error| cannot("read the server's answer", error))
}

fn read_trace(file: &Path) -> CommandResult<Trace> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| cannot(format_args!("read {}", file.display()), error))?;
    let trace = Trace::parse(&text).map_err(|error| {
        CommandError::usage(format!("{}, {error}", file.display()))
            .next("a line is TIME,RUN_MS, such as 2030-01-31T12:00:00Z,840 or 12.5,840")
    })?;
    few_enough(trace.arrivals().len() as u64)?;
    Ok(trace)
}

fn few_enough(jobs: u64) -> CommandResult<()> {
    if jobs > JOBS_MAX {
        let message = format!("{jobs} jobs are more than a rehearsal replays: at most {JOBS_MAX}");
        return Err(CommandError::usage(message).next("give a shorter time"));
    }
    Ok(())
}

fn price_of_text(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "a price is a number from 0 on, such as 2.5".to_owned())
}

/// The price of an hour of a worker that runs; `None` if none runs, or the server knows no price.
fn price_of_running(endpoint: &Value) -> Option<f64> {
    let workers = endpoint["workers"].as_array()?;
    workers.iter().find_map(|worker| worker["costPerHr"].as_f64().filter(|price| *price > 0.0))
}

/// An outcome as a record of the output.
fn row(settings: &str, outcome: &Outcome, price: Option<f64>) -> CommandResult<Box<RawValue>> {
    let wait = |share| outcome.wait(share).map(|wait| wait.as_millis() as u64);
    let hours = outcome.paid_ms as f64 / 3_600_000.0;
    let record = json!({
        "settings": settings,
        "jobs": outcome.jobs,
        "expired": outcome.expired,
        "waitP50Ms": wait(0.5),
        "waitP95Ms": wait(0.95),
        "waitP99Ms": wait(0.99),
        "waitMaxMs": wait(1.0),
        "starts": outcome.starts,
        "workersMost": outcome.workers_most,
        "paidMs": outcome.paid_ms,
        "busyMs": outcome.busy_ms,
        "busyShare": outcome.busy_share(),
        "cost": price.map(|price| (price * hours * 100.0).round() / 100.0),
    });
    to_raw_value(&record).map_err(|error| cannot("write the outcome", error))
}

/// Says what is replayed.
fn about(args: &RehearseArgs, trace: &Trace) -> String {
    let jobs = count(trace.arrivals().len() as u64, "job");
    match &args.trace {
        Some(file) => format!("{jobs} of {}", file.display()),
        None => format!(
            "{jobs} from {} on, at random moments of the minutes in which the history counts them",
            at_clock(trace.from().0 as i64).unwrap_or_default()
        ),
    }
}
