//! The versions of endpoints. Each change of an endpoint or its template is recorded in the same commit as the change.
//!
//! ```text
//!   change of what workers are started with ──► a new version, with one entry
//!   change of the endpoint's own fields     ──► one more entry of the present version
//! ```
//!
//! The newest [`VERSIONS_MAX`] versions are kept, with the code that they run. They are deleted with the endpoint.

mod changes;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use longshore_model::{CodeHash, Endpoint, EndpointId, JsonRowKind, SecretName, Template};
use longshore_store::Write;

use super::Catalog;
use super::json_rows::StoredJson;
use crate::CatalogError;
use crate::secrets::sealed_record;

pub use record::{EndpointVersion, FieldChange, VersionContent, VersionEntry};

const KIND: JsonRowKind = JsonRowKind::EndpointVersion;
/// The versions that are kept of one endpoint.
pub const VERSIONS_MAX: u32 = 50;

/// The versions in memory, by endpoint and number.
#[derive(Default)]
pub(crate) struct Versions(HashMap<EndpointId, BTreeMap<u32, Arc<EndpointVersion>>>);

/// What a change adds to the versions of endpoints: writes for the commit of the change, and the same for memory.
#[derive(Default)]
pub(crate) struct RecordedChange {
    writes: Vec<Write>,
    put: Vec<(EndpointId, Arc<EndpointVersion>)>,
    /// All versions below this number are deleted.
    keep_from: Vec<(EndpointId, u32)>,
}

/// The records of an endpoint and its template at one time.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) template: &'a Template,
}

impl Versions {
    /// The versions in stored rows. A corrupt row is logged and left out.
    pub(crate) fn load(rows: impl IntoIterator<Item = StoredJson>) -> Self {
        let mut versions = Self::default();
        for row in rows {
            let decoded = EndpointVersion::decode(&row.json).ok();
            let endpoint = row.id.split_once('/').and_then(|(endpoint, _)| endpoint.parse().ok());
            // A row under another id than its own could never be deleted.
            let own = endpoint.zip(decoded).filter(|(id, version)| row.id == row_id(id, version.version));
            if let Some((endpoint, version)) = own {
                versions.put(endpoint, Arc::new(version));
            } else {
                // Without the text of the error, which could quote a secret.
                tracing::error!(id = row.id, "corrupt version of an endpoint ignored");
            }
        }
        versions
    }

    fn put(&mut self, endpoint: EndpointId, version: Arc<EndpointVersion>) {
        self.0.entry(endpoint).or_default().insert(version.version, version);
    }

    fn get(&self, endpoint: &EndpointId, version: u32) -> Option<Arc<EndpointVersion>> {
        self.0.get(endpoint)?.get(&version).cloned()
    }

    /// The versions of an endpoint, newest first.
    fn of(&self, endpoint: &EndpointId) -> Vec<Arc<EndpointVersion>> {
        self.0.get(endpoint).into_iter().flat_map(|versions| versions.values().rev().cloned()).collect()
    }

    /// Applies a change that is durable.
    pub(crate) fn apply(&mut self, change: RecordedChange) {
        for (endpoint, version) in change.put {
            self.put(endpoint, version);
        }
        for (endpoint, keep_from) in change.keep_from {
            if let Some(versions) = self.0.get_mut(&endpoint) {
                *versions = versions.split_off(&keep_from);
            }
        }
    }

    /// Removes the versions of a deleted endpoint.
    pub(crate) fn remove(&mut self, endpoint: &EndpointId) {
        self.0.remove(endpoint);
    }
}

impl RecordedChange {
    /// The writes, which belong into the commit of the change itself.
    pub(crate) fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }
}

impl Catalog {
    /// The kept versions of an endpoint, newest first. An endpoint of an earlier version of this program has only its
    /// present version until it changes.
    pub fn versions(&self, endpoint: &Endpoint) -> Vec<Arc<EndpointVersion>> {
        let versions = self.state().versions.of(&endpoint.id);
        if versions.is_empty() { self.baseline(endpoint).into_iter().collect() } else { versions }
    }

    /// One version of an endpoint; `None` if it is not kept.
    pub fn version(&self, endpoint: &Endpoint, version: u32) -> Option<Arc<EndpointVersion>> {
        self.versions(endpoint).into_iter().find(|kept| kept.version == version)
    }

    /// The deployed code that templates and kept versions run.
    pub fn code_in_use(&self) -> HashSet<CodeHash> {
        let state = self.state();
        let versions = state.versions.0.values().flat_map(BTreeMap::values);
        let of_versions = versions.filter_map(|version| version.code.as_deref()?.parse().ok());
        let of_templates = state.templates().iter().filter_map(|template| record::code_of(template));
        of_versions.chain(of_templates).collect()
    }

    /// Whether a kept version of an endpoint runs this code.
    pub fn has_version_with(&self, endpoint: &Endpoint, code: &CodeHash) -> bool {
        self.versions(endpoint).iter().any(|version| version.code.as_deref() == Some(code.as_str()))
    }

    /// The present version of an endpoint whose changes were not recorded.
    fn baseline(&self, endpoint: &Endpoint) -> Option<Arc<EndpointVersion>> {
        let template = self.template(&endpoint.template_id)?;
        Some(Arc::new(unrecorded(Records { endpoint, template: &template })))
    }

    /// Records the change of an endpoint `before` to the records `after`; `before` is `None` for a new endpoint. The
    /// caller holds the lock, commits the writes with the change, and then applies the rest.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the version cannot be encrypted, [`CatalogError::Unavailable`] if it cannot be
    /// serialized.
    pub(crate) fn record_change(
        &self,
        change: &mut RecordedChange,
        before: Option<Records<'_>>,
        after: Records<'_>,
        by: &str,
    ) -> Result<(), CatalogError> {
        let fields = before.map_or_else(Vec::new, |before| changes::changes(before, after));
        self.record(change, before, after, VersionEntry { at: self.now(), by: by.to_owned(), fields })
    }

    /// Records that a secret which the template of an endpoint names has a new value.
    ///
    /// # Errors
    ///
    /// As [`Catalog::record_change`].
    pub(crate) fn record_new_value(
        &self,
        change: &mut RecordedChange,
        before: Records<'_>,
        after: Records<'_>,
        by: &str,
        secret: &SecretName,
    ) -> Result<(), CatalogError> {
        let fields = changes::variables_with(after.template, secret);
        let entry = VersionEntry { at: self.now(), by: by.to_owned(), fields };
        self.record(change, Some(before), after, entry)
    }

    fn record(
        &self,
        change: &mut RecordedChange,
        before: Option<Records<'_>>,
        after: Records<'_>,
        entry: VersionEntry,
    ) -> Result<(), CatalogError> {
        let id = after.endpoint.id;
        let present = before.map(|before| {
            let kept = self.state().versions.get(&id, before.endpoint.version);
            kept.map_or_else(|| (unrecorded(before), false), |kept| (EndpointVersion::clone(&kept), true))
        });
        let version = match present {
            Some((mut present, _)) if present.version == after.endpoint.version => {
                present.push(entry);
                present.stand(after.endpoint, after.template);
                present
            }
            present => {
                if let Some((present, false)) = present {
                    self.put_version(change, id, present)?;
                }
                let mut version = EndpointVersion::of(after.endpoint, after.template);
                version.push(entry);
                version
            }
        };
        let keep_from = version.version.saturating_sub(VERSIONS_MAX - 1);
        self.put_version(change, id, version)?;
        let old = self.state().versions.of(&id).into_iter().filter(|old| old.version < keep_from);
        change.writes.extend(old.map(|old| Write::DeleteJsonRow(KIND, row_id(&id, old.version))));
        change.keep_from.push((id, keep_from));
        Ok(())
    }

    fn put_version(
        &self,
        change: &mut RecordedChange,
        endpoint: EndpointId,
        version: EndpointVersion,
    ) -> Result<(), CatalogError> {
        let json =
            serde_json::to_vec(&version).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        let row = row_id(&endpoint, version.version);
        let sealed = sealed_record(&self.services.vault, KIND, &row, &json.into())?;
        change.writes.push(Write::PutJsonRow(KIND, row, sealed));
        change.put.push((endpoint, Arc::new(version)));
        Ok(())
    }

    /// The writes that delete all versions of an endpoint.
    pub(crate) fn delete_versions(&self, endpoint: &EndpointId) -> Vec<Write> {
        let versions = self.state().versions.of(endpoint);
        versions.iter().map(|kept| Write::DeleteJsonRow(KIND, row_id(endpoint, kept.version))).collect()
    }
}

/// The version of an endpoint that an earlier version of this program has changed. Its creation is the only entry.
fn unrecorded(present: Records<'_>) -> EndpointVersion {
    let mut version = EndpointVersion::of(present.endpoint, present.template);
    let (at, by) = (present.endpoint.created_at, present.endpoint.user_id.clone());
    version.push(VersionEntry { at, by, fields: Vec::new() });
    version
}

/// The id of a version's row: `<endpoint id>/<number>`.
fn row_id(endpoint: &EndpointId, version: u32) -> String {
    format!("{endpoint}/{version}")
}
