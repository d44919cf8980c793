//! Endpoints, templates and JSON rows in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use longshore_model::{Endpoint, EndpointNo, Template, TemplateId};

use super::json_rows::JsonRows;
use super::versions::Versions;
use crate::{CatalogError, EndpointHandle};

/// The catalog in memory. What it has is durable.
#[derive(Default)]
pub(crate) struct CatalogState {
    endpoints: BTreeMap<EndpointNo, EndpointHandle>,
    /// Endpoints by id and by slug.
    by_name: HashMap<String, EndpointHandle>,
    /// Templates, oldest first.
    templates: Vec<Arc<Template>>,
    pub(crate) json_rows: JsonRows,
    pub(crate) versions: Versions,
    /// The largest number that an endpoint ever had.
    pub(crate) last_endpoint_no: u32,
}

impl CatalogState {
    /// A catalog without endpoints, templates and JSON rows.
    pub(crate) fn new(last_endpoint_no: u32) -> Self {
        Self { last_endpoint_no, ..Self::default() }
    }

    /// The endpoint with this id or slug.
    pub(crate) fn endpoint(&self, id_or_slug: &str) -> Option<&EndpointHandle> {
        self.by_name.get(id_or_slug)
    }

    /// Every endpoint, oldest first.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &EndpointHandle> {
        self.endpoints.values()
    }

    /// Inserts an endpoint, or lists it under its present names after a change.
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

    /// Removes an endpoint with this number, if there is one.
    pub(crate) fn remove_endpoint(&mut self, no: EndpointNo) {
        if self.endpoints.remove(&no).is_some() {
            self.by_name.retain(|_, handle| handle.record().no != no);
        }
    }

    /// Checks that an endpoint's slug is free.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the reason.
    pub(crate) fn check_slug(&self, endpoint: &Endpoint) -> Result<(), CatalogError> {
        let Some(slug) = &endpoint.slug else { return Ok(()) };
        // People would confuse names that differ only in their case.
        let has_it = |other: &Endpoint| {
            let is_slug = |name: &str| name.eq_ignore_ascii_case(slug);
            other.no != endpoint.no
                && (is_slug(other.id.as_str()) || other.slug.as_deref().is_some_and(is_slug))
        };
        // The other endpoint is not named, because a key for some endpoints must learn nothing about others.
        if self.endpoints.values().any(|other| has_it(&other.record())) {
            return Err(CatalogError::Conflict(format!("slug {slug} is taken: choose another")));
        }
        Ok(())
    }

    /// Every template, oldest first.
    pub(crate) fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    /// The template with this id.
    pub(crate) fn template(&self, id: &TemplateId) -> Option<&Arc<Template>> {
        self.templates.iter().find(|template| template.id == *id)
    }

    /// Checks that no other template has the template's name.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the name.
    pub(crate) fn check_template(&self, template: &Template) -> Result<(), CatalogError> {
        let taken = |other: &&Arc<Template>| other.name == template.name && other.id != template.id;
        if self.templates.iter().any(|other| taken(&other)) {
            let text = format!("template name {} is taken: choose another", template.name);
            return Err(CatalogError::Conflict(text));
        }
        Ok(())
    }

    /// Inserts a template, or replaces the one with its id.
    pub(crate) fn put_template(&mut self, template: Arc<Template>) {
        match self.templates.iter_mut().find(|other| other.id == template.id) {
            Some(place) => *place = template,
            None => self.templates.push(template),
        }
    }

    /// Removes the template with this id, if there is one.
    pub(crate) fn remove_template(&mut self, id: &TemplateId) {
        self.templates.retain(|template| template.id != *id);
    }

    /// The endpoints that use a template, oldest first.
    pub(crate) fn users_of(&self, id: &TemplateId) -> Vec<EndpointHandle> {
        let uses = |handle: &&EndpointHandle| handle.record().template_id == *id;
        self.endpoints.values().filter(uses).cloned().collect()
    }
}
