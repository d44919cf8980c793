//! The stored servers and keys of this user: `~/.config/longshore/config.toml`, and beside it the running `dev` servers.

pub(crate) mod running;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{CommandError, CommandResult, cannot};

/// The profile that is used when none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// The text of a key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A server's address and the key for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) url: String,
    pub(crate) api_key: Secret,
    /// PEM file with certificate authorities to trust at this server, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// The contents of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profiles {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads the file. A missing file is the same as an empty one.
    pub(crate) fn load(path: &Path) -> CommandResult<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cannot(format_args!("read {}", path.display()), error)),
        };
        toml::from_str(&text).map_err(|error| {
            // Only the message is shown: the source line could contain a key.
            let place = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            CommandError::usage(format!(
                "invalid profiles in {}: line {place}: {}",
                path.display(),
                error.message()
            ))
            .next("fix the line, or remove the file and run `longshore login`")
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.profiles.keys().map(String::as_str).collect()
    }

    pub(crate) fn put(&mut self, name: &str, profile: Profile) {
        self.profiles.insert(name.to_owned(), profile);
    }

    /// Replaces the file atomically, readable by its owner only.
    pub(crate) fn store(&self, path: &Path) -> CommandResult<()> {
        let text = toml::to_string(self).map_err(|error| cannot("write the profiles", error))?;
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let draft = path.with_extension("new");
            let _ = fs::remove_file(&draft);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(draft, path)
        };
        write().map_err(|error| cannot(format_args!("write {}", path.display()), error))
    }
}

/// Returns the path of the file, in `XDG_CONFIG_HOME` or `~/.config`.
pub(crate) fn path(variable: impl Fn(&str) -> Option<String>) -> CommandResult<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".config")))
        .ok_or_else(|| {
            CommandError::usage("neither XDG_CONFIG_HOME nor HOME is set, so profiles cannot be stored")
                .next("use LONGSHORE_URL and LONGSHORE_API_KEY instead")
        })?;
    Ok(folder.join("longshore").join("config.toml"))
}

/// Returns the folder with the profiles of running `dev` servers.
pub(crate) fn dev_folder(variable: impl Fn(&str) -> Option<String>) -> CommandResult<PathBuf> {
    path(variable).map(|path| path.with_file_name("dev"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_profile_comes_back_as_it_was_stored_and_only_its_user_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/longshore/config.toml");
        let profile = Profile {
            url: "http://a".into(),
            api_key: "ls_\"x".into(),
            ca_file: Some("/etc/my ca.pem".into()),
        };
        let mut profiles = Profiles::load(&path).unwrap();
        profiles.put("my \"own\"", profile.clone());
        profiles.store(&path).unwrap();
        profiles.store(&path).unwrap();
        assert_eq!(Profiles::load(&path).unwrap().get("my \"own\""), Some(&profile));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{profiles:?}").contains("ls_"));
    }

    #[test]
    fn a_mistake_in_the_file_is_named_by_its_line_and_shows_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "[profiles.default]\nurl = \"http://a\"\napi_key = \"ls_secret\" oops\n").unwrap();
        let failure = Profiles::load(&path).unwrap_err();
        assert!(failure.message.contains("line 3"), "{failure}");
        assert!(!failure.message.contains("ls_secret"), "{failure}");
    }

    #[test]
    fn the_file_lies_where_the_desktop_keeps_such_files() {
        let with = |name: &'static str, value: &'static str| {
            path(move |asked| (asked == name).then(|| value.to_owned()))
                .map(|path| path.display().to_string())
        };
        assert_eq!(with("HOME", "/h").unwrap(), "/h/.config/longshore/config.toml");
        assert_eq!(with("XDG_CONFIG_HOME", "/x").unwrap(), "/x/longshore/config.toml");
        assert!(with("XDG_CONFIG_HOME", "relative").is_err());
    }
}
