//! Commands that list, show, create, change and delete endpoints, templates, secrets, keys, network volumes and
//! registry credentials.

mod endpoint;
mod key;
mod names;
mod registry;
mod secret;
mod sharing;
mod template;
mod traffic;
mod volume;

use clap::Args;
use longshore_client::Collection;
use serde_json::value::RawValue;

use crate::confirm::confirm;
use crate::exit::{CommandError, CommandExit, CommandResult, needing_for_all};
use crate::jobs::endpoint_name;
use crate::members::Members;
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;

pub use endpoint::EndpointCommand;
pub use key::KeyCommand;
pub use registry::RegistryCommand;
pub(crate) use secret::SECRET_EXAMPLES;
pub use secret::SecretCommand;
pub use template::TemplateCommand;
pub use volume::VolumeCommand;

/// Arguments of a command without an id.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of a command with the id of one resource.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of a command that deletes a resource.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

async fn list(args: &ListArgs, of: Collection, columns: &[Column]) -> CommandResult {
    let session = args.remote.connect()?;
    let records = session.client.list(of).await.map_err(|error| named(error.into(), of))?;
    session.output.records(columns, &records)?;
    Ok(CommandExit::Success)
}

async fn get(remote: &ServerArgs, of: Collection, id: &str, query: &str) -> CommandResult {
    let session = remote.connect()?;
    let record = session.client.get(of, id, query).await.map_err(|error| named(error.into(), of))?;
    session.output.record(&record)?;
    Ok(CommandExit::Success)
}

async fn create(remote: &ServerArgs, of: Collection, members: &Members) -> CommandResult {
    let session = remote.connect()?;
    let record = session.client.create(of, members.body()?).await.map_err(needing_for_all("`manage`"))?;
    session.output.record(&record)?;
    Ok(CommandExit::Success)
}

async fn update(remote: &ServerArgs, of: Collection, id: &str, members: &Members) -> CommandResult {
    let (session, record) = updated(remote, of, id, members).await?;
    session.output.record(&record)?;
    Ok(CommandExit::Success)
}

/// Changes a resource. Returns its new record.
async fn updated(
    remote: &ServerArgs,
    of: Collection,
    id: &str,
    members: &Members,
) -> CommandResult<(Connection, Box<RawValue>)> {
    if members.is_empty() {
        return Err(CommandError::usage("no field to change").next("give a field; --help lists them"));
    }
    let session = remote.connect()?;
    let record =
        session.client.update(of, id, members.body()?).await.map_err(|error| named(error.into(), of))?;
    Ok((session, record))
}

async fn delete(args: &DeleteArgs, of: Collection, drain: bool, also: &str) -> CommandResult {
    let session = args.remote.connect()?;
    session.client.get(of, &args.id, "").await.map_err(|error| named(error.into(), of))?;
    confirm(args.yes, &format!("delete the {of} `{}`{also}?", args.id))?;
    let step = session.screen.step(format!("deleting the {of}"));
    let deleted = session.client.delete_from(of, &args.id, drain).await;
    drop(step);
    deleted.map_err(|error| named(error.into(), of))?;
    session.output.say(&format!("{of} {} deleted", args.id))?;
    Ok(CommandExit::Success)
}

/// Adds the command that lists the kind of a missing resource, and what a key lacks that may not read or change keys.
fn named(failure: CommandError, of: Collection) -> CommandError {
    if failure.exit == CommandExit::Unauthorized && of == Collection::Keys {
        return failure.next(
            "keys are listed by a key with `read` or `manage` for all endpoints, and changed by one with `manage`",
        );
    }
    if failure.exit != CommandExit::NotFound || failure.next.is_some() {
        return failure;
    }
    let command = match of {
        Collection::Endpoints => "endpoint",
        Collection::Templates => "template",
        Collection::Keys => "keys",
        Collection::Secrets => "secret",
        Collection::NetworkVolumes => "volume",
        Collection::RegistryAuths => "registry",
        Collection::Sessions => "sessions",
    };
    failure.next(format!("`longshore {command} list` lists them"))
}
