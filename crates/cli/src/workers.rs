//! `longshore workers`.

use clap::Args;

use crate::exit::{Exit, Outcome};
use crate::jobs::AtEndpoint;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("WORKER", "id"),
    Column::new("STATUS", "status"),
    Column::new("VERSION", "version"),
    Column::new("JOBS", "jobsInProgress"),
    Column::new("IDLE MS", "idleMs"),
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
    at: AtEndpoint,
}

/// Lists the workers of an endpoint.
pub(crate) async fn workers(args: &WorkersArgs) -> Outcome {
    let session = args.at.remote.connect()?;
    let workers = session.client.workers(&args.at.endpoint, args.all).await?;
    session.output.records(COLUMNS, &workers)?;
    Ok(Exit::Success)
}
