//! `longshore sessions`: the browsers that are signed in at the console.

use clap::{Args, Subcommand};
use longshore_client::Collection;

use crate::exit::{CommandError, CommandExit, CommandResult, needing_for_all};
use crate::human::time_cell;
use crate::remote::ServerArgs;
use crate::table::Column;

const OF: Collection = Collection::Sessions;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("KEY", "key.name"),
    Column::new("SIGNED IN", "openedAt").shown_as(time_cell),
    Column::new("LAST USED", "lastUsedAt").shown_as(time_cell),
    Column::new("EXPIRES", "expiresAt").shown_as(time_cell),
    Column::new("ADDRESS", "address"),
    Column::new("BROWSER", "agent"),
];

pub(crate) const SESSION_EXAMPLES: &str = "\
Examples:
  longshore sessions list
  longshore sessions end 5d41402abc4b2a76
  longshore sessions list -o jsonl | jq -r .id | xargs -r longshore sessions end

A session may do what its key may do. `longshore keys delete` revokes the key
with all its sessions.";

/// Subcommands of `longshore sessions`.
#[derive(Debug, Subcommand)]
#[command(after_help = SESSION_EXAMPLES)]
pub enum SessionCommand {
    /// List the browsers that are signed in, newest first
    #[command(after_help = "Examples:\n  longshore sessions list\n  longshore sessions list -o json")]
    List(ListSessionsArgs),
    /// Sign browsers out of the console
    #[command(after_help = "Examples:\n  longshore sessions end 5d41402abc4b2a76")]
    End(EndSessionsArgs),
}

/// Arguments of `sessions list`.
#[derive(Debug, Args)]
pub struct ListSessionsArgs {
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `sessions end`.
#[derive(Debug, Args)]
pub struct EndSessionsArgs {
    /// The ids of the sessions
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    remote: ServerArgs,
}

impl SessionCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        match self {
            Self::List(args) => list(args).await,
            Self::End(args) => end(args).await,
        }
    }
}

async fn list(args: &ListSessionsArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let sessions = session.client.list(OF).await.map_err(needing_for_all("`manage`"))?;
    session.output.records(COLUMNS, &sessions)?;
    Ok(CommandExit::Success)
}

/// Ends all sessions that exist. Those that are missing are reported afterwards.
async fn end(args: &EndSessionsArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let mut missing = Vec::new();
    for id in &args.ids {
        match session.client.delete_from(OF, id, false).await.map_err(needing_for_all("`manage`")) {
            Ok(()) => session.output.say(&format!("session {id} ended"))?,
            Err(failure) if failure.exit == CommandExit::NotFound => missing.push((id.as_str(), failure)),
            Err(failure) => return Err(failure),
        }
    }
    let (ids, failures): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    match failures.first() {
        None => Ok(CommandExit::Success),
        Some(failure) => {
            let message = format!("{}: {failure}", ids.join(", "));
            Err(CommandError::new(CommandExit::NotFound, message)
                .next("`longshore sessions list` lists them"))
        }
    }
}
