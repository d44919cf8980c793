//! API keys: who may do what.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{EndpointId, KeyId, Millis, OwnerNo, Submitter};

/// What a request wants to do, as far as permission is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Change the catalog: endpoints, templates, keys.
    WriteCatalog,
    /// Look at the catalog, change nothing.
    ReadCatalog,
    /// Look at jobs, change nothing.
    ReadJobs,
    /// Submit, cancel, retry, purge and read jobs.
    WriteJobs,
}

/// One permission of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "camelCase")]
pub enum KeyScope {
    /// Everything of the management API; where endpoints are named, only what is about one of these.
    #[serde(rename_all = "camelCase")]
    Manage {
        /// Empty means all.
        #[serde(default)]
        endpoint_ids: Vec<EndpointId>,
    },
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

impl KeyScope {
    /// Everything of the management API, and new keys.
    pub fn manage_all() -> Self {
        Self::Manage { endpoint_ids: Vec::new() }
    }

    /// The endpoints that it is for; empty means all.
    pub fn endpoint_ids(&self) -> &[EndpointId] {
        let (Self::Manage { endpoint_ids } | Self::Read { endpoint_ids } | Self::Jobs { endpoint_ids }) =
            self;
        endpoint_ids
    }

    /// Whether it grants `operation` on what it is for.
    fn grants(&self, operation: Permission) -> bool {
        matches!(
            (self, operation),
            (Self::Manage { .. }, Permission::WriteCatalog | Permission::ReadCatalog)
                | (Self::Read { .. }, Permission::ReadCatalog | Permission::ReadJobs)
                | (Self::Jobs { .. }, Permission::ReadJobs | Permission::WriteJobs)
        )
    }

    /// Whether it is for `endpoint`; none stands for what belongs to no endpoint.
    fn covers(&self, endpoint: Option<&EndpointId>) -> bool {
        let ids = self.endpoint_ids();
        ids.is_empty() || endpoint.is_some_and(|endpoint| ids.contains(endpoint))
    }
}

/// A key's record. The secret itself is not kept, only its hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The public part: what logs and limits name the key by.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Lower-case hex of the SHA-256 of the whole key text.
    pub hash: String,
    /// Whose it is: rates are counted per owner, and jobs carry it.
    #[serde(default, skip_serializing_if = "OwnerNo::is_server")]
    pub owner: OwnerNo,
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
    /// Requests that it may make in any ten seconds, beside the limits of each endpoint.
    #[serde(default)]
    pub rate_limit: Option<u32>,
    /// When it was last used, as far as that was written down.
    #[serde(default)]
    pub last_used_at: Option<Millis>,
    /// Where it was used from, oldest first.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

impl ApiKey {
    /// A key without an end, a limit or a past.
    pub fn new(id: String, name: String, hash: String, scopes: Vec<KeyScope>, created_at: Millis) -> Self {
        Self {
            id,
            name,
            hash,
            owner: OwnerNo::SERVER,
            scopes,
            created_at,
            expires_at: None,
            disabled: false,
            rate_limit: None,
            last_used_at: None,
            addresses: Vec::new(),
        }
    }

    /// What the jobs carry that it submits.
    pub fn submitter(&self) -> Submitter {
        Submitter { owner: self.owner, key: KeyId::parse(&self.id) }
    }

    /// Whether the key is accepted at `now`.
    pub fn is_alive(&self, now: Millis) -> bool {
        !self.disabled && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether the key may do everything of the management API, as long as it is alive.
    pub fn manages_all(&self) -> bool {
        self.scopes.iter().any(|scope| matches!(scope, KeyScope::Manage { .. }) && scope.covers(None))
    }

    /// Whether there is any endpoint on which the key permits `operation`, as far as its scopes go.
    pub fn has_scope_for(&self, operation: Permission) -> bool {
        self.scopes.iter().any(|scope| scope.grants(operation))
    }

    /// The endpoints that the scopes name on which the key permits `operation`; a scope for all of them names none.
    pub fn endpoints_for(&self, operation: Permission) -> impl Iterator<Item = &EndpointId> {
        let granted = self.scopes.iter().filter(move |scope| scope.grants(operation));
        granted.flat_map(KeyScope::endpoint_ids)
    }

    /// Whether the key permits `operation` on `endpoint` (none: on the catalog) at `now`.
    pub fn permits(&self, operation: Permission, endpoint: Option<&EndpointId>, now: Millis) -> bool {
        let granted = |scope: &KeyScope| scope.grants(operation) && scope.covers(endpoint);
        self.is_alive(now) && self.scopes.iter().any(granted)
    }
}

/// Without the hash: the operator's own key may be a word that can be guessed from it.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("owner", &self.owner)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}
