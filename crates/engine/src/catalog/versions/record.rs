//! The stored form of an endpoint's versions.

use bytes::Bytes;
use longshore_model::{CodeHash, Endpoint, Millis, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One version of an endpoint: what its workers are started with, its own fields, and the history of both. One per
/// endpoint and number. It is stored as a JSON row that is encrypted as a whole, because values of `env` are secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointVersion {
    /// The number, from 1: the endpoint's `version` while this version was the present one.
    pub version: u32,
    /// The code that its workers run; `None` if the template names no deployed code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The change that made the version, then the changes of own fields under its number, oldest first. At most
    /// 50 entries and 64 KiB; beyond it the oldest changes of own fields are dropped.
    pub entries: Vec<VersionEntry>,
    /// The records as they last stood under this number; `None` if they were too large to be kept.
    #[serde(default)]
    pub content: Option<VersionContent>,
}

/// The records of an endpoint and its template.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionContent {
    /// The endpoint's record, with its number of workers and other fields.
    pub endpoint: Endpoint,
    /// The record of the template that the endpoint used.
    pub template: Template,
}

/// One change of an endpoint or its template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionEntry {
    /// When the change was made.
    pub at: Millis,
    /// The id of the key that made the change; empty if unknown.
    pub by: String,
    /// The changed fields; empty for the creation of the endpoint.
    pub fields: Vec<FieldChange>,
}

/// A field before and after a change, without secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The field's name in the management API; `env.NAME` for a variable.
    pub name: String,
    /// The value before; `null` if there was none. `"changed"` stands for a secret or a long value.
    pub from: Value,
    /// The value after, in the same form.
    pub to: Value,
}

/// The most entries of one version.
const ENTRIES_MAX: usize = 50;
/// The most bytes of the entries of one version, as JSON.
const ENTRIES_BYTES_MAX: usize = 64 * 1024;
/// The longest [`VersionContent`] that is kept, as JSON, in bytes. Fifty versions of that size take 13 MB of memory.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

impl EndpointVersion {
    /// A version without entries, of these records.
    pub(super) fn of(endpoint: &Endpoint, template: &Template) -> Self {
        let mut version = Self { version: endpoint.version, code: None, entries: Vec::new(), content: None };
        version.stand(endpoint, template);
        version
    }

    /// Replaces the records by those after a change.
    pub(super) fn stand(&mut self, endpoint: &Endpoint, template: &Template) {
        self.code = code_of(template).map(|code| code.as_str().to_owned());
        let content = VersionContent { endpoint: endpoint.clone(), template: template.clone() };
        let bytes = serde_json::to_vec(&content).map_or(usize::MAX, |json| json.len());
        self.content = (bytes <= CONTENT_BYTES_MAX).then_some(content);
    }

    /// Adds the newest entry.
    pub(super) fn push(&mut self, entry: VersionEntry) {
        self.entries.push(entry);
        let bytes_of = |entry: &VersionEntry| serde_json::to_vec(entry).map_or(0, |json| json.len());
        let mut bytes: usize = self.entries.iter().map(bytes_of).sum();
        // The first entry says how the version began, and stays with the newest.
        while self.entries.len() > 2 && (self.entries.len() > ENTRIES_MAX || bytes > ENTRIES_BYTES_MAX) {
            bytes -= bytes_of(&self.entries.remove(1));
        }
    }

    /// The version in a stored row.
    pub(super) fn decode(json: &Bytes) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

impl VersionContent {
    /// Returns `template` with the program of this version: image, registry credentials, command line, `workdir` and `env`.
    pub fn program_on(&self, template: Template) -> Template {
        let program = self.template.clone();
        Template {
            image_name: program.image_name,
            container_registry_auth_id: program.container_registry_auth_id,
            docker_entrypoint: program.docker_entrypoint,
            docker_start_cmd: program.docker_start_cmd,
            workdir: program.workdir,
            env: program.env,
            ..template
        }
    }
}

/// The deployed code that a template's workers run.
pub(super) fn code_of(template: &Template) -> Option<CodeHash> {
    template.workdir.as_deref().and_then(CodeHash::in_workdir)?.ok()
}
