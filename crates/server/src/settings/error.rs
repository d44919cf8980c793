//! Errors in settings.

use std::path::PathBuf;

/// Settings that cannot be used. Each message is one line that says what to change.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("cannot read the settings in {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("{origin} is not valid TOML: {cause}")]
    NotToml { origin: String, cause: String },
    #[error("{origin} has an unknown setting `{name}`{hint}")]
    Unknown { origin: String, name: String, hint: String },
    #[error("{origin}: `{name}` must be {expected}, not {found}")]
    Type { origin: String, name: String, expected: &'static str, found: String },
    #[error("invalid settings: {0}")]
    Value(String),
}
