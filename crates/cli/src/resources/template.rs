//! `longshore template`.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use longshore_client::Collection;
use longshore_model::EnvValue;
use serde_json::Value;

use super::{DeleteArgs, GetArgs, ListArgs, create, delete, get, list, update};
use crate::deploy::{EnvArgs, short};
use crate::exit::{CommandError, CommandResult, cannot};
use crate::jobs::endpoint_name;
use crate::members::Members;
use crate::output::cell;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("NAME", "name"),
    Column::new("IMAGE", "imageName"),
    Column::new("COMMAND", "dockerStartCmd").shown_as(with_short_hashes),
    Column::new("FOLDER", "workdir").shown_as(with_short_hashes),
];
/// Digits of the hash of a deployed folder, which is in its path.
const HASH_CHARS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  longshore template create --name hello --workdir /srv/hello \\
    --command .venv/bin/python --command handler.py
  longshore template update k2x0a8m4q6w1ez --env MODEL=small
  longshore template update k2x0a8m4q6w1ez --secret HF_TOKEN
  longshore template delete k2x0a8m4q6w1ez

Values of --env are never printed. --secret names a stored secret.";

/// Subcommands of `longshore template`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum TemplateCommand {
    /// Create a template for workers
    #[command(after_help = EXAMPLES)]
    Create(CreateTemplateArgs),
    /// List all templates of the server
    #[command(after_help = "Examples:\n  longshore template list\n  longshore template list -o json")]
    List(ListArgs),
    /// Show one template by id
    #[command(after_help = "Examples:\n  longshore template get k2x0a8m4q6w1ez")]
    Get(GetArgs),
    /// Change fields of a template; its workers are replaced
    #[command(after_help = "Examples:\n  longshore template update k2x0a8m4q6w1ez --env MODEL=small")]
    Update(UpdateTemplateArgs),
    /// Delete a template that no endpoint uses
    #[command(after_help = "Examples:\n  longshore template delete k2x0a8m4q6w1ez")]
    Delete(DeleteArgs),
}

/// Arguments of `template create`.
#[derive(Debug, Args)]
pub struct CreateTemplateArgs {
    #[command(flatten)]
    fields: TemplateFields,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `template update`.
#[derive(Debug, Args)]
pub struct UpdateTemplateArgs {
    /// The id of the resource
    #[arg(value_name = "ID", value_parser = endpoint_name)]
    id: String,
    /// Remove a variable; repeatable
    #[arg(long, value_name = "NAME")]
    unset_env: Vec<String>,
    #[command(flatten)]
    fields: TemplateFields,
    #[command(flatten)]
    remote: ServerArgs,
}

/// The fields that have a flag.
#[derive(Debug, Args)]
struct TemplateFields {
    /// A unique name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// The container image; a label for processes
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The program, then each argument; repeatable
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    command: Vec<String>,
    /// The folder that a worker process runs in
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    #[command(flatten)]
    env: EnvArgs,
    /// Any fields: a JSON object, @FILE, or -
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
}

impl TemplateFields {
    /// All fields except the environment, which is merged with the stored one.
    fn members(&self) -> CommandResult<Members> {
        let mut members = Members::of_argument(self.json.as_ref())?;
        members.set("name", self.name.as_ref())?;
        members.set("imageName", self.image.as_ref())?;
        members.set("dockerStartCmd", Some(&self.command).filter(|words| !words.is_empty()))?;
        members.set("workdir", self.workdir.as_ref())?;
        Ok(members)
    }
}

impl TemplateCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        const OF: Collection = Collection::Templates;
        match self {
            Self::Create(args) => {
                let mut members = args.fields.members()?;
                let mut env = BTreeMap::new();
                args.fields.env.set_in(&mut env)?;
                members.set("env", Some(env).filter(|env| !env.is_empty()))?;
                create(&args.remote, OF, &members).await
            }
            Self::List(args) => list(args, OF, COLUMNS).await,
            Self::Get(args) => get(&args.remote, OF, &args.id, "").await,
            Self::Update(args) => {
                let mut members = args.fields.members()?;
                members.set("env", changed_env(args).await?)?;
                update(&args.remote, OF, &args.id, &members).await
            }
            Self::Delete(args) => delete(args, OF, false, "").await,
        }
    }
}

/// A table cell with the first digits of each hash in a path.
fn with_short_hashes(value: &Value) -> String {
    let is_hash = |word: &str| {
        word.len() == HASH_CHARS && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let shown = cell(value);
    let words = shown.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| {
            let hash = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_hash(hash) { format!("{}{}", short(hash), &word[hash.len()..]) } else { word.to_owned() }
        })
        .collect()
}

/// The complete new environment, or `None` if it does not change. The server accepts the mask that it showed in
/// place of a value.
async fn changed_env(args: &UpdateTemplateArgs) -> CommandResult<Option<BTreeMap<String, EnvValue>>> {
    if args.fields.env.is_empty() && args.unset_env.is_empty() {
        return Ok(None);
    }
    let session = args.remote.connect()?;
    let template = session.client.get(Collection::Templates, &args.id, "").await?;
    let members = Members::of(&template)?;
    let present = members.get("env").map_or("{}", serde_json::value::RawValue::get);
    let mut env: BTreeMap<String, EnvValue> =
        serde_json::from_str(present).map_err(|error| cannot("read the template's environment", error))?;
    for name in &args.unset_env {
        if env.remove(name).is_none() {
            return Err(CommandError::usage(format!("the template has no variable `{name}`"))
                .next(format!("`longshore template get {}` lists them", args.id)));
        }
    }
    args.fields.env.set_in(&mut env)?;
    Ok(Some(env))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_are_short_in_a_list() {
        let hash = "90d80b57b534".to_owned() + &"0".repeat(52);
        let folder = json!(format!("/data/code/{hash}"));
        assert_eq!(with_short_hashes(&folder), "/data/code/90d80b57b534");
        let command = json!(["longshore", format!("/data/{hash}/x"), "--hash", hash]);
        let shown = r#"["longshore","/data/90d80b57b534/x","--hash","90d80b57b534"]"#;
        assert_eq!(with_short_hashes(&command), shown);
        for other in ["abc".to_owned(), "x".repeat(64), "0".repeat(63)] {
            assert_eq!(with_short_hashes(&json!(other)), other);
        }
    }
}
