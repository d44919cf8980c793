//! API keys: who may do what.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{EndpointId, Millis};

/// What a request wants to do, as far as permission is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Change the catalog: endpoints, templates, keys.
    Manage,
    /// Look, change nothing.
    Read,
    /// Submit, cancel, retry, purge and read jobs.
    Jobs,
}

/// One permission of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "camelCase")]
pub enum KeyScope {
    /// Everything of the management API.
    Manage,
    /// Every GET; of these endpoints only, where some are named.
    #[serde(rename_all = "camelCase")]
    Read {
        /// Empty means all.
        #[serde(default)]
        endpoint_ids: Vec<EndpointId>,
    },
    /// All job operations; of these endpoints only, where some are named.
    #[serde(rename_all = "camelCase")]
    Jobs {
        /// Empty means all.
        #[serde(default)]
        endpoint_ids: Vec<EndpointId>,
    },
}

/// A key's record. The secret itself is not kept, only its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The public part: what logs and limits name the key by.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Lower-case hex of the SHA-256 of the whole key text.
    pub hash: String,
    /// What it permits.
    pub scopes: Vec<KeyScope>,
    /// When it was created.
    pub created_at: Millis,
    /// From then on it is refused.
    #[serde(default)]
    pub expires_at: Option<Millis>,
    /// Refused while set.
    #[serde(default)]
    pub disabled: bool,
}

impl ApiKey {
    /// Whether the key permits `operation` on `endpoint` (none: on the catalog) at `now`.
    pub fn permits(&self, operation: Operation, endpoint: Option<&EndpointId>, now: Millis) -> bool {
        let alive = !self.disabled && self.expires_at.is_none_or(|end| now < end);
        let covers =
            |ids: &[EndpointId]| ids.is_empty() || endpoint.is_some_and(|endpoint| ids.contains(endpoint));
        alive
            && self.scopes.iter().any(|scope| match (scope, operation) {
                (KeyScope::Manage, Operation::Manage) => true,
                (KeyScope::Manage, Operation::Read) => endpoint.is_none(),
                (KeyScope::Read { endpoint_ids }, Operation::Read)
                | (KeyScope::Jobs { endpoint_ids }, Operation::Jobs) => covers(endpoint_ids),
                (KeyScope::Jobs { endpoint_ids }, Operation::Read) => {
                    endpoint.is_some() && covers(endpoint_ids)
                }
                _ => false,
            })
    }
}
