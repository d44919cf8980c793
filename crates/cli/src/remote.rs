//! The server and the key of a command.

use std::path::PathBuf;

use clap::Args;
use longshore_client::Client;

use crate::exit::{CommandError, CommandExit, CommandResult};
use crate::output::{FormatArgs, Output};
use crate::profile::running::running;
use crate::profile::{self, DEFAULT_PROFILE, Profile, Profiles, Secret};
use crate::screen::Screen;

/// Default address of a server on this computer.
pub(crate) const LOCAL_URL: &str = "http://127.0.0.1:8080";

/// Arguments of every command that calls a server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server and output")]
pub struct ServerArgs {
    /// The server [or `LONGSHORE_URL`, or the profile's]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The key [better: `LONGSHORE_API_KEY`, or a profile]
    #[arg(long, value_name = "KEY", value_parser = secret)]
    pub(crate) api_key: Option<Secret>,
    /// The profile that `login` wrote [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a result")]
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(text.into())
}

/// Client, output and terminal of a command.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) output: Output,
    pub(crate) screen: Screen,
}

impl Connection {
    /// The same connection, whose output shortens nothing if `raw`.
    pub(crate) fn whole_if(self, raw: bool) -> Self {
        Self { output: self.output.whole_if(raw), ..self }
    }
}

/// The server of a command.
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) key: Secret,
    /// PEM file with certificate authorities to trust besides the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl ServerArgs {
    /// Returns a client of the chosen server.
    pub(crate) fn connect(&self) -> CommandResult<Connection> {
        let Target { url, key, ca_file } = self.resolve(variable)?;
        let client = Client::trusting(&url, key.text(), ca_file.as_deref())?;
        Ok(Connection { client, output: Output::new(self.format.output), screen: Screen::new(false) })
    }

    /// Arguments that name a server and nothing else.
    pub(crate) fn at(url: &str) -> Self {
        Self { url: Some(url.to_owned()), ..Self::default() }
    }

    /// Returns the server of the command. Each part comes from the flag, else the environment, else the profile.
    /// Without a stored profile for the server, address and key are those of the running `dev` server.
    pub(crate) fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> CommandResult<Target> {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        let url = self.url.clone().or_else(|| set("LONGSHORE_URL"));
        let key = self.api_key.clone().or_else(|| set("LONGSHORE_API_KEY").map(|key| key.as_str().into()));
        // A named profile must exist. The default profile is read only if the address or the key is missing.
        let mut stored = if self.profile.is_some() || url.is_none() || key.is_none() {
            self.stored(&variable)?
        } else {
            None
        };
        let fits = |profile: &Profile| url.as_deref().is_none_or(|url| same(url, &profile.url));
        if self.profile.is_none() && key.is_none() && !stored.as_ref().is_some_and(fits) {
            stored = running_server(&variable, fits)?.or(stored);
        }
        let key = match (key, &stored) {
            (Some(key), _) => key,
            (None, Some(stored)) => stored_key(stored, url.as_deref())?,
            (None, None) => {
                return Err(CommandError::new(CommandExit::Unauthorized, "no key for the server").next(
                    "`longshore dev DIR` runs a server that needs none here; else `longshore login` stores one, \
                     LONGSHORE_API_KEY names one, `serve` prints it at its first start",
                ));
            }
        };
        // The stored authorities are trusted at the profile's server alone.
        let (stored_url, stored_file) =
            stored.filter(fits).map(|profile| (profile.url, profile.ca_file)).unzip();
        let ca_file = ca_file(self.ca_file.as_ref(), variable).or(stored_file.flatten());
        let url = url.or(stored_url).unwrap_or_else(|| LOCAL_URL.to_owned());
        Ok(Target { url, key, ca_file })
    }

    fn stored(&self, variable: &impl Fn(&str) -> Option<String>) -> CommandResult<Option<Profile>> {
        let name = self.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
        let path = match profile::path(variable) {
            Ok(path) => path,
            Err(failure) if self.profile.is_some() => return Err(failure),
            Err(_) => return Ok(None),
        };
        let profiles = Profiles::load(&path)?;
        match profiles.get(name) {
            Some(profile) => Ok(Some(profile.clone())),
            None if self.profile.is_none() => Ok(None),
            None => {
                let names = profiles.names();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                Err(CommandError::usage(format!("no profile `{name}` in {}; known: {known}", path.display()))
                    .next(format!("`longshore login --profile {name}` creates it")))
            }
        }
    }
}

/// Returns an environment variable, if it is set to valid text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the profile of the running `dev` server that `fits`. More than one is an error.
fn running_server(
    variable: &impl Fn(&str) -> Option<String>,
    fits: impl Fn(&Profile) -> bool,
) -> CommandResult<Option<Profile>> {
    let Ok(folder) = profile::dev_folder(variable) else { return Ok(None) };
    let mut running = running(&folder);
    running.retain(fits);
    if running.len() < 2 {
        return Ok(running.pop());
    }
    let urls: Vec<_> = running.iter().map(|profile| profile.url.as_str()).collect();
    let message = format!("{} `longshore dev` servers are running: {}", urls.len(), urls.join(", "));
    Err(CommandError::usage(message).next(format!("name one with --url, such as --url {}", urls[0])))
}

/// Returns the file with certificate authorities: the flag's, else that of the environment.
pub(crate) fn ca_file(flag: Option<&PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = || variable("LONGSHORE_CA_FILE").filter(|path| !path.is_empty());
    flag.cloned().or_else(|| set().map(PathBuf::from))
}

/// A stored key is only sent to the server that it was stored for.
fn stored_key(stored: &Profile, url: Option<&str>) -> CommandResult<Secret> {
    let Some(other) = url.filter(|url| !same(url, &stored.url)) else { return Ok(stored.api_key.clone()) };
    let message = format!("the profile's key is for {}, not for {other}", stored.url);
    Err(CommandError::new(CommandExit::Unauthorized, message).next(
        "set the key of that server in LONGSHORE_API_KEY, or store it with `longshore login --profile NAME`",
    ))
}

/// Returns whether two addresses name the same server.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::running::RunningProfile;

    fn resolved(remote: &ServerArgs, environment: &[(&str, &str)]) -> CommandResult<(String, String)> {
        let find = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        remote.resolve(find).map(|target| (target.url, target.key.text().to_owned()))
    }

    #[test]
    fn a_flag_beats_the_environment_and_that_beats_the_profile() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let path = dir.path().join("longshore/config.toml");
        let mut profiles = Profiles::default();
        profiles
            .put("default", Profile { url: "http://stored".into(), api_key: "stored".into(), ca_file: None });
        profiles.store(&path).unwrap();
        let none = ServerArgs::default();
        let here = ("XDG_CONFIG_HOME", home.as_str());
        let got = |remote: &ServerArgs, more: &[(&str, &str)]| resolved(remote, &[&[here], more].concat());
        let pair = |url: &str, key: &str| (url.to_owned(), key.to_owned());
        assert_eq!(got(&none, &[]).unwrap(), pair("http://stored", "stored"));
        let environment = [("LONGSHORE_URL", "http://env"), ("LONGSHORE_API_KEY", "env")];
        assert_eq!(got(&none, &environment).unwrap(), pair("http://env", "env"));
        let flags =
            ServerArgs { url: Some("http://flag".into()), api_key: Some("flag".into()), ..none.clone() };
        assert_eq!(got(&flags, &environment).unwrap(), pair("http://flag", "flag"));
        assert_eq!(got(&none, &environment[1..]).unwrap(), pair("http://stored", "env"));
        let failure = got(&none, &environment[..1]).unwrap_err();
        assert!(failure.message.contains("is for http://stored"), "a key is not sent elsewhere: {failure}");
        let other = ServerArgs { profile: Some("other".into()), ..none };
        assert!(got(&other, &environment).unwrap_err().message.contains("known: default"));
    }

    #[test]
    fn a_running_dev_server_is_used_where_nothing_else_is_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let here = ("XDG_CONFIG_HOME", home.as_str());
        let folder = dir.path().join("longshore/dev");
        let dev = |port: u16, key: &str| {
            let profile =
                Profile { url: format!("http://127.0.0.1:{port}"), api_key: key.into(), ca_file: None };
            RunningProfile::store(&folder, port, &profile).unwrap()
        };
        let pair = |url: &str, key: &str| (url.to_owned(), key.to_owned());
        let none = ServerArgs::default();
        let one = dev(8081, "one");
        assert_eq!(resolved(&none, &[here]).unwrap(), pair("http://127.0.0.1:8081", "one"));
        // A chosen address or key stays the chosen one.
        let env_key = ("LONGSHORE_API_KEY", "env");
        assert_eq!(resolved(&none, &[here, env_key]).unwrap(), pair(LOCAL_URL, "env"));
        let elsewhere = ("LONGSHORE_URL", "http://elsewhere");
        assert_eq!(resolved(&none, &[here, elsewhere]).unwrap_err().exit, CommandExit::Unauthorized);
        let _other = dev(8082, "other");
        let failure = resolved(&none, &[here]).unwrap_err();
        assert!(failure.message.contains("2 `longshore dev` servers are running"), "{failure}");
        let named = ServerArgs::at("http://127.0.0.1:8082/");
        assert_eq!(resolved(&named, &[here]).unwrap(), pair("http://127.0.0.1:8082/", "other"));
        // A stored default profile is not replaced, and a named address still finds its own key.
        let mut profiles = Profiles::default();
        profiles
            .put("default", Profile { url: "http://stored".into(), api_key: "stored".into(), ca_file: None });
        profiles.store(&dir.path().join("longshore/config.toml")).unwrap();
        assert_eq!(resolved(&none, &[here]).unwrap(), pair("http://stored", "stored"));
        assert_eq!(resolved(&named, &[here]).unwrap().1, "other");
        assert!(resolved(&none, &[here, elsewhere]).unwrap_err().message.contains("is for http://stored"));
        drop(one);
    }

    #[test]
    fn the_profile_s_authorities_are_for_its_server_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let profile = Profile {
            url: "https://lab/".into(),
            api_key: "stored".into(),
            ca_file: Some("/lab.pem".into()),
        };
        let mut profiles = Profiles::default();
        profiles.put("default", profile);
        profiles.store(&dir.path().join("longshore/config.toml")).unwrap();
        let file = |remote: &ServerArgs, environment: &[(&str, &str)]| {
            let all = [&[("XDG_CONFIG_HOME", home.as_str())], environment].concat();
            let find = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            remote.resolve(find).unwrap().ca_file.map(|path| path.display().to_string())
        };
        let none = ServerArgs::default();
        assert_eq!(file(&none, &[]).as_deref(), Some("/lab.pem"));
        assert_eq!(file(&none, &[("LONGSHORE_URL", "https://lab")]).as_deref(), Some("/lab.pem"));
        let other = [("LONGSHORE_URL", "https://other"), ("LONGSHORE_API_KEY", "k")];
        assert_eq!(file(&none, &other), None);
        let named = ServerArgs { profile: Some("default".into()), ..none.clone() };
        assert_eq!(file(&named, &other), None, "the profile is for another server");
        assert_eq!(file(&none, &[("LONGSHORE_CA_FILE", "/env.pem")]).as_deref(), Some("/env.pem"));
        let flag = ServerArgs { ca_file: Some("/flag.pem".into()), ..none };
        assert_eq!(file(&flag, &[("LONGSHORE_CA_FILE", "/env.pem")]).as_deref(), Some("/flag.pem"));
    }

    #[test]
    fn without_anything_the_local_server_is_meant_and_a_key_is_asked_for() {
        let failure = resolved(&ServerArgs::default(), &[]).unwrap_err();
        assert_eq!(failure.exit, CommandExit::Unauthorized);
        let got = resolved(&ServerArgs::default(), &[("LONGSHORE_API_KEY", "k")]).unwrap();
        assert_eq!(got.0, LOCAL_URL);
    }
}
