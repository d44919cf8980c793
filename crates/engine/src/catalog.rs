//! What is not a job, in memory: endpoints, templates, keys, small records. Reads never wait; writes go through one door, to
//! the store first and here after.

mod json_rows;
mod owners;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use longshore_model::{ApiKey, Endpoint, EndpointNo, Template, TemplateId};

use self::json_rows::JsonRows;
use self::owners::Owners;
use crate::tracked_key::TrackedKey;
use crate::{CatalogError, EndpointHandle};

/// The catalog at one moment.
#[derive(Default)]
pub(crate) struct Catalog {
    endpoints: BTreeMap<EndpointNo, EndpointHandle>,
    /// By id and by slug.
    by_name: HashMap<String, EndpointHandle>,
    templates: Vec<Arc<Template>>,
    keys: Vec<Arc<TrackedKey>>,
    by_hash: HashMap<String, Arc<TrackedKey>>,
    pub(crate) json_rows: JsonRows,
    pub(crate) owners: Owners,
    pub(crate) last_endpoint_no: u32,
}

impl Catalog {
    pub(crate) fn endpoint(&self, id_or_slug: &str) -> Option<&EndpointHandle> {
        self.by_name.get(id_or_slug)
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &EndpointHandle> {
        self.endpoints.values()
    }

    /// Inserts an endpoint, or lists it anew after its names changed.
    pub(crate) fn put_endpoint(&mut self, handle: EndpointHandle) {
        let record = handle.record();
        self.remove_endpoint(record.no);
        self.by_name.insert(record.id.to_string(), handle.clone());
        if let Some(slug) = &record.slug {
            self.by_name.insert(slug.clone(), handle.clone());
        }
        self.last_endpoint_no = self.last_endpoint_no.max(record.no.0);
        self.endpoints.insert(record.no, handle);
    }

    pub(crate) fn remove_endpoint(&mut self, no: EndpointNo) {
        if self.endpoints.remove(&no).is_some() {
            self.by_name.retain(|_, handle| handle.record().no != no);
        }
    }

    /// Whether an endpoint's names are free and its template exists.
    pub(crate) fn admits(&self, endpoint: &Endpoint) -> Result<(), CatalogError> {
        if self.template(&endpoint.template_id).is_none() {
            let id = endpoint.template_id;
            return Err(CatalogError::Conflict(format!("template {id} does not exist: create it first")));
        }
        let Some(slug) = &endpoint.slug else { return Ok(()) };
        // Names that differ in their case alone would be taken for each other by people.
        let has_it = |other: &Endpoint| {
            let is_slug = |name: &str| name.eq_ignore_ascii_case(slug);
            other.no != endpoint.no
                && (is_slug(other.id.as_str()) || other.slug.as_deref().is_some_and(is_slug))
        };
        // By whom is not said: keys for some endpoints learn nothing about others.
        if self.endpoints.values().any(|other| has_it(&other.record())) {
            return Err(CatalogError::Conflict(format!("slug {slug} is taken: choose another")));
        }
        Ok(())
    }

    pub(crate) fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    pub(crate) fn template(&self, id: &TemplateId) -> Option<&Arc<Template>> {
        self.templates.iter().find(|template| template.id == *id)
    }

    pub(crate) fn admits_template(&self, template: &Template) -> Result<(), CatalogError> {
        let taken = |other: &&Arc<Template>| other.name == template.name && other.id != template.id;
        if self.templates.iter().any(|other| taken(&other)) {
            let text = format!("template name {} is taken: choose another", template.name);
            return Err(CatalogError::Conflict(text));
        }
        Ok(())
    }

    pub(crate) fn put_template(&mut self, template: Arc<Template>) {
        match self.templates.iter_mut().find(|other| other.id == template.id) {
            Some(place) => *place = template,
            None => self.templates.push(template),
        }
    }

    pub(crate) fn remove_template(&mut self, id: &TemplateId) {
        self.templates.retain(|template| template.id != *id);
    }

    /// The endpoints that use a template.
    pub(crate) fn users_of(&self, id: &TemplateId) -> Vec<EndpointHandle> {
        let uses = |handle: &&EndpointHandle| handle.record().template_id == *id;
        self.endpoints.values().filter(uses).cloned().collect()
    }

    pub(crate) fn keys(&self) -> &[Arc<TrackedKey>] {
        &self.keys
    }

    pub(crate) fn key_by_hash(&self, hash: &str) -> Option<&Arc<TrackedKey>> {
        self.by_hash.get(hash)
    }

    pub(crate) fn key(&self, id: &str) -> Option<&Arc<TrackedKey>> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Inserts a key, or replaces its record in its place.
    pub(crate) fn put_key(&mut self, record: ApiKey) -> Arc<TrackedKey> {
        let place = self.keys.iter().position(|key| key.id == record.id);
        let key = Arc::new(match place {
            Some(place) => self.keys[place].changed(record),
            None => TrackedKey::new(record),
        });
        self.unlist_key(&key.id);
        if let Some(other) = self.by_hash.insert(key.hash.clone(), Arc::clone(&key)) {
            other.retire();
        }
        match place {
            Some(place) => self.keys[place] = Arc::clone(&key),
            None => self.keys.push(Arc::clone(&key)),
        }
        key
    }

    pub(crate) fn remove_key(&mut self, id: &str) {
        self.keys.retain(|key| key.id != id);
        self.unlist_key(id);
    }

    fn unlist_key(&mut self, id: &str) {
        for (_, key) in self.by_hash.extract_if(|_, key| key.id == id) {
            key.retire();
        }
    }
}
