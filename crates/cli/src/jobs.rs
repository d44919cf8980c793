//! Commands that submit, show and end jobs.

mod bulk;
mod chunks;
mod control;
mod explain;
mod failures;
mod follow;
mod history;
mod request;
mod show;
mod stream;
mod submit;
mod summary;
mod webhooks;

use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use longshore_model::JobId;

use crate::exit::{CommandResult, cannot};
use crate::input::whole;
use crate::remote::ServerArgs;

pub use bulk::BulkArgs;
pub(crate) use bulk::bulk;
pub(crate) use control::{cancel, purge, retry};
pub use explain::ExplainArgs;
pub(crate) use explain::explain;
pub use failures::FailuresArgs;
pub(crate) use failures::failures;
pub(crate) use follow::title;
pub use history::HistoryArgs;
pub(crate) use history::history;
pub(crate) use request::RequestArgs;
pub(crate) use show::{health, requests, status};
pub(crate) use stream::stream;
pub(crate) use submit::{run, runsync};
pub use webhooks::WebhooksArgs;
pub(crate) use webhooks::webhooks;

/// Parses an endpoint's id or slug. Other characters are a typing error.
pub(crate) fn endpoint_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.split('/').all(|word| word.starts_with(|c| fits(c) && c != '.') && word.chars().all(fits)) {
        Ok(text.to_owned())
    } else {
        Err("an endpoint's id or slug has letters, digits, `-`, `_`, `.` and `/` only".to_owned())
    }
}

fn job_id(text: &str) -> Result<JobId, String> {
    text.parse().map_err(|_| "a job id looks like 019a2b3c-4d5e-7f60-8123-456789abcdef".to_owned())
}

/// Parses a time: `90`, `90s`, `1500ms`, `10m`, `2h` or `7d`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("write a time like 90s, 1500ms, 10m, 2h or 7d".to_owned()),
    };
    let ms = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    ms.map(Duration::from_millis).ok_or_else(|| "write a time like 90s, 1500ms, 10m, 2h or 7d".to_owned())
}

/// The time that is this long before now.
pub(crate) fn since(last: Duration) -> CommandResult<Timestamp> {
    let last = SignedDuration::try_from(last).map_err(|error| cannot("count back that far", error))?;
    let since = Timestamp::now().checked_sub(last).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(since.max(Timestamp::UNIX_EPOCH))
}

/// The endpoint of a command, and its server. Must be the last of a command's arguments, because later options
/// would be listed under its heading.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// The endpoint's id or slug
    #[arg(index = 1, value_name = "ENDPOINT", value_parser = endpoint_name)]
    pub(crate) endpoint: String,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

/// Whether a command waits for its job's end.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Wait for the job's end and print its result
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// With --wait: stop waiting after this time
    #[arg(long, value_name = "TIME", value_parser = span, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
    /// Print large and binary outputs whole on a terminal
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `longshore run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

/// Arguments of `longshore runsync`.
#[derive(Debug, Args)]
pub struct RunsyncArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Wait at most this long, 1s to 300s
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "90s")]
    pub(crate) timeout: Duration,
    /// Print large and binary outputs whole on a terminal
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

/// Arguments of `longshore status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The job's id
    #[arg(index = 2, value_name = "JOB", value_parser = job_id)]
    pub(crate) job: JobId,
    /// List the job's last attempts and why they ended
    #[arg(long, conflicts_with = "wait")]
    pub(crate) attempts: bool,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

/// Arguments of `longshore stream`.
#[derive(Debug, Args)]
pub struct StreamArgs {
    /// The job's id
    #[arg(index = 2, value_name = "JOB", value_parser = job_id)]
    pub(crate) job: JobId,
    /// First chunk to print, counted from 0
    #[arg(long, value_name = "N", value_parser = whole::<u64>, default_value_t = 0)]
    pub(crate) offset: u64,
    /// Print large and binary chunks whole on a terminal
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

/// Arguments of `longshore cancel` and `longshore retry`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// The ids of the jobs
    #[arg(index = 2, value_name = "JOB", value_parser = job_id, required = true)]
    pub(crate) jobs: Vec<JobId>,
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

/// Arguments of `longshore purge`.
#[derive(Debug, Args)]
pub struct PurgeArgs {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

/// Arguments of `longshore health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

/// Arguments of `longshore requests`.
#[derive(Debug, Args)]
pub struct RequestsArgs {
    /// Only jobs in this state, such as FAILED
    #[arg(long, value_name = "STATE", value_parser = show::state)]
    pub(crate) status: Option<String>,
    /// Most jobs to list, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// The cursor of the previous page
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    pub(crate) cursor: Option<JobId>,
    #[command(flatten)]
    pub(crate) at: EndpointArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_their_unit() {
        for (text, ms) in [("90", 90_000), ("90s", 90_000), ("5ms", 5), ("2m", 120_000), ("7d", 604_800_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1w", "1.5s", "99999999999999999999d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_endpoints_name_is_no_path() {
        for text in ["my-model_2", "Org/Model.v2", "k2x0a8m4q6w1ez"] {
            assert!(endpoint_name(text).is_ok(), "{text}");
        }
        for text in ["", "a//b", "/a", "a/", "a/../b", "..", "a?b", "ä", "a b"] {
            assert!(endpoint_name(text).is_err(), "{text}");
        }
    }
}
