//! A network volume: a named directory that the workers of several endpoints share.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Millis, SharedWith, VolumeId};

/// A network volume's record, named as in the management API; also its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkVolume {
    /// The public id; also the directory's name.
    pub id: VolumeId,
    /// A name for people.
    pub name: String,
    /// The size that was asked for, in GB. In GB on the wire too.
    #[serde(rename = "size")]
    pub size_gb: u32,
    /// Where it is, for people.
    pub data_center_id: String,
    /// The endpoints whose keys may name it.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When it was created.
    pub created_at: Millis,
}
