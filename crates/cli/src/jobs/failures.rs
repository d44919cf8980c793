//! `longshore failures`: why jobs of an endpoint failed, in groups.

use std::time::Duration;

use clap::Args;

use super::{endpoint_name, since, span};
use crate::exit::{CommandExit, CommandResult};
use crate::human::time_cell;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("COUNT", "count"),
    Column::new("IN PRESENT VERSION", "presentVersionCount"),
    Column::new("KIND", "kind"),
    Column::new("TYPE", "type"),
    Column::new("PLACE", "place"),
    Column::new("LAST", "lastAt").shown_as(time_cell),
    Column::new("SINCE VERSION", "sinceVersion"),
    Column::new("LAST JOB", "job"),
    Column::new("MESSAGE", "message"),
];

/// Arguments of `longshore failures`.
#[derive(Debug, Args)]
pub struct FailuresArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: String,
    /// The time range up to now, at most 30d
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "7d")]
    last: Duration,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Prints the groups of failures, the largest first.
pub(crate) async fn failures(args: &FailuresArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let since = since(args.last)?;
    let groups = session.client.failure_texts(&args.endpoint, &since.to_string()).await?;
    session.output.records(COLUMNS, &groups)?;
    Ok(CommandExit::Success)
}
