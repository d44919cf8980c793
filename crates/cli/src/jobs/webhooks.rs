//! `longshore webhooks`: what became of the calls of webhooks.

use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use longshore_model::JobId;
use serde_json::Value;

use super::{endpoint_name, job_id, span};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::time_cell;
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
pub struct WebhooksArgs {
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

/// Lists calls, the one with the latest attempt first.
pub(crate) async fn webhooks(args: &WebhooksArgs) -> CommandResult {
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
            let last =
                SignedDuration::try_from(last).map_err(|error| cannot("count back that far", error))?;
            let since = Timestamp::now().checked_sub(last).unwrap_or(Timestamp::UNIX_EPOCH);
            query = format!("{query}&since={}", since.max(Timestamp::UNIX_EPOCH));
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
    fn a_call_is_shown_by_its_last_attempt() {
        let attempts = json!([{ "attempt": 4, "status": 503 }, { "attempt": 5, "status": null, "error": "no answer in time" }]);
        assert_eq!((number(&attempts).as_str(), answer(&attempts).as_str()), ("5", "no answer in time"));
        let attempts = json!([{ "attempt": 1, "status": 200, "at": "2001-01-31T12:00:00Z" }]);
        assert_eq!((answer(&attempts).as_str(), tried(&attempts).as_str()), ("HTTP 200", "2001-01-31"));
        assert_eq!(answer(&json!([])), "-");
    }
}
