//! A template: what a worker runs.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{EnvValue, Millis, SecretName, SharedWith, TemplateId};

/// A template's record. The JSON names are those of the management API; this is also the stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The public id, in paths under `/v1`.
    pub id: TemplateId,
    /// A name for people, unique.
    pub name: String,
    /// The container image; a label for the process provider.
    pub image_name: String,
    /// The first words of the command line; may be empty.
    #[serde(default)]
    pub docker_entrypoint: Vec<String>,
    /// The words after `docker_entrypoint`; may be empty.
    #[serde(default)]
    pub docker_start_cmd: Vec<String>,
    /// The folder in which a process worker runs, or deployed code as `code:<hash>`.
    #[serde(default)]
    pub workdir: Option<String>,
    /// The environment of the worker. Values are never logged.
    #[serde(default)]
    pub env: BTreeMap<String, EnvValue>,
    /// `NVIDIA`, `AMD` or `CPU`.
    pub category: String,
    /// The size of the container's disk, in GB.
    pub container_disk_in_gb: u32,
    /// The id of the credentials for the image's registry; `None`: no login.
    #[serde(default)]
    pub container_registry_auth_id: Option<String>,
    /// Accepted for compatibility; has no effect.
    #[serde(default)]
    pub is_public: bool,
    /// Whether the template is meant for endpoints.
    #[serde(default)]
    pub is_serverless: bool,
    /// Ports of the container, as `8888/http`.
    #[serde(default)]
    pub ports: Vec<String>,
    /// A text for people; has no effect.
    #[serde(default)]
    pub readme: String,
    /// The size of the volume, in GB.
    pub volume_in_gb: u32,
    /// Where the volume is mounted.
    pub volume_mount_path: String,
    /// The endpoints whose keys may name it.
    #[serde(default)]
    pub endpoints: SharedWith,
    /// When the template was created.
    pub created_at: Millis,
}

impl Template {
    /// The secrets that the environment names, each once per variable.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        self.env.values().filter_map(EnvValue::secret_name)
    }
}
