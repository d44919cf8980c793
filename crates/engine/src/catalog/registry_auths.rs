//! Credentials for registries of container images.

use std::sync::Arc;

use longshore_model::{JsonRowKind, RegistryAuth, RegistryAuthId, Template};

use super::Catalog;
use crate::CatalogError;

const KIND: JsonRowKind = JsonRowKind::RegistryAuth;

impl Catalog {
    /// All registry credentials, oldest first.
    pub fn registry_auths(&self) -> Vec<RegistryAuth> {
        self.resources(KIND)
    }

    /// The registry credentials with this id.
    pub fn registry_auth(&self, id: &RegistryAuthId) -> Option<RegistryAuth> {
        self.resource(KIND, id.as_str())
    }

    /// Creates registry credentials. Their `created_at` is set here.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Catalog`].
    pub async fn create_registry_auth(&self, auth: RegistryAuth) -> Result<RegistryAuth, CatalogError> {
        let _lock = self.lock().await;
        let auth = RegistryAuth { created_at: self.now(), ..auth };
        self.put_resource(KIND, auth.id.as_str(), &auth).await?;
        Ok(auth)
    }

    /// Changes registry credentials by `change` and returns them. `change` cannot set their id and `created_at`. If
    /// nothing changed, nothing is written.
    ///
    /// # Errors
    ///
    /// The error of `change`; [`CatalogError::NotFound`] for an unknown id.
    pub async fn update_registry_auth<E: From<CatalogError>>(
        &self,
        id: &RegistryAuthId,
        change: impl FnOnce(&mut RegistryAuth) -> Result<(), E> + Send,
    ) -> Result<RegistryAuth, E> {
        let _lock = self.lock().await;
        let before = self.registry_auth(id).ok_or(CatalogError::NotFound)?;
        let mut auth = before.clone();
        change(&mut auth)?;
        (auth.id, auth.created_at) = (before.id, before.created_at);
        if auth == before {
            return Ok(auth);
        }
        self.put_resource(KIND, id.as_str(), &auth).await?;
        Ok(auth)
    }

    /// Checks that the registry credentials exist which a template names. Those of `before` are not checked again.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the missing id.
    pub(crate) fn check_registry_auth(
        &self,
        template: &Template,
        before: Option<&Template>,
    ) -> Result<(), CatalogError> {
        let named = |template: &Template| {
            // Some clients send an empty text for none.
            template.container_registry_auth_id.clone().filter(|id| !id.is_empty())
        };
        let Some(id) = named(template).filter(|id| before.and_then(named).as_ref() != Some(id)) else {
            return Ok(());
        };
        match id.parse().ok().and_then(|id| self.registry_auth(&id)) {
            Some(_) => Ok(()),
            None => Err(CatalogError::Conflict(format!(
                "container registry auth {id:?} does not exist: create it first"
            ))),
        }
    }

    /// Deletes registry credentials, if they are `as_expected`.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Changed`] if the credentials are not as expected.
    /// - [`CatalogError::Conflict`] while a template names them.
    pub async fn delete_registry_auth(
        &self,
        id: &RegistryAuthId,
        as_expected: impl FnOnce(&RegistryAuth) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _lock = self.lock().await;
        let auth = self.registry_auth(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&auth) {
            return Err(CatalogError::Changed);
        }
        let uses =
            |template: &&Arc<Template>| template.container_registry_auth_id.as_deref() == Some(id.as_str());
        if let Some(template) = self.state().templates().iter().find(uses) {
            return Err(CatalogError::Conflict(format!(
                "container registry auth {id} is in use by template {}: delete or change that first",
                template.id
            )));
        }
        self.delete_json_row(KIND, id.as_str()).await
    }
}
