//! `longshore workers`.

mod exits;

use clap::{Args, Subcommand};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::human::{count, ms_cell, percent_cell, size_cell, time_cell};
use crate::jobs::{EndpointArgs, endpoint_name};
use crate::output::{OutputFormat, parsed};
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("WORKER", "id"),
    Column::new("STATUS", "status"),
    Column::new("VERSION", "version"),
    Column::new("JOBS", "jobsInProgress"),
    Column::new("DONE", "jobsDone"),
    Column::new("IDLE", "idleMs").shown_as(ms_cell),
    Column::new("STARTED", "startedAt").shown_as(time_cell),
    Column::new("GPU", "gpu.displayName"),
    Column::new("REASON", "reason"),
];

const ALL_COLUMNS: &[Column] = &[
    Column::new("WORKER", "id"),
    Column::new("STATUS", "status"),
    Column::new("VERSION", "version"),
    Column::new("JOBS", "jobsInProgress"),
    Column::new("DONE", "jobsDone"),
    Column::new("STARTED", "startedAt").shown_as(time_cell),
    Column::new("ENDED", "endedAt").shown_as(time_cell),
    Column::new("MEMORY", "rssBytes").shown_as(size_cell),
    Column::new("CPU", "cpuRatio").shown_as(percent_cell),
    Column::new("GPU", "gpu.displayName"),
    Column::new("REASON", "reason"),
];

const STOP_EXAMPLES: &str = "\
Examples:
  longshore workers stop hello jwfpbqau
  longshore workers stop hello --all
  longshore workers stop --all          of all endpoints

Jobs that still run after the stop grace of the endpoint are queued again, and
count no retry. Another worker starts if the endpoint needs one; `longshore
endpoint pause` or `longshore drain` prevents that.";

/// Arguments of `longshore workers`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WorkersArgs {
    #[command(subcommand)]
    command: Option<WorkersCommand>,
    /// Include ended workers whose logs are kept
    #[arg(short, long)]
    all: bool,
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name, required = true)]
    endpoint: Option<String>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Subcommands of `longshore workers`.
#[derive(Debug, Subcommand)]
enum WorkersCommand {
    /// End workers now, and queue the jobs again that they run
    #[command(after_help = STOP_EXAMPLES)]
    Stop(EndArgs),
    /// End workers after their running jobs
    #[command(
        after_help = "Examples:\n  longshore workers drain hello jwfpbqau\n  longshore workers drain hello --all"
    )]
    Drain(EndArgs),
    /// Start the next worker now, after workers crashed
    #[command(after_help = "Examples:\n  longshore workers try-now hello")]
    TryNow(TryNowArgs),
}

/// Arguments of `longshore workers stop` and `longshore workers drain`.
#[derive(Debug, Args)]
struct EndArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name, required_unless_present = "all")]
    endpoint: Option<String>,
    /// The ids of the workers
    #[arg(value_name = "WORKER", required_unless_present = "all", conflicts_with = "all")]
    workers: Vec<String>,
    /// All workers that the server started, of ENDPOINT or of all
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `longshore workers try-now`.
#[derive(Debug, Args)]
struct TryNowArgs {
    #[command(flatten)]
    at: EndpointArgs,
}

/// Lists the workers of an endpoint, or runs a subcommand.
pub(crate) async fn workers(args: &WorkersArgs) -> CommandResult {
    match (&args.command, &args.endpoint) {
        (Some(WorkersCommand::Stop(ends)), _) => end(ends, true).await,
        (Some(WorkersCommand::Drain(ends)), _) => end(ends, false).await,
        (Some(WorkersCommand::TryNow(tries)), _) => try_now(&tries.at).await,
        (None, Some(endpoint)) => list(&args.remote, endpoint, args.all).await,
        (None, None) => Err(CommandError::usage("name an endpoint").next("longshore workers ENDPOINT")),
    }
}

async fn list(remote: &ServerArgs, endpoint: &str, all: bool) -> CommandResult {
    let session = remote.connect()?;
    let mut workers = session.client.workers(endpoint, all).await?;
    if session.output.format == OutputFormat::Table {
        workers = workers.iter().map(|worker| with_reason(worker)).collect::<CommandResult<_>>()?;
    }
    session.output.records(if all { ALL_COLUMNS } else { COLUMNS }, &workers)?;
    Ok(CommandExit::Success)
}

/// Sets the `reason` to how a worker ended, in words, or to what happens at its start.
fn with_reason(worker: &RawValue) -> CommandResult<Box<RawValue>> {
    let mut worker = parsed(worker);
    let reason = worker.get("exit").map(|exit| exits::in_words(exit, exits::lived_ms(&worker)));
    let reason = reason.or_else(|| Some(worker.get("stage")?.as_str()?.to_owned()));
    if let Some(reason) = reason {
        worker["reason"] = Value::String(reason);
    }
    to_raw_value(&worker).map_err(|error| cannot("show a worker", error))
}

/// Stops or drains workers.
async fn end(args: &EndArgs, now: bool) -> CommandResult {
    let session = args.remote.connect()?;
    let Some(endpoint) = &args.endpoint else { return end_everywhere(&session, now).await };
    let workers = if args.all { managed(&session, endpoint).await? } else { args.workers.clone() };
    for worker in &workers {
        end_one(&session, endpoint, worker, now).await?;
    }
    if args.all {
        session.screen.line(&ended(workers.len(), Some(endpoint)));
    }
    Ok(CommandExit::Success)
}

/// Stops or drains the workers of all endpoints that the key may change.
async fn end_everywhere(session: &Connection, now: bool) -> CommandResult {
    let mut number = 0;
    for endpoint in session.client.endpoints().await? {
        let name = endpoint.slug.unwrap_or_else(|| endpoint.id.to_string());
        for worker in managed(session, &name).await? {
            match end_one(session, &name, &worker, now).await {
                Ok(()) => number += 1,
                // It ended meanwhile.
                Err(error) if error.exit == CommandExit::NotFound => {}
                Err(error) if error.exit == CommandExit::Unauthorized => {
                    session.screen.note(&format!("the key may not end workers of {name}"));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    session.screen.line(&ended(number, None));
    Ok(CommandExit::Success)
}

/// Stops or drains one worker, and prints that.
async fn end_one(session: &Connection, endpoint: &str, worker: &str, now: bool) -> CommandResult<()> {
    let ended = if now {
        session.client.stop_worker(endpoint, worker).await?
    } else {
        session.client.drain_worker(endpoint, worker).await?
    };
    if session.output.format != OutputFormat::Table {
        return session.output.record(&ended);
    }
    let effect = if now { "is being stopped" } else { "ends after its running jobs" };
    session.output.line(&format!("{worker}  {effect}"))
}

/// Says how many workers of an endpoint, or of all endpoints, a command ended.
fn ended(number: usize, endpoint: Option<&str>) -> String {
    match (number, endpoint) {
        (0, Some(endpoint)) => format!("no worker of {endpoint} runs"),
        (0, None) => "no worker runs".to_owned(),
        (number, endpoint) => {
            format!("{} of {}", count(number as u64, "worker"), endpoint.unwrap_or("all endpoints"))
        }
    }
}

/// The ids of the workers that the server started for an endpoint: the others have no start time.
async fn managed(session: &Connection, endpoint: &str) -> CommandResult<Vec<String>> {
    let workers = session.client.workers(endpoint, false).await?;
    let started =
        workers.iter().map(|worker| parsed(worker)).filter(|worker| worker["startedAt"].is_string());
    Ok(started.filter_map(|worker| worker["id"].as_str().map(str::to_owned)).collect())
}

async fn try_now(at: &EndpointArgs) -> CommandResult {
    let session = at.remote.connect()?;
    let workers = session.client.try_workers_now(&at.endpoint).await?;
    match session.output.format {
        OutputFormat::Table => session.output.line("the next worker starts now, if jobs wait for one")?,
        _ => session.output.records(COLUMNS, &workers)?,
    }
    Ok(CommandExit::Success)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: EndArgs,
    }

    #[test]
    fn all_needs_no_endpoint_and_a_worker_needs_one() {
        let parsed = |line: &str| Line::try_parse_from(format!("stop {line}").split_whitespace());
        let endpoint = |line| parsed(line).map(|line| (line.args.endpoint, line.args.workers.len()));
        assert_eq!(endpoint("--all").unwrap(), (None, 0));
        assert_eq!(endpoint("gen --all").unwrap(), (Some("gen".into()), 0));
        assert_eq!(endpoint("gen w1 w2").unwrap(), (Some("gen".into()), 2));
        for line in ["", "gen", "gen w1 --all"] {
            assert!(parsed(line).is_err(), "{line}");
        }
        Line::command().debug_assert();
    }

    #[test]
    fn no_worker_is_said_in_words() {
        assert_eq!(ended(0, Some("gen")), "no worker of gen runs");
        assert_eq!(ended(0, None), "no worker runs");
        assert_eq!(ended(1, Some("gen")), "1 worker of gen");
        assert_eq!(ended(3, None), "3 workers of all endpoints");
    }
}
