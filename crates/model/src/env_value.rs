//! The value of a variable in the environment of workers: a text, or the name of a stored secret.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::SecretName;

/// The value of a variable. In JSON and in the store: a string, or `{"secret": "NAME"}`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a value of `env` is a string or an object with `secret`, a secret's name")]
pub enum EnvValue {
    /// The value itself. Never logged: it may be confidential.
    Text(String),
    /// The value of a stored secret at the time of a worker's start.
    Secret(SecretReference),
}

/// Names a stored secret in place of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretReference {
    /// The name of the secret.
    pub secret: SecretName,
}

impl EnvValue {
    /// The value of the secret with this name.
    pub fn secret(name: SecretName) -> Self {
        Self::Secret(SecretReference { secret: name })
    }

    /// The name of the secret; `None` for a text.
    pub fn secret_name(&self) -> Option<&SecretName> {
        match self {
            Self::Text(_) => None,
            Self::Secret(reference) => Some(&reference.secret),
        }
    }
}

impl From<String> for EnvValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for EnvValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Secret(reference) => write!(f, "Secret({})", reference.secret),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn debug_output_shows_no_text() {
        assert_eq!(format!("{:?}", EnvValue::from("hush")), "Text(..)");
        let name: SecretName = "HF_TOKEN".parse().unwrap();
        assert_eq!(format!("{:?}", EnvValue::secret(name)), "Secret(HF_TOKEN)");
    }
}
