//! Which endpoints a resource is shared with: keys that manage one of them may name it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{EndpointId, ParseIdError};

/// Stands for every endpoint.
const EVERY: &str = "*";

/// The endpoints that a template, a network volume, a registry's credentials or a secret are shared with. Stored and shown as a
/// list of ids, or as `["*"]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub enum SharedWith {
    /// Every endpoint, including endpoints that are created later.
    Every,
    /// Only these endpoints; empty by default.
    Only(Vec<EndpointId>),
}

impl Default for SharedWith {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl SharedWith {
    /// Whether the resource is shared with `endpoint`.
    pub fn covers(&self, endpoint: &EndpointId) -> bool {
        match self {
            Self::Every => true,
            Self::Only(ids) => ids.contains(endpoint),
        }
    }
}

impl TryFrom<Vec<String>> for SharedWith {
    type Error = ParseIdError;

    fn try_from(texts: Vec<String>) -> Result<Self, ParseIdError> {
        if texts.iter().any(|text| text == EVERY) {
            return Ok(Self::Every);
        }
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self::Only)
    }
}

impl From<SharedWith> for Vec<String> {
    fn from(shared: SharedWith) -> Self {
        match shared {
            SharedWith::Every => [EVERY.to_string()].into(),
            SharedWith::Only(ids) => ids.iter().map(ToString::to_string).collect(),
        }
    }
}
