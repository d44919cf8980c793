//! Credentials for a registry of container images.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Millis, RegistryAuthId, SharedWith};

/// The record of a registry's credentials, named as in the management API; also its stored form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryAuth {
    /// The public id, in paths under `/v1`.
    pub id: RegistryAuthId,
    /// A name for people, not unique.
    pub name: String,
    /// The user name for the registry.
    pub username: String,
    /// A secret: never logged, never shown.
    pub password: String,
    /// The endpoints whose keys may name them.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When the credentials were created.
    pub created_at: Millis,
}

impl fmt::Debug for RegistryAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryAuth").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}
