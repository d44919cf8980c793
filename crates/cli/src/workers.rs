//! `longshore workers`.

use clap::Args;

use crate::exit::{CommandExit, CommandResult};
use crate::human::ms_cell;
use crate::jobs::EndpointArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("WORKER", "id"),
    Column::new("STATUS", "status"),
    Column::new("VERSION", "version"),
    Column::new("JOBS", "jobsInProgress"),
    Column::new("IDLE", "idleMs").shown_as(ms_cell),
    Column::new("GPU", "gpu.displayName"),
    Column::new("REASON", "reason"),
];

/// Arguments of `longshore workers`.
#[derive(Debug, Args)]
pub struct WorkersArgs {
    /// Include ended workers whose logs are kept
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    at: EndpointArgs,
}

/// Lists the workers of an endpoint.
pub(crate) async fn workers(args: &WorkersArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let workers = session.client.workers(&args.at.endpoint, args.all).await?;
    session.output.records(COLUMNS, &workers)?;
    Ok(CommandExit::Success)
}
