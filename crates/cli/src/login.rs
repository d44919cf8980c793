//! `longshore login`: stores a server and its key in a profile.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use longshore_client::Client;

use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::hidden_input;
use crate::profile::{self, DEFAULT_PROFILE, Profile, Profiles, Secret};
use crate::remote::{LOCAL_URL, ca_file, same, variable};

/// Arguments of `longshore login`.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The server [default: `LONGSHORE_URL`, or 127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Store it under this name
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Reads a key, checks it with the server, and stores it.
pub(crate) async fn login(args: &LoginArgs) -> CommandResult {
    let url = args.url.clone().or_else(|| variable("LONGSHORE_URL")).unwrap_or_else(|| LOCAL_URL.to_owned());
    let url = url.trim_end_matches('/').to_owned();
    let path = profile::path(variable)?;
    let mut profiles = Profiles::load(&path)?;
    let api_key = match variable("LONGSHORE_API_KEY").filter(|key| !key.trim().is_empty()) {
        Some(key) => Secret::from(key.as_str()),
        None => ask(&url)?,
    };
    // A new key for the same server needs no second --ca-file.
    let stored = profiles.get(&args.profile).filter(|profile| same(&profile.url, &url));
    let ca_file = ca_file(args.ca_file.as_ref(), variable).or_else(|| stored?.ca_file.clone());
    // Later commands run in other directories.
    let absolute = |file| std::path::absolute(file).map_err(|error| cannot("find the --ca-file", error));
    let ca_file = ca_file.map(absolute).transpose()?;
    let client = Client::trusting(&url, api_key.text(), ca_file.as_deref())?;
    if !client.knows_the_key().await? {
        return Err(CommandError::new(CommandExit::Unauthorized, format!("{url} does not accept this key"))
            .next("`longshore serve` prints the first key once; `longshore keys create` creates more"));
    }
    profiles.put(&args.profile, Profile { url: url.clone(), api_key, ca_file });
    profiles.store(&path)?;
    let line = format!("{url} accepts the key; stored as `{}` in {}", args.profile, path.display());
    writeln!(std::io::stdout(), "{line}").map_err(|error| cannot("write to standard output", error))?;
    Ok(CommandExit::Success)
}

/// Reads an API key from the terminal without echo, or from standard input.
fn ask(url: &str) -> CommandResult<Secret> {
    let line = hidden_input::line(&format!("API key for {url}: "))?;
    if line.trim().is_empty() {
        return Err(CommandError::usage("no key given")
            .next("type it, pipe it in, or set LONGSHORE_API_KEY: `longshore login < keyfile`"));
    }
    Ok(Secret::from(line.as_str()))
}
