//! `longshore nodes`.

use clap::Args;

use crate::exit::{CommandExit, CommandResult};
use crate::output::OutputFormat;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("NODE", "name"),
    Column::new("STATE", "state"),
    Column::new("ADDRESS", "address"),
    Column::new("VERSION", "version"),
    Column::new("SINCE", "joinedAt"),
];

/// Arguments of `longshore nodes`.
#[derive(Debug, Args)]
pub struct NodesArgs {
    #[command(flatten)]
    remote: ServerArgs,
}

/// Lists the servers that share the database.
pub(crate) async fn nodes(args: &NodesArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let nodes = session.client.nodes().await?;
    if nodes.is_empty() && session.output.format == OutputFormat::Table {
        session.output.line("this server shares its database with no other")?;
        return Ok(CommandExit::Success);
    }
    session.output.records(COLUMNS, &nodes)?;
    Ok(CommandExit::Success)
}
