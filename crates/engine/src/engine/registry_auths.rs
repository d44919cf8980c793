//! Credentials for registries of container images.

use std::sync::Arc;

use longshore_model::{JsonRowKind, RegistryAuth, RegistryAuthId, Template};

use super::Engine;
use crate::CatalogError;

const KIND: JsonRowKind = JsonRowKind::RegistryAuth;

impl Engine {
    /// Every registry's credentials, oldest first.
    pub fn registry_auths(&self) -> Vec<RegistryAuth> {
        self.typed_records(KIND)
    }

    /// One registry's credentials.
    pub fn registry_auth(&self, id: &RegistryAuthId) -> Option<RegistryAuth> {
        self.typed_record(KIND, id.as_str())
    }

    /// Adds credentials. Their `created_at` is set here.
    pub async fn create_registry_auth(&self, auth: RegistryAuth) -> Result<RegistryAuth, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let auth = RegistryAuth { created_at: self.now(), ..auth };
        self.keep_typed(KIND, auth.id.as_str(), &auth).await?;
        Ok(auth)
    }

    /// Changes the record of credentials by `change`; one that is refused, or leaves it as it is, writes nothing.
    pub async fn update_registry_auth<E: From<CatalogError>>(
        &self,
        id: &RegistryAuthId,
        change: impl FnOnce(&mut RegistryAuth) -> Result<(), E> + Send,
    ) -> Result<RegistryAuth, E> {
        let _door = self.inner.catalog_lock.lock().await;
        let before = self.registry_auth(id).ok_or(CatalogError::NotFound)?;
        let mut auth = before.clone();
        change(&mut auth)?;
        (auth.id, auth.created_at) = (before.id, before.created_at);
        if auth == before {
            return Ok(auth);
        }
        self.keep_typed(KIND, id.as_str(), &auth).await?;
        Ok(auth)
    }

    /// Whether the credentials exist that a template names; those that it named before are not asked about again.
    pub(super) fn admits_auth(
        &self,
        template: &Template,
        before: Option<&Template>,
    ) -> Result<(), CatalogError> {
        let named = |template: &Template| {
            // An empty text is what some clients send for none.
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

    /// Deletes credentials that are `as_expected`. Refused while a template names them, naming the template.
    pub async fn delete_registry_auth(
        &self,
        id: &RegistryAuthId,
        as_expected: impl FnOnce(&RegistryAuth) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let auth = self.registry_auth(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&auth) {
            return Err(CatalogError::Changed);
        }
        let uses =
            |template: &&Arc<Template>| template.container_registry_auth_id.as_deref() == Some(id.as_str());
        if let Some(template) = self.catalog().templates().iter().find(uses) {
            return Err(CatalogError::Conflict(format!(
                "container registry auth {id} is in use by template {}: delete or change that first",
                template.id
            )));
        }
        self.forget_records(KIND, vec![id.to_string()]).await
    }
}
