//! A template: what a worker runs.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Millis, SharedWith, TemplateId};

/// A template's record, named as in the management API; also its stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The public id.
    pub id: TemplateId,
    /// A name for people, unique.
    pub name: String,
    /// The container image; a label for the process provider.
    pub image_name: String,
    /// The command line's beginning.
    #[serde(default)]
    pub docker_entrypoint: Vec<String>,
    /// The command line's end.
    #[serde(default)]
    pub docker_start_cmd: Vec<String>,
    /// The folder in which a process worker runs, or deployed code as `code:<hash>`.
    #[serde(default)]
    pub workdir: Option<String>,
    /// Environment of the worker. Values are secrets: never logged.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `NVIDIA`, `AMD` or `CPU`.
    pub category: String,
    /// Container disk, in GB.
    pub container_disk_in_gb: u32,
    /// Credentials for the image's registry.
    #[serde(default)]
    pub container_registry_auth_id: Option<String>,
    /// Accepted for compatibility.
    #[serde(default)]
    pub is_public: bool,
    /// Whether it is meant for endpoints.
    #[serde(default)]
    pub is_serverless: bool,
    /// Ports of the container, as `8888/http`.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Text for people.
    #[serde(default)]
    pub readme: String,
    /// Volume size, in GB.
    pub volume_in_gb: u32,
    /// Where the volume is mounted.
    pub volume_mount_path: String,
    /// The endpoints whose keys may name it.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When it was created.
    pub created_at: Millis,
}
