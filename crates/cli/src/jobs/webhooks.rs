//! `longshore webhooks`: what became of the calls of webhooks, and delivering failed ones again.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use longshore_client::RedeliveredWebhooks;
use longshore_model::JobId;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::{endpoint_name, job_id, since, span};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::{count, time_cell};
use crate::output::{OutputFormat, cell};
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("STATE", "state"),
    Column::new("JOB", "job"),
    Column::new("EVENT", "event"),
    Column::new("RECEIVER", "receiver"),
    Column::new("ATTEMPTS", "attempts").shown_as(number),
    Column::new("LAST ANSWER", "attempts").shown_as(answer),
    Column::new("TRIED", "attempts").shown_as(tried),
    Column::new("NEXT", "nextAttemptAt").shown_as(time_cell),
];
const ENDPOINT: Column = Column::new("ENDPOINT", "endpoint");

/// The states of a call.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "UPPER")]
enum CallState {
    Delivered,
    Pending,
    Failed,
}

/// Arguments of `longshore webhooks`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WebhooksArgs {
    #[command(subcommand)]
    command: Option<WebhooksCommand>,
    /// The endpoint's id or slug [default: all endpoints]
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: Option<String>,
    /// Only calls that are DELIVERED, PENDING or FAILED
    #[arg(long, value_name = "STATE", ignore_case = true, hide_possible_values = true)]
    state: Option<CallState>,
    /// Only calls for this job
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
    /// Only calls that were tried in this time up to now
    #[arg(long, value_name = "TIME", value_parser = span)]
    last: Option<Duration>,
    /// Most calls to list, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Subcommands of `longshore webhooks`.
#[derive(Debug, Subcommand)]
enum WebhooksCommand {
    /// Deliver failed calls again
    #[command(
        after_help = "Examples:\n  longshore webhooks redeliver hello --last 1h\n  longshore webhooks redeliver --all --last 1h"
    )]
    Redeliver(RedeliverArgs),
}

/// Arguments of `longshore webhooks redeliver`.
#[derive(Debug, Args)]
struct RedeliverArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name, required_unless_present = "all", conflicts_with = "all")]
    endpoint: Option<String>,
    /// The calls of every endpoint whose jobs the key may submit
    #[arg(long)]
    all: bool,
    /// Only calls that were tried in this time up to now
    #[arg(long, value_name = "TIME", value_parser = span)]
    last: Option<Duration>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Lists calls, the one with the latest attempt first, or runs a subcommand.
pub(crate) async fn webhooks(args: &WebhooksArgs) -> CommandResult {
    match &args.command {
        Some(WebhooksCommand::Redeliver(calls)) => redeliver(calls).await,
        None => list(args).await,
    }
}

/// Delivers failed calls again, and says how many.
async fn redeliver(args: &RedeliverArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let query = args.last.map(since).transpose()?.map(|since| format!("since={since}")).unwrap_or_default();
    let done = session.client.redeliver_webhooks(args.endpoint.as_deref(), &query).await?;
    if session.output.format == OutputFormat::Table {
        session.output.line(&in_words(done))?;
    } else {
        let text = to_raw_value(&done).map_err(|error| cannot("show the numbers of calls", error))?;
        session.output.record(&text)?;
    }
    Ok(if done.unread > 0 { CommandExit::Failure } else { CommandExit::Success })
}

/// What became of the calls, in a line.
fn in_words(done: RedeliveredWebhooks) -> String {
    let mut parts = vec![match done.redelivered {
        0 => "no call is delivered again".to_owned(),
        1 => "1 call is delivered again".to_owned(),
        number => format!("{} are delivered again", count(number, "call")),
    }];
    if done.gone > 0 {
        let whose = if done.gone == 1 { "its job is" } else { "their jobs are" };
        parts.push(format!("{} cannot be: {whose} gone", done.gone));
    }
    if done.unread > 0 {
        parts.push(format!("those of {} could not be read: try again", count(done.unread, "endpoint")));
    }
    parts.join("; ")
}

async fn list(args: &WebhooksArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let page = session.client.webhooks(args.endpoint.as_deref(), &args.query()?).await?;
    let shown = page.webhooks.len();
    if args.endpoint.is_some() {
        session.output.records(COLUMNS, &page.webhooks)?;
    } else {
        session.output.records(&[std::slice::from_ref(&ENDPOINT), COLUMNS].concat(), &page.webhooks)?;
    }
    let has_more = page.cursor.is_some() || page.of.is_some_and(|of| of > shown as u64);
    if has_more && session.output.format == OutputFormat::Table {
        session.screen.line(&session.screen.dim(&format!("the latest {shown}; --limit lists more")));
    }
    if page.unread > 0 {
        session.output.say(&format!("the log of {} endpoints could not be read in time", page.unread))?;
    }
    Ok(CommandExit::Success)
}

impl WebhooksArgs {
    fn query(&self) -> CommandResult<String> {
        let mut query = format!("limit={}", self.limit);
        if let Some(state) = self.state.and_then(|state| state.to_possible_value()) {
            query = format!("{query}&state={}", state.get_name());
        }
        if let Some(job) = self.job {
            query = format!("{query}&job={job}");
        }
        if let Some(last) = self.last {
            query = format!("{query}&since={}", since(last)?);
        }
        Ok(query)
    }
}

/// The last attempt of a call.
fn last(attempts: &Value) -> &Value {
    attempts.as_array().and_then(|attempts| attempts.last()).unwrap_or(&Value::Null)
}

/// The number of the last attempt; earlier ones may be gone from the log.
fn number(attempts: &Value) -> String {
    cell(&last(attempts)["attempt"])
}

fn answer(attempts: &Value) -> String {
    let last = last(attempts);
    last["status"].as_u64().map_or_else(|| cell(&last["error"]), |status| format!("HTTP {status}"))
}

fn tried(attempts: &Value) -> String {
    time_cell(&last(attempts)["at"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn redelivered_calls_are_counted_in_words() {
        let words = |redelivered, gone, unread| in_words(RedeliveredWebhooks { redelivered, gone, unread });
        assert_eq!(words(0, 0, 0), "no call is delivered again");
        assert_eq!(words(1, 0, 0), "1 call is delivered again");
        assert_eq!(words(12, 1, 0), "12 calls are delivered again; 1 cannot be: its job is gone");
        assert_eq!(
            words(2, 3, 1),
            "2 calls are delivered again; 3 cannot be: their jobs are gone; those of 1 endpoint could not be read: try again"
        );
    }

    #[test]
    fn a_call_is_shown_by_its_last_attempt() {
        let attempts = json!([{ "attempt": 4, "status": 503 }, { "attempt": 5, "status": null, "error": "no answer in time" }]);
        assert_eq!((number(&attempts).as_str(), answer(&attempts).as_str()), ("5", "no answer in time"));
        let attempts = json!([{ "attempt": 1, "status": 200, "at": "2001-01-31T12:00:00Z" }]);
        assert_eq!((answer(&attempts).as_str(), tried(&attempts).as_str()), ("HTTP 200", "2001-01-31"));
        assert_eq!(answer(&json!([])), "-");
    }
}
