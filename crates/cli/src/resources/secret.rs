//! `longshore secret`: values that templates name, and the keys that encrypt them.

use clap::{Args, Subcommand};
use longshore_client::{ClientError, Collection};
use longshore_model::SecretName;
use serde_json::Value;
use serde_json::value::RawValue;

use super::names::{list_named, words};
use super::sharing::SharingArgs;
use super::{ListArgs, named};
use crate::args::{NewKeyArgs, RotateArgs};
use crate::confirm::confirm;
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::hidden_input;
use crate::human::{count, time_cell};
use crate::members::Members;
use crate::output::{OutputFormat, cell};
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;

const OF: Collection = Collection::Secrets;
/// The code of the refusal to create a secret that exists.
const EXISTS: &str = "conflict";

const COLUMNS: &[Column] = &[
    Column::new("NAME", "name"),
    Column::new("ENDPOINTS", "endpoints").shown_as(words),
    Column::new("USED BY", "usedBy").shown_as(users),
    Column::new("SEALED", "sealed").shown_as(yes_or_no),
    Column::new("VALUE SET", "updatedAt").shown_as(time_cell),
];

pub(crate) const SECRET_EXAMPLES: &str = "\
Examples:
  longshore secret set HF_TOKEN < token.txt
  longshore secret set HF_TOKEN --endpoint my-worker
  longshore deploy my-worker --secret HF_TOKEN
  longshore secret new-key /etc/longshore/secrets.key
  longshore secret rotate --config /etc/longshore.toml

Workers get the value as a variable of their environment. A new value replaces
the workers. No command prints a value.
To change the key: run new-key, stop the server, run rotate. Then remove the old
keys from the file.";

const SET_EXAMPLES: &str = "\
Examples:
  longshore secret set HF_TOKEN
  longshore secret set HF_TOKEN < token.txt
  longshore secret set HF_TOKEN --endpoint my-worker

Reads the value from the terminal without showing it, or from standard input
without the last line break.";

/// Subcommands of `longshore secret`.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Store a secret, or give it a new value
    #[command(after_help = SET_EXAMPLES)]
    Set(SetSecretArgs),
    /// List all secrets, without their values
    #[command(after_help = "Examples:\n  longshore secret list\n  longshore secret list -o json")]
    List(ListArgs),
    /// Delete a secret that no template names
    #[command(after_help = "Examples:\n  longshore secret delete HF_TOKEN")]
    Delete(DeleteSecretArgs),
    /// Create a key: insert it as the first one in FILE, or print it
    #[command(
        after_help = "Examples:\n  longshore secret new-key\n  longshore secret new-key /etc/longshore/secrets.key"
    )]
    NewKey(NewKeyArgs),
    /// Encrypt all secrets in a data directory with the first key
    #[command(
        after_help = "Examples:\n  longshore secret rotate\n  longshore secret rotate --config /etc/longshore.toml"
    )]
    Rotate(RotateArgs),
}

/// Arguments of `secret set`.
#[derive(Debug, Args)]
pub struct SetSecretArgs {
    /// The name of the secret
    #[arg(value_name = "NAME")]
    name: SecretName,
    #[command(flatten)]
    sharing: SharingArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `secret delete`.
#[derive(Debug, Args)]
pub struct DeleteSecretArgs {
    /// The name of the secret
    #[arg(value_name = "NAME")]
    name: SecretName,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

impl SecretCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        match self {
            Self::Set(args) => set(args).await,
            Self::List(args) => list_named(args, OF, COLUMNS).await,
            Self::Delete(args) => delete(args).await,
            Self::NewKey(_) | Self::Rotate(_) => {
                Err(CommandError::usage("this command needs the server's program"))
            }
        }
    }
}

/// Creates the secret, or changes it if it exists. A key that is limited to endpoints may not look first.
async fn set(args: &SetSecretArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let name = args.name.as_str();
    let value = hidden_input::text(&format!("value of {name}: "))?;
    if value.is_empty() {
        return Err(CommandError::usage("no value given")
            .next(format!("type it, or pipe it in: `longshore secret set {name} < FILE`")));
    }
    let mut members = Members::default();
    members.set("value", Some(value))?;
    args.sharing.set(&mut members)?;
    let change = members.body()?;
    members.set("name", Some(&args.name))?;
    let (record, done) = match session.client.create(OF, members.body()?).await {
        Ok(record) => (record, "created"),
        Err(ClientError::Refused { code, .. }) if code == EXISTS => {
            (session.client.update(OF, name, change).await?, "changed")
        }
        Err(error) => return Err(error.into()),
    };
    report(&session, name, done, &record)?;
    Ok(CommandExit::Success)
}

/// Prints what was done, and a notice if the server stores the value unencrypted.
fn report(session: &Connection, name: &str, done: &str, record: &RawValue) -> CommandResult<()> {
    let shown: Value =
        serde_json::from_str(record.get()).map_err(|error| cannot("read the answer", error))?;
    if session.output.format == OutputFormat::Table {
        let users = shown["usedBy"]["endpoints"].as_array().map_or(0, Vec::len);
        let used = if users == 0 {
            String::new()
        } else {
            let get = if users == 1 { "gets" } else { "get" };
            format!("; {} with it {get} new workers if the value is new", count(users as u64, "endpoint"))
        };
        session.output.line(&format!("secret {name} {done}{used}"))?;
    } else {
        session.output.record(record)?;
    }
    if shown["sealed"] == Value::Bool(false) {
        session.screen.note(
            "the server stores the value unencrypted: it has no secrets key; `longshore secret new-key` makes one",
        );
    }
    Ok(())
}

async fn delete(args: &DeleteSecretArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let name = args.name.as_str();
    session.client.get(OF, name, "").await.map_err(|error| named(error.into(), OF))?;
    confirm(args.yes, &format!("delete the secret `{name}`?"))?;
    session.client.delete_from(OF, name, false).await.map_err(|error| named(error.into(), OF))?;
    session.output.say(&format!("secret {name} deleted"))?;
    Ok(CommandExit::Success)
}

/// Formats a truth value.
fn yes_or_no(value: &Value) -> String {
    value.as_bool().map_or_else(|| cell(value), |is| if is { "yes" } else { "no" }.to_owned())
}

/// Formats what uses a secret: endpoints, or templates that no endpoint uses.
fn users(value: &Value) -> String {
    let endpoints = words(&value["endpoints"]);
    match (endpoints.is_empty(), words(&value["templates"])) {
        (true, templates) if !templates.is_empty() => format!("template {templates}"),
        _ => endpoints,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_endpoints_or_else_templates() {
        assert_eq!(users(&json!({ "templates": ["t"], "endpoints": ["a", "b"] })), "a b");
        assert_eq!(users(&json!({ "templates": ["t", "u"], "endpoints": [] })), "template t u");
        assert_eq!(users(&json!({ "templates": [], "endpoints": [] })), "");
        assert_eq!([yes_or_no(&json!(true)), yes_or_no(&json!(false))], ["yes", "no"]);
    }
}
