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
    /// A name for people, not unique.
    pub name: String,
    /// The requested size in GB, in GB on the wire too; limits nothing.
    #[serde(rename = "size")]
    pub size_gb: u32,
    /// The location, as a text for people; has no effect.
    pub data_center_id: String,
    /// The endpoints whose keys may name it.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When the volume was created.
    pub created_at: Millis,
}
