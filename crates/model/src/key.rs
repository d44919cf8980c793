//! API keys and their permissions.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{EndpointId, KeyId, Millis, OwnerNo, Submitter};

/// The permission that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Change the catalog: endpoints, templates, keys.
    WriteCatalog,
    /// Read the catalog without changing it.
    ReadCatalog,
    /// Read jobs without changing them.
    ReadJobs,
    /// Submit, cancel, retry, purge and read jobs.
    WriteJobs,
}

/// One grant of a key, for all endpoints or some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "camelCase")]
pub enum KeyScope {
    /// Every operation of the management API, or those that concern the named endpoints.
    #[serde(rename_all = "camelCase")]
    Manage {
        /// The named endpoints; empty means all.
        #[serde(default)]
        endpoint_ids: Vec<EndpointId>,
    },
    /// Every GET, or those that concern the named endpoints.
    #[serde(rename_all = "camelCase")]
    Read {
        /// The named endpoints; empty means all.
        #[serde(default)]
        endpoint_ids: Vec<EndpointId>,
    },
    /// Every job operation, or those of the named endpoints.
    #[serde(rename_all = "camelCase")]
    Jobs {
        /// The named endpoints; empty means all.
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

    /// Whether the scope includes `endpoint`; `None` stands for a resource that belongs to no endpoint.
    fn covers(&self, endpoint: Option<&EndpointId>) -> bool {
        let ids = self.endpoint_ids();
        ids.is_empty() || endpoint.is_some_and(|endpoint| ids.contains(endpoint))
    }
}

/// A key's record, with the hash of the secret in place of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The public part, which names the key in logs and limits.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Lower-case hex of the SHA-256 of the whole key text.
    pub hash: String,
    /// The key's owner: rates are counted per owner, and job rows contain the owner.
    #[serde(default, skip_serializing_if = "OwnerNo::is_server")]
    pub owner: OwnerNo,
    /// The grants of the key; empty permits nothing.
    pub scopes: Vec<KeyScope>,
    /// When the key was created.
    pub created_at: Millis,
    /// From this time on the key is rejected; `None`: no expiry.
    #[serde(default)]
    pub expires_at: Option<Millis>,
    /// Whether the key is rejected regardless of `expires_at`.
    #[serde(default)]
    pub disabled: bool,
    /// The largest number of requests in any 10 s, beside the limits of each endpoint; `None`: no such limit.
    #[serde(default)]
    pub rate_limit: Option<u32>,
    /// When the key was last used, written at intervals; `None`: never, or not written yet.
    #[serde(default)]
    pub last_used_at: Option<Millis>,
    /// The address of the last use; `None`: unknown, or never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_from: Option<IpAddr>,
    /// The addresses that used the key, oldest first.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

impl ApiKey {
    /// Returns an enabled key of the owner `server` without expiry and limit that was never used.
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
            last_used_from: None,
            addresses: Vec::new(),
        }
    }

    /// The submitter in the rows of jobs that this key submits.
    pub fn submitter(&self) -> Submitter {
        Submitter { owner: self.owner, key: KeyId::parse(&self.id) }
    }

    /// Whether the key is accepted at `now`.
    pub fn is_alive(&self, now: Millis) -> bool {
        !self.disabled && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether a scope grants the whole management API. Ignores expiry and `disabled`.
    pub fn manages_all(&self) -> bool {
        self.scopes.iter().any(|scope| matches!(scope, KeyScope::Manage { .. }) && scope.covers(None))
    }

    /// Whether a scope grants `operation` on at least one endpoint. Ignores expiry and `disabled`.
    pub fn has_scope_for(&self, operation: Permission) -> bool {
        self.scopes.iter().any(|scope| scope.grants(operation))
    }

    /// The endpoints named by the scopes that grant `operation`; a scope for all endpoints names none.
    pub fn endpoints_for(&self, operation: Permission) -> impl Iterator<Item = &EndpointId> {
        let granted = self.scopes.iter().filter(move |scope| scope.grants(operation));
        granted.flat_map(KeyScope::endpoint_ids)
    }

    /// Whether the key permits `operation` on `endpoint` (`None`: on the catalog) at `now`.
    pub fn permits(&self, operation: Permission, endpoint: Option<&EndpointId>, now: Millis) -> bool {
        let granted = |scope: &KeyScope| scope.grants(operation) && scope.covers(endpoint);
        self.is_alive(now) && self.scopes.iter().any(granted)
    }
}

/// Omits the hash: the operator's own key may be a word that can be guessed from its hash.
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
