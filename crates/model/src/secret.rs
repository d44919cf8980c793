//! A secret: a value that templates name in the environment of workers.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Millis, SecretName, SharedWith};

/// The record of a secret, named as in the management API; also its stored form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// The unique name, in paths under `/v1` and in environments.
    pub name: SecretName,
    /// The value that workers get; at most `limits::SECRET_BYTES_MAX` bytes. Never logged, never shown.
    pub value: String,
    /// The endpoints whose keys may name it.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When the secret was created.
    pub created_at: Millis,
    /// When the value was last set.
    pub updated_at: Millis,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}
