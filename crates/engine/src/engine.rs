//! The engine: every endpoint of this server, and the catalog.

use std::sync::Arc;

use longshore_model::{ApiKey, Endpoint, JobId, Template, TemplateId};

use crate::{CatalogError, EndpointHandle};

/// Every endpoint of this server, and the catalog. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Mints a job id at the edge.
    pub fn mint_job(&self, sync: bool) -> JobId { todo!("{sync}") }
    /// 128 random bits, for ids.
    pub fn entropy(&self) -> u128 { todo!() }
    /// The endpoint with this id or slug.
    pub fn endpoint(&self, id_or_slug: &str) -> Option<EndpointHandle> { todo!("{id_or_slug}") }
    /// Every endpoint, oldest first.
    pub fn endpoints(&self) -> Vec<EndpointHandle> { todo!() }
    /// Adds an endpoint. Its `no` and `created_at` are set here. Refused: a slug that is taken (also by an id),
    /// a template that does not exist.
    pub async fn create_endpoint(&self, endpoint: Endpoint) -> Result<Arc<Endpoint>, CatalogError> { todo!("{endpoint:?}") }
    /// Changes an endpoint's record by `change`; `version` grows by one if `template_id` changed.
    pub async fn update_endpoint(
        &self,
        id_or_slug: &str,
        change: impl FnOnce(&mut Endpoint) + Send,
    ) -> Result<Arc<Endpoint>, CatalogError> { let _ = (id_or_slug, change); todo!() }
    /// Deletes an endpoint: it answers 404 at once, its workers are stopped, its jobs removed in slices.
    /// With `drain` the running jobs may finish first.
    pub async fn delete_endpoint(&self, id_or_slug: &str, drain: bool) -> Result<(), CatalogError> { todo!("{id_or_slug} {drain}") }
    /// Every template, oldest first.
    pub fn templates(&self) -> Vec<Arc<Template>> { todo!() }
    /// One template.
    pub fn template(&self, id: &TemplateId) -> Option<Arc<Template>> { todo!("{id}") }
    /// Adds a template. Refused: a name that is taken.
    pub async fn create_template(&self, template: Template) -> Result<Arc<Template>, CatalogError> { todo!("{template:?}") }
    /// Changes a template by `change`; endpoints that use it get a new `version` if image, command, workdir or
    /// env changed.
    pub async fn update_template(
        &self,
        id: &TemplateId,
        change: impl FnOnce(&mut Template) + Send,
    ) -> Result<Arc<Template>, CatalogError> { let _ = (id, change); todo!() }
    /// Deletes a template. Refused while an endpoint uses it, naming the endpoint.
    pub async fn delete_template(&self, id: &TemplateId) -> Result<(), CatalogError> { todo!("{id}") }
    /// Every key.
    pub fn keys(&self) -> Vec<Arc<ApiKey>> { todo!() }
    /// The key whose text has this hash (lower-case hex SHA-256).
    pub fn key_by_hash(&self, hash: &str) -> Option<Arc<ApiKey>> { todo!("{hash}") }
    /// Inserts or replaces a key.
    pub async fn put_key(&self, key: ApiKey) -> Result<(), CatalogError> { todo!("{key:?}") }
    /// Removes a key.
    pub async fn delete_key(&self, id: &str) -> Result<(), CatalogError> { todo!("{id}") }
    /// Makes the token with which workers (of one endpoint; all of them share it) authenticate:
    /// `lsw_<endpoint id>_<mac>`.
    pub fn worker_token(&self, endpoint: &longshore_model::EndpointId) -> String { todo!("{endpoint}") }
    /// Whether `token` is the worker token of `endpoint`; compared in constant time.
    pub fn is_worker_token(&self, endpoint: &longshore_model::EndpointId, token: &str) -> bool { todo!("{endpoint}{token}") }
    /// Whether every endpoint is loaded.
    pub fn is_ready(&self) -> bool { todo!() }
}
