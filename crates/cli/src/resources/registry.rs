//! `longshore registry`: credentials for registries of container images.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use longshore_client::Collection;

use super::names::{list_named, words};
use super::sharing::SharingArgs;
use super::{DeleteArgs, GetArgs, ListArgs, create, delete, get, update};
use crate::exit::{CommandError, CommandResult, cannot};
use crate::hidden_input;
use crate::human::time_cell;
use crate::jobs::endpoint_name;
use crate::members::Members;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("NAME", "name"),
    Column::new("ENDPOINTS", "endpoints").shown_as(words),
    Column::new("CREATED", "createdAt").shown_as(time_cell),
];

const EXAMPLES: &str = "\
Examples:
  longshore registry create --name hub --username ada
  longshore registry list
  longshore deploy --image registry.example/chat:3 --registry-auth hub
  longshore registry delete k2x0a8m4q6w1ez

No command prints a user name or a password. Neither can change: create other
credentials, deploy with those, and delete the old ones.";

const CREATE_EXAMPLES: &str = "\
Examples:
  longshore registry create --name hub --username ada
  longshore registry create --name hub --username ada < token.txt
  longshore registry create --name hub --username ada --password-file token.txt

Reads the password from the file or from standard input, without the last line
break, or from the terminal without showing it.";

/// Subcommands of `longshore registry`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum RegistryCommand {
    /// Store credentials for a registry
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateRegistryArgs),
    /// List all credentials, without user names and passwords
    #[command(after_help = "Examples:\n  longshore registry list\n  longshore registry list -o json")]
    List(ListArgs),
    /// Show credentials by id, without user name and password
    #[command(after_help = "Examples:\n  longshore registry get k2x0a8m4q6w1ez")]
    Get(GetArgs),
    /// Change the name of credentials, or who may use them
    #[command(after_help = "Examples:\n  longshore registry update k2x0a8m4q6w1ez --endpoint hello")]
    Update(UpdateRegistryArgs),
    /// Delete credentials that no template uses
    #[command(after_help = "Examples:\n  longshore registry delete k2x0a8m4q6w1ez")]
    Delete(DeleteArgs),
}

/// Arguments of `registry create`.
#[derive(Debug, Args)]
pub struct CreateRegistryArgs {
    /// A name for people and for --registry-auth
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// Who logs in at the registry
    #[arg(long, value_name = "TEXT")]
    username: String,
    /// Read the password or token from this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    sharing: SharingArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `registry update`.
#[derive(Debug, Args)]
pub struct UpdateRegistryArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    /// A name for people and for --registry-auth
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    sharing: SharingArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Reads the password from the file, else from the terminal or from standard input.
fn password(file: Option<&Path>) -> CommandResult<String> {
    let password = match file {
        None => hidden_input::text("password: ")?,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| cannot(format_args!("read {}", path.display()), error))?;
            hidden_input::without_line_break(&text).to_owned()
        }
    };
    if password.is_empty() {
        return Err(CommandError::usage("no password given")
            .next("type it, pipe it in, or name a file with --password-file"));
    }
    Ok(password)
}

impl RegistryCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        const OF: Collection = Collection::RegistryAuths;
        match self {
            Self::Create(args) => {
                let mut members = Members::default();
                members.set("name", Some(&args.name))?;
                members.set("username", Some(&args.username))?;
                members.set("password", Some(password(args.password_file.as_deref())?))?;
                args.sharing.set(&mut members)?;
                create(&args.remote, OF, &members).await
            }
            Self::List(args) => list_named(args, OF, COLUMNS).await,
            Self::Get(args) => get(&args.remote, OF, &args.id, "").await,
            Self::Update(args) => {
                let mut members = Members::default();
                members.set("name", args.name.as_ref())?;
                args.sharing.set(&mut members)?;
                update(&args.remote, OF, &args.id, &members).await
            }
            Self::Delete(args) => delete(args, OF, false, "").await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_file_ends_before_its_line_break() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        for (text, expected) in [("hush\r\n", "hush"), ("hush \n\n", "hush \n"), ("hush", "hush")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(password(Some(&file)).unwrap(), expected);
        }
        std::fs::write(&file, "\n").unwrap();
        assert_eq!(password(Some(&file)).unwrap_err().message, "no password given");
        let missing = password(Some(&dir.path().join("none"))).unwrap_err();
        assert!(missing.message.contains("cannot read"), "{missing}");
    }
}
