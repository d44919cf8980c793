//! Templates: the image, command and environment of workers.

use std::sync::Arc;

use longshore_model::{Endpoint, Template, TemplateId};
use longshore_store::Write;

use super::Catalog;
use super::versions::{RecordedChange, Records};
use crate::secrets::sealed_template;
use crate::{CatalogError, EndpointHandle};

impl Catalog {
    /// Every template, oldest first.
    pub fn templates(&self) -> Vec<Arc<Template>> {
        self.state().templates().to_vec()
    }

    /// The template with this id.
    pub fn template(&self, id: &TemplateId) -> Option<Arc<Template>> {
        self.state().template(id).cloned()
    }

    /// The template that an endpoint names.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the id if there is none.
    pub(crate) fn known_template(&self, id: &TemplateId) -> Result<Arc<Template>, CatalogError> {
        let missing = || CatalogError::Conflict(format!("template {id} does not exist: create it first"));
        self.template(id).ok_or_else(missing)
    }

    /// The write that stores a template, with its variables encrypted.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the operating system gives no random bytes.
    pub(crate) fn template_write(&self, template: &Template) -> Result<Write, CatalogError> {
        Ok(Write::PutTemplate(Box::new(sealed_template(&self.services.vault, template)?)))
    }

    /// The endpoints that use a template, oldest first.
    pub fn endpoints_using(&self, id: &TemplateId) -> Vec<EndpointHandle> {
        self.state().users_of(id)
    }

    /// Creates a template. Its `created_at` is set here.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] if another template has the name, or if its registry credentials or a secret do not
    /// exist.
    pub async fn create_template(&self, template: Template) -> Result<Arc<Template>, CatalogError> {
        let _lock = self.lock().await;
        let mut template = template;
        template.created_at = self.now();
        self.state().check_template(&template)?;
        self.check_registry_auth(&template, None)?;
        self.check_secrets(&template, None)?;
        self.commit(vec![self.template_write(&template)?]).await?;
        let template = Arc::new(template);
        self.state_mut().put_template(template.clone());
        Ok(template)
    }

    /// Changes a template by `change` and returns it. `by` is the id of the key that changes it. `change` cannot set its id and `created_at`. If image, command,
    /// `workdir` or `env` changed, the endpoints that use it get a new `version`, so that their workers are replaced.
    /// If nothing changed, nothing is written.
    ///
    /// # Errors
    ///
    /// - The error of `change`.
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Conflict`] if another template has the new name, or if new registry credentials or a new
    ///   secret do not exist.
    pub async fn update_template<E: From<CatalogError>>(
        &self,
        id: &TemplateId,
        by: &str,
        change: impl FnOnce(&mut Template) -> Result<(), E> + Send,
    ) -> Result<Arc<Template>, E> {
        let _lock = self.lock().await;
        let before = self.template(id).ok_or(CatalogError::NotFound)?;
        let mut template = Template::clone(&before);
        change(&mut template)?;
        (template.id, template.created_at) = (before.id, before.created_at);
        if template == *before {
            return Ok(before);
        }
        self.state().check_template(&template)?;
        self.check_registry_auth(&template, Some(&before))?;
        self.check_secrets(&template, Some(&before))?;
        let users = if runs_the_same(&before, &template) { Vec::new() } else { self.state().users_of(id) };
        let mut writes = vec![self.template_write(&template)?];
        let mut records = Vec::new();
        let mut recorded = RecordedChange::default();
        for user in users {
            let present = user.record();
            let mut record = Endpoint::clone(&present);
            record.version += 1;
            // A variable that was changed is the operator's, and no later deploy removes it.
            record.deployed_env.retain(|name| template.env.get(name) == before.env.get(name));
            let was = Records { endpoint: &present, template: &before };
            let is = Records { endpoint: &record, template: &template };
            self.record_change(&mut recorded, Some(was), is, by)?;
            writes.push(Write::PutEndpoint(Box::new(record.clone())));
            records.push((user, record));
        }
        writes.extend(recorded.take_writes());
        self.commit(writes).await.map_err(CatalogError::from)?;
        let template = Arc::new(template);
        {
            let mut state = self.state_mut();
            state.put_template(template.clone());
            state.versions.apply(recorded);
        }
        for (user, record) in records {
            user.configure(record);
        }
        Ok(template)
    }

    /// Deletes a template, if it is `as_expected`.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Changed`] if the template is not as expected.
    /// - [`CatalogError::Conflict`] while an endpoint uses the template.
    pub async fn delete_template(
        &self,
        id: &TemplateId,
        as_expected: impl FnOnce(&Template) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _lock = self.lock().await;
        let template = self.template(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&template) {
            return Err(CatalogError::Changed);
        }
        if let Some(user) = self.state().users_of(id).first() {
            let endpoint = user.record().id;
            return Err(CatalogError::Conflict(format!(
                "template {id} is in use by endpoint {endpoint}: delete or change that first"
            )));
        }
        self.commit(vec![Write::DeleteTemplate(*id)]).await?;
        self.state_mut().remove_template(id);
        Ok(())
    }
}

/// Whether workers of both templates run the same program in the same environment.
pub(crate) fn runs_the_same(one: &Template, other: &Template) -> bool {
    one.image_name == other.image_name
        && one.docker_entrypoint == other.docker_entrypoint
        && one.docker_start_cmd == other.docker_start_cmd
        && one.workdir == other.workdir
        && one.env == other.env
}
