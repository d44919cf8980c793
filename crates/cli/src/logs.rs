//! `longshore logs`: prints the log lines of workers.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use longshore_client::{Client, ClientError, LogLines};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::dev::logs::record;
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::input::whole;
use crate::jobs::{EndpointArgs, endpoint_name};
use crate::output::{OutputFormat, parsed};
use crate::remote::Connection;
use crate::stop::StopRequest;

/// Interval between two searches for new workers.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Characters of a worker's id that are shown.
const WORKER_CHARS: usize = 8;
/// Capacity of the channel between readers and the printer, in lines.
const LINES_MAX: usize = 1_000;

/// Arguments of `longshore logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Continue with new lines and new workers
    #[arg(short, long)]
    follow: bool,
    /// Only this worker, also after its end
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// Last N lines of each worker to start with
    #[arg(long, value_name = "N", value_parser = whole::<u32>, default_value_t = 100)]
    tail: u32,
    #[command(flatten)]
    at: EndpointArgs,
}

/// Prints the last log lines of workers, and with `--follow` new ones.
pub(crate) async fn logs(args: &LogsArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let mut ctrl_c = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    tokio::select! {
        outcome = print(&session, args) => outcome,
        () = ctrl_c.requested() => Ok(if args.follow { CommandExit::Success } else { CommandExit::Interrupted }),
    }
}

async fn print(session: &Connection, args: &LogsArgs) -> CommandResult {
    let (sender, mut lines) = mpsc::channel(LINES_MAX);
    let mut readers = JoinSet::new();
    let mut seen = BTreeSet::new();
    if let Some(worker) = &args.worker {
        let worker = endpoint_name(worker)
            .map_err(|_| CommandError::usage(format!("`{worker}` is not a worker's id")))?;
        let log = session.client.worker_log(&args.at.endpoint, &worker, Some(args.tail), args.follow).await?;
        readers.spawn(forward(worker, log, sender.clone()));
    } else {
        let found = add_new(session, args, &mut seen, &mut readers, &sender, Some(args.tail)).await?;
        if found == 0 && !args.follow {
            session
                .screen
                .note("no worker is running and no log is stored; `longshore logs -f` waits for a worker");
        }
    }
    let watches = args.follow && args.worker.is_none();
    if !watches {
        drop(sender);
        while let Some((worker, line)) = lines.recv().await {
            show(session, &worker, &line)?;
        }
        return Ok(CommandExit::Success);
    }
    let mut looks = tokio::time::interval(LOOK_PERIOD);
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some((worker, line)) => show(session, &worker, &line)?,
                None => return Ok(CommandExit::Success),
            },
            _ = looks.tick() => {
                // Every line of a new worker is new.
                match add_new(session, args, &mut seen, &mut readers, &sender, None).await {
                    // The server may be restarting.
                    Err(failure) if failure.exit == CommandExit::Unreachable => {}
                    other => { other?; }
                }
            }
        }
    }
}

/// Starts reading the logs of workers that are not in `seen`. If none is running at the start, the log of the last
/// ended worker is read, which shows why the worker ended.
async fn add_new(
    session: &Connection,
    args: &LogsArgs,
    seen: &mut BTreeSet<String>,
    readers: &mut JoinSet<()>,
    lines: &mpsc::Sender<(String, String)>,
    tail: Option<u32>,
) -> CommandResult<usize> {
    let first = seen.is_empty();
    let workers = session.client.workers(&args.at.endpoint, true).await?;
    let workers: Vec<(String, bool)> =
        workers.iter().filter_map(|worker| id_and_life(&parsed(worker))).collect();
    let any_alive = workers.iter().any(|(_, alive)| *alive);
    let youngest = workers.last().map(|(id, _)| id.clone());
    let mut found = 0;
    for (worker, alive) in workers {
        let news = seen.insert(worker.clone());
        let wanted = if first { alive || !any_alive && Some(&worker) == youngest.as_ref() } else { news };
        if !wanted {
            continue;
        }
        match session.client.worker_log(&args.at.endpoint, &worker, tail, args.follow).await {
            Ok(log) => {
                found += 1;
                readers.spawn(forward(worker, log, lines.clone()));
            }
            // The worker has no log yet; the next search finds it.
            Err(error) if error.is_not_found() && alive => {
                seen.remove(&worker);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn id_and_life(worker: &Value) -> Option<(String, bool)> {
    Some((worker.get("id")?.as_str()?.to_owned(), worker.get("status")? != "EXITED"))
}

/// Forwards lines. A log that ends early ends the task: the server restarts or the worker's log is removed.
async fn forward(worker: String, mut log: LogLines, lines: mpsc::Sender<(String, String)>) {
    while let Ok(Some(line)) = log.next().await {
        if lines.send((worker.clone(), line)).await.is_err() {
            return;
        }
    }
}

fn show(session: &Connection, worker: &str, line: &str) -> CommandResult<()> {
    match session.output.format {
        OutputFormat::Table => {
            let name: String = worker.chars().take(WORKER_CHARS).collect();
            let mark = session.output.styles.dim(&format!("{name} │"));
            record(line).lines().try_for_each(|line| session.output.line(&format!("{mark} {line}")))
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            let record = to_raw_value(&json!({ "worker": worker, "line": line }));
            session.output.line(record.map_err(|error| cannot("write a line", error))?.get())
        }
    }
}

/// Returns the last lines of the last worker that ended, which usually show why.
pub(crate) async fn last_words(
    client: &Client,
    endpoint: &str,
    lines: u32,
) -> Result<Vec<String>, ClientError> {
    let workers = client.workers(endpoint, true).await?;
    let mut ended =
        workers.iter().filter_map(|worker| id_and_life(&parsed(worker))).filter(|(_, alive)| !alive);
    let Some((worker, _)) = ended.next_back() else { return Ok(Vec::new()) };
    let mut log = client.worker_log(endpoint, &worker, Some(lines), false).await?;
    let mut words = Vec::new();
    while let Some(line) = log.next().await? {
        words.push(line);
    }
    Ok(words)
}
