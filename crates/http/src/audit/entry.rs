//! The entries of the audit log.

use longshore_model::{ApiKey, Millis};
use serde::{Deserialize, Serialize};

use crate::wire::rfc3339::rfc3339;

/// One entry of the audit log, stored as one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Increases from entry to entry. The log sets the id when it writes the entry.
    #[serde(default)]
    pub(crate) id: u64,
    /// The time of the event, RFC 3339.
    pub(crate) at: String,
    /// `change`; `newAddress` for the first use of a key from an address; `session` for the begin or the end of a session of the console.
    pub(crate) event: String,
    /// The key of the request; absent for a refused sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<KeyRef>,
    /// `console` if a session of the console sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) via: Option<String>,
    /// The first 8 characters of the session's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// The `X-Request-ID` of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The method of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<String>,
    /// The path of the request, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The changed resource: `endpoints/<id>`, `apikeys/<id>` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// The names of the fields in the request, without their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<String>,
    /// The status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// `done`, `refused` or `failed`; of a session also `opened`, `ended`, `replaced` or `expired`.
    pub(crate) outcome: String,
}

/// A key, as an entry names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyRef {
    /// The public id of the key.
    pub(crate) id: String,
    /// The name of the key at the time of the event.
    pub(crate) name: String,
}

impl KeyRef {
    pub(crate) fn is(key: &ApiKey) -> Self {
        Self { id: key.id.clone(), name: key.name.clone() }
    }
}

impl Entry {
    /// The entries of lines of JSON, in their order. Lines that are no entry, such as one torn by a power failure, are skipped.
    pub(crate) fn of_lines(text: &[u8]) -> Vec<Self> {
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// An entry of an event that is no change.
    fn event(at: Millis, event: &str, outcome: &str) -> Self {
        Self {
            id: 0,
            at: rfc3339(at),
            event: event.to_owned(),
            key: None,
            via: None,
            session: None,
            address: None,
            request_id: None,
            method: None,
            path: None,
            resource: None,
            fields: Vec::new(),
            status: None,
            outcome: outcome.to_owned(),
        }
    }

    /// The entry for the first use of a key from an address.
    pub(crate) fn new_address(at: Millis, key: &ApiKey, address: Option<String>) -> Self {
        Self { key: Some(KeyRef::is(key)), address, ..Self::event(at, "newAddress", "done") }
    }

    /// The entry for a session that was opened, ended or replaced, or has expired (`outcome`), with the key that did it. Of an
    /// expired one, it is the key of the session.
    pub(crate) fn session(at: Millis, key: &ApiKey, session: &str, outcome: &str) -> Self {
        let session = session.get(..8).map(str::to_owned);
        Self { key: Some(KeyRef::is(key)), session, ..Self::event(at, SESSION, outcome) }
    }

    /// The entry for a refused sign-in.
    pub(crate) fn refused_sign_in(at: Millis) -> Self {
        Self::event(at, SESSION, "refused")
    }

    /// The same entry with the address of the client.
    pub(crate) fn with_address(self, address: Option<String>) -> Self {
        Self { address, ..self }
    }
}

const SESSION: &str = "session";
