//! `longshore keys`.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use longshore_client::Collection;
use serde_json::{Value, json};

use super::{DeleteArgs, GetArgs, ListArgs, create, delete, get, list, update};
use crate::exit::CommandResult;
use crate::human::time_cell;
use crate::jobs::{endpoint_name, span};
use crate::members::Members;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("NAME", "name"),
    Column::new("OWNER", "owner"),
    Column::new("SCOPES", "scopes").shown_as(scopes),
    Column::new("CREATED", "createdAt").shown_as(time_cell),
    Column::new("LAST USED", "lastUsedAt").shown_as(time_cell),
    Column::new("FROM", "lastUsedFrom"),
    Column::new("EXPIRES", "expiresAt").shown_as(time_cell),
    Column::new("DISABLED", "disabled"),
];

const EXAMPLES: &str = "\
Examples:
  longshore keys create --name ci --scope jobs
  longshore keys create --name app --scope jobs:hello,other --expires 90d
  longshore keys create --name batch --scope jobs --owner acme
  longshore keys update 0a1b2c3d4e5f6071 --disable
  longshore keys delete 0a1b2c3d4e5f6071

A key is printed once, when it is created. Scopes: manage, read, jobs. Limit a
scope to endpoints with their ids or slugs: jobs:hello,other.";

/// Subcommands of `longshore keys`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum KeyCommand {
    /// Create a key and print it this once
    #[command(after_help = EXAMPLES)]
    Create(CreateKeyArgs),
    /// List all keys, without their text
    #[command(after_help = "Examples:\n  longshore keys list")]
    List(ListArgs),
    /// Show one key, without its text
    #[command(after_help = "Examples:\n  longshore keys get 0a1b2c3d4e5f6071")]
    Get(GetArgs),
    /// Change a key's name, owner, expiry or rate; disable or enable it
    #[command(
        after_help = "Examples:\n  longshore keys update 0a1b2c3d4e5f6071 --disable\n  longshore keys update 0a1b2c3d4e5f6071 --expires 30d"
    )]
    Update(UpdateKeyArgs),
    /// Revoke a key immediately and permanently
    #[command(after_help = "Examples:\n  longshore keys delete 0a1b2c3d4e5f6071 --yes")]
    Delete(DeleteArgs),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub struct CreateKeyArgs {
    /// A name for people
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// manage, read, jobs, or jobs:hello,other; repeatable
    #[arg(long, value_name = "SCOPE", value_parser = scope, required = true)]
    scope: Vec<Value>,
    /// Owner of the key [default: server]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    limits: KeyLimits,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `keys update`.
#[derive(Debug, Args)]
pub struct UpdateKeyArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    /// A name for people
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// New owner of the key
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Refuse the key from now on
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Accept a disabled key again
    #[arg(long)]
    enable: bool,
    #[command(flatten)]
    limits: KeyLimits,
    #[command(flatten)]
    remote: ServerArgs,
}

/// The limits of a key in time and rate.
#[derive(Debug, Args)]
struct KeyLimits {
    /// Expiry after this time, such as 90d
    #[arg(long, value_name = "TIME", value_parser = span)]
    expires: Option<Duration>,
    /// Most requests of this key in any 10 s
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
}

impl KeyLimits {
    fn set(&self, members: &mut Members) -> CommandResult<()> {
        members.set("expiresAt", expires_at(self.expires))?;
        members.set("rateLimit", self.rate_limit)
    }
}

/// Parses a scope such as `jobs:a,b` into its JSON form.
fn scope(text: &str) -> Result<Value, String> {
    let (name, ids) = text.split_once(':').map_or((text, None), |(name, ids)| (name, Some(ids)));
    match (name, ids) {
        ("manage" | "read" | "jobs", None) => Ok(json!({ "scope": name })),
        ("manage" | "read" | "jobs", Some(ids)) => {
            let ids = ids.split(',').map(endpoint_name).collect::<Result<Vec<_>, _>>()?;
            Ok(json!({ "scope": name, "endpointIds": ids }))
        }
        _ => Err("write manage, read or jobs, or jobs:hello,other for some endpoints".to_owned()),
    }
}

/// Formats scopes as `--scope` accepts them.
fn scopes(value: &Value) -> String {
    let one = |scope: &Value| {
        let name = scope["scope"].as_str().unwrap_or_default();
        let ids: Vec<&str> =
            scope["endpointIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if matches!(ids[..], [] | ["*"]) { name.to_owned() } else { format!("{name}:{}", ids.join(",")) }
    };
    let all: Vec<String> = value.as_array().into_iter().flatten().map(one).collect();
    all.join(" ")
}

fn expires_at(after: Option<Duration>) -> Option<String> {
    let end = |after| Timestamp::now().saturating_add(after).unwrap_or(Timestamp::MAX);
    after.map(|after| format!("{:.0}", end(after)))
}

impl KeyCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        const OF: Collection = Collection::Keys;
        match self {
            Self::Create(args) => {
                let mut members = Members::default();
                members.set("name", Some(&args.name))?;
                members.set("scopes", Some(&args.scope))?;
                members.set("owner", args.owner.as_ref())?;
                args.limits.set(&mut members)?;
                create(&args.remote, OF, &members).await
            }
            Self::List(args) => list(args, OF, COLUMNS).await,
            Self::Get(args) => get(&args.remote, OF, &args.id, "").await,
            Self::Update(args) => {
                let mut members = Members::default();
                members.set("name", args.name.as_ref())?;
                members.set("owner", args.owner.as_ref())?;
                let disabled = if args.disable { Some(true) } else { args.enable.then_some(false) };
                members.set("disabled", disabled)?;
                args.limits.set(&mut members)?;
                update(&args.remote, OF, &args.id, &members).await
            }
            Self::Delete(args) => delete(args, OF, false, "; requests with it are refused immediately").await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_written_short() {
        assert_eq!(scope("jobs:a,b"), Ok(json!({"scope": "jobs", "endpointIds": ["a", "b"]})));
        assert_eq!(scope("read"), Ok(json!({"scope": "read"})));
        for text in ["", "all", "jobs:", "jobs:a,"] {
            assert!(scope(text).is_err(), "{text}");
        }
        let sent =
            json!([{"scope": "manage", "endpointIds": ["*"]}, {"scope": "jobs", "endpointIds": ["a", "b"]}]);
        assert_eq!(scopes(&sent), "manage jobs:a,b");
    }
}
