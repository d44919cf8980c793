//! `longshore volume`.

use clap::{Args, Subcommand};
use longshore_client::Collection;
use serde_json::Value;

use super::names::{list_named, words};
use super::sharing::SharingArgs;
use super::{DeleteArgs, GetArgs, ListArgs, create, delete, get, update};
use crate::exit::CommandResult;
use crate::human::{size_cell, time_cell};
use crate::input::whole;
use crate::jobs::endpoint_name;
use crate::members::Members;
use crate::output::cell;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("NAME", "name"),
    Column::new("SIZE", "size").shown_as(gigabytes),
    Column::new("ON DISK", "diskBytes").shown_as(size_cell),
    Column::new("ENDPOINTS", "endpoints").shown_as(words),
    Column::new("CREATED", "createdAt").shown_as(time_cell),
];

const EXAMPLES: &str = "\
Examples:
  longshore volume create --name weights --size 200
  longshore volume list
  longshore volume update k2x0a8m4q6w1ez --endpoint hello
  longshore deploy --image IMAGE --volume k2x0a8m4q6w1ez
  longshore volume delete k2x0a8m4q6w1ez

A volume is a directory that workers of several endpoints share. Its size is for
people: it limits nothing. --endpoint is for keys that are limited to endpoints.";

/// Subcommands of `longshore volume`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum VolumeCommand {
    /// Create a network volume for workers
    #[command(after_help = "Examples:\n  longshore volume create --name weights --size 200")]
    Create(CreateVolumeArgs),
    /// List all network volumes of the server
    #[command(after_help = "Examples:\n  longshore volume list\n  longshore volume list -o json")]
    List(ListArgs),
    /// Show one network volume by id
    #[command(after_help = "Examples:\n  longshore volume get k2x0a8m4q6w1ez")]
    Get(GetArgs),
    /// Change a volume's name, its size, or who may use it
    #[command(
        after_help = "Examples:\n  longshore volume update k2x0a8m4q6w1ez --size 400\n  longshore volume update k2x0a8m4q6w1ez --endpoint hello"
    )]
    Update(UpdateVolumeArgs),
    /// Delete a volume that no endpoint uses, with its files
    #[command(after_help = "Examples:\n  longshore volume delete k2x0a8m4q6w1ez")]
    Delete(DeleteArgs),
}

/// Arguments of `volume create`.
#[derive(Debug, Args)]
pub struct CreateVolumeArgs {
    /// A name for people
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// Size in GB, for people; it limits nothing
    #[arg(long, value_name = "GB", value_parser = whole::<u32>)]
    size: u32,
    /// Where it is, for people [default: local]
    #[arg(long, value_name = "TEXT")]
    data_center: Option<String>,
    #[command(flatten)]
    sharing: SharingArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `volume update`.
#[derive(Debug, Args)]
pub struct UpdateVolumeArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    /// A name for people
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Size in GB, for people; it limits nothing
    #[arg(long, value_name = "GB", value_parser = whole::<u32>)]
    size: Option<u32>,
    #[command(flatten)]
    sharing: SharingArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Formats a size in GB.
fn gigabytes(value: &Value) -> String {
    value.as_u64().map_or_else(|| cell(value), |size| format!("{size} GB"))
}

impl VolumeCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        const OF: Collection = Collection::NetworkVolumes;
        match self {
            Self::Create(args) => {
                let mut members = Members::default();
                members.set("name", Some(&args.name))?;
                members.set("size", Some(args.size))?;
                members.set("dataCenterId", args.data_center.as_ref())?;
                args.sharing.set(&mut members)?;
                create(&args.remote, OF, &members).await
            }
            Self::List(args) => list_named(args, OF, COLUMNS).await,
            Self::Get(args) => get(&args.remote, OF, &args.id, "").await,
            Self::Update(args) => {
                let mut members = Members::default();
                members.set("name", args.name.as_ref())?;
                members.set("size", args.size)?;
                args.sharing.set(&mut members)?;
                update(&args.remote, OF, &args.id, &members).await
            }
            Self::Delete(args) => delete(args, OF, false, " with all its files").await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_unit() {
        assert_eq!([gigabytes(&Value::from(200)), gigabytes(&Value::Null)], ["200 GB", "-"]);
    }
}
