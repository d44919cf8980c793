//! One line of the audit log.

use longshore_model::{ApiKey, Millis};
use serde::{Deserialize, Serialize};

use crate::wire::rfc3339::rfc3339;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Larger for later ones; given by the log.
    #[serde(default)]
    pub(crate) id: u64,
    /// When, RFC 3339.
    pub(crate) at: String,
    /// `change`, or `newAddress`: a key was used from an address that it was not used from before.
    pub(crate) event: String,
    /// The key that did it.
    pub(crate) key: KeyRef,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// What the answer called the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// Of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<String>,
    /// Of the request, without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// What was changed: `endpoints/<id>`, `apikeys/<id>` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// Which fields the request sent. Never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<String>,
    /// Of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// `done`, `refused` or `failed`.
    pub(crate) outcome: String,
}

/// A key, as the log names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyRef {
    /// Its public part.
    pub(crate) id: String,
    /// Its name at that time.
    pub(crate) name: String,
}

impl KeyRef {
    pub(crate) fn is(key: &ApiKey) -> Self {
        Self { id: key.id.clone(), name: key.name.clone() }
    }
}

impl Entry {
    /// A key is used from a new address.
    pub(crate) fn new_address(at: Millis, key: &ApiKey, address: Option<String>) -> Self {
        Self {
            id: 0,
            at: rfc3339(at),
            event: "newAddress".to_owned(),
            key: KeyRef::is(key),
            address,
            request_id: None,
            method: None,
            path: None,
            resource: None,
            fields: Vec::new(),
            status: None,
            outcome: "done".to_owned(),
        }
    }
}
