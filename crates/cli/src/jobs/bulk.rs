//! `longshore bulk`: cancels, retries or deletes all jobs that match.

use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use longshore_client::BulkTask;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{endpoint_name, show, span};
use crate::confirm::confirm;
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::count;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::stop::StopRequest;

/// The time between two looks at a task.
const LOOK: Duration = Duration::from_millis(200);

/// What a bulk task does with each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BulkAction {
    /// Cancel queued and running jobs.
    Cancel,
    /// Queue failed and timed-out jobs again.
    Retry,
    /// Delete ended jobs with their payloads.
    Delete,
}

impl BulkAction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }
}

/// Arguments of `longshore bulk`.
#[derive(Debug, Args)]
pub struct BulkArgs {
    /// cancel, retry or delete
    #[arg(value_name = "ACTION", value_enum, hide_possible_values = true)]
    action: BulkAction,
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: String,
    /// Only jobs in this state, such as FAILED
    #[arg(long, value_name = "STATE", value_parser = show::state)]
    status: Option<String>,
    /// Only jobs submitted in the last 15m, 6h or 30d
    #[arg(long, value_name = "TIME", value_parser = span)]
    last: Option<Duration>,
    /// Only jobs submitted longer ago than this
    #[arg(long, value_name = "TIME", value_parser = span)]
    before: Option<Duration>,
    /// Only jobs of this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only jobs that the key with this id submitted
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only jobs with this text in id, input, output or error
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Count the jobs and change none
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Do not wait for the end of the task
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Counts the jobs, asks for confirmation, and changes them.
pub(crate) async fn bulk(args: &BulkArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let mut request = json!({ "do": args.action.as_str(), "filter": filter(args)?, "dryRun": true });
    let text = session.client.create_bulk(&args.endpoint, &request).await?;
    let counted = task_of(&text)?;
    let at_least = if counted.counted == Some(false) { "at least " } else { "" };
    let found = format!("{at_least}{}", count(counted.matches, "job"));
    if args.dry_run {
        match session.output.format {
            OutputFormat::Table => {
                session.output.line(&format!("{found} of `{}` match", args.endpoint))?;
            }
            _ => session.output.record(&text)?,
        }
        return Ok(CommandExit::Success);
    }
    confirm(args.yes, &format!("{} {found} of `{}`?", args.action.as_str(), args.endpoint))?;
    request["dryRun"] = json!(false);
    let text = session.client.create_bulk(&args.endpoint, &request).await?;
    if args.no_wait {
        session.output.record(&text)?;
        return Ok(CommandExit::Success);
    }
    wait(args, &session, text).await
}

/// Waits for the end of the task, and prints it.
async fn wait(args: &BulkArgs, session: &Connection, first: Box<RawValue>) -> CommandResult {
    let mut ctrl_c = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let step = session.screen.step(format!("{} jobs of {}", args.action.as_str(), args.endpoint));
    let mut text = first;
    let exit = loop {
        let task = task_of(&text)?;
        if task.state != "running" {
            break CommandExit::Success;
        }
        step.detail(format!("{} of {}", task.done + task.failed, task.matches));
        let Some(id) = &task.id else { break CommandExit::Success };
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = ctrl_c.requested() => break CommandExit::Interrupted,
        }
        text = session.client.bulk(&args.endpoint, id).await?;
    };
    drop(step);
    let task = task_of(&text)?;
    match session.output.format {
        OutputFormat::Table => {
            let failed = if task.failed == 0 {
                String::new()
            } else {
                format!(", {} could not be changed", task.failed)
            };
            session.output.line(&format!("{}: {}{failed}", task.state, count(task.done, "job")))?;
        }
        _ => session.output.record(&text)?,
    }
    if exit == CommandExit::Interrupted {
        session.screen.line("    the task goes on");
    }
    Ok(exit)
}

/// The conditions as the server takes them.
fn filter(args: &BulkArgs) -> CommandResult<Map<String, Value>> {
    let mut filter = Map::new();
    let texts = [
        ("status", args.status.clone()),
        ("since", args.last.map(ago).transpose()?),
        ("until", args.before.map(ago).transpose()?),
        ("worker", args.worker.clone()),
        ("key", args.key.clone()),
        ("q", args.text.clone()),
    ];
    for (name, text) in texts {
        filter.extend(text.map(|text| (name.to_owned(), json!(text))));
    }
    Ok(filter)
}

/// The time `time` ago, in RFC 3339.
fn ago(time: Duration) -> CommandResult<String> {
    let time = SignedDuration::try_from(time).map_err(|error| cannot("count back that far", error))?;
    let at = Timestamp::now().checked_sub(time).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(at.max(Timestamp::UNIX_EPOCH).to_string())
}

fn task_of(text: &RawValue) -> CommandResult<BulkTask> {
    serde_json::from_str(text.get()).map_err(|error| cannot("read the server's answer", error))
}
