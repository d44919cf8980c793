//! Secrets: values that templates name in the environment of workers.

use std::sync::Arc;

use longshore_model::{Endpoint, JsonRowKind, Secret, SecretName, Template};
use longshore_store::Write;

use super::Catalog;
use super::json_rows::StoredJson;
use super::versions::{RecordedChange, Records};
use crate::secrets::sealed_record;
use crate::{CatalogError, EndpointHandle};

const KIND: JsonRowKind = JsonRowKind::Secret;

impl Catalog {
    /// All secrets, oldest first.
    pub fn secrets(&self) -> Vec<Secret> {
        self.resources(KIND)
    }

    /// The secret with this name.
    pub fn secret(&self, name: &SecretName) -> Option<Secret> {
        self.resource(KIND, name.as_str())
    }

    /// The templates whose environment names a secret, oldest first.
    pub fn templates_naming(&self, secret: &SecretName) -> Vec<Arc<Template>> {
        let names_it = |template: &&Arc<Template>| template.secrets().any(|name| name == secret);
        self.state().templates().iter().filter(names_it).cloned().collect()
    }

    /// Whether the store gets secrets encrypted: the server has a key to seal them with.
    pub fn is_sealing(&self) -> bool {
        self.services.vault.is_sealing()
    }

    /// Creates a secret. Its times are set here.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] if another secret has the name.
    pub async fn create_secret(&self, secret: Secret) -> Result<Secret, CatalogError> {
        let _lock = self.lock().await;
        let now = self.now();
        let secret = Secret { created_at: now, updated_at: now, ..secret };
        if self.json_row(KIND, secret.name.as_str()).is_some() {
            let text = format!("secret {} exists already: change it, or choose another name", secret.name);
            return Err(CatalogError::Conflict(text));
        }
        self.put_resource(KIND, secret.name.as_str(), &secret).await?;
        Ok(secret)
    }

    /// Changes a secret by `change` and returns it. `by` is the id of the key that changes it. `change` cannot set its
    /// name and its times. If the value changed, the endpoints whose template names it get a new `version`, so that their
    /// workers are replaced. If nothing changed, nothing is written.
    ///
    /// # Errors
    ///
    /// The error of `change`; [`CatalogError::NotFound`] for an unknown name.
    pub async fn update_secret<E: From<CatalogError>>(
        &self,
        name: &SecretName,
        by: &str,
        change: impl FnOnce(&mut Secret) -> Result<(), E> + Send,
    ) -> Result<Secret, E> {
        let _lock = self.lock().await;
        let before = self.secret(name).ok_or(CatalogError::NotFound)?;
        let mut secret = before.clone();
        change(&mut secret)?;
        secret.name = before.name.clone();
        (secret.created_at, secret.updated_at) = (before.created_at, before.updated_at);
        if secret == before {
            return Ok(secret);
        }
        if secret.value == before.value {
            self.put_resource(KIND, name.as_str(), &secret).await?;
        } else {
            secret.updated_at = self.now();
            self.put_value(&secret, by).await?;
        }
        Ok(secret)
    }

    /// Stores a secret with a new value, together with the new versions of the endpoints whose workers have the old
    /// one. The caller holds the lock.
    async fn put_value(&self, secret: &Secret, by: &str) -> Result<(), CatalogError> {
        let json =
            serde_json::to_vec(secret).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        let row = StoredJson { id: secret.name.to_string(), json: json.into() };
        let sealed = sealed_record(&self.services.vault, KIND, &row.id, &row.json)?;
        let mut writes = vec![Write::PutJsonRow(KIND, row.id.clone(), sealed)];
        let mut records = Vec::new();
        let mut recorded = RecordedChange::default();
        for user in self.endpoints_with(&secret.name) {
            let present = user.record();
            let template = self.known_template(&present.template_id)?;
            let mut record = Endpoint::clone(&present);
            record.version += 1;
            let was = Records { endpoint: &present, template: &template };
            let is = Records { endpoint: &record, template: &template };
            self.record_new_value(&mut recorded, was, is, by, &secret.name)?;
            writes.push(Write::PutEndpoint(Box::new(record.clone())));
            records.push((user, record));
        }
        writes.extend(recorded.take_writes());
        self.commit(writes).await?;
        {
            // The value before the versions: a worker of the new version must not get the old value.
            let mut state = self.state_mut();
            state.json_rows.put(KIND, row.id, row.json);
            state.versions.apply(recorded);
        }
        for (user, record) in records {
            user.configure(record);
        }
        Ok(())
    }

    /// The endpoints whose template names a secret, oldest first.
    pub fn endpoints_with(&self, secret: &SecretName) -> Vec<EndpointHandle> {
        let templates = self.templates_naming(secret);
        let uses = |endpoint: &EndpointHandle| {
            templates.iter().any(|template| template.id == endpoint.record().template_id)
        };
        self.endpoints().into_iter().filter(uses).collect()
    }

    /// Deletes a secret, if it is `as_expected`.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown name.
    /// - [`CatalogError::Changed`] if the secret is not as expected.
    /// - [`CatalogError::Conflict`] while a template names it, with the template and the endpoints that use it.
    pub async fn delete_secret(
        &self,
        name: &SecretName,
        as_expected: impl FnOnce(&Secret) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _lock = self.lock().await;
        let secret = self.secret(name).ok_or(CatalogError::NotFound)?;
        if !as_expected(&secret) {
            return Err(CatalogError::Changed);
        }
        if let Some(template) = self.templates_naming(name).first() {
            let users = self.endpoints_using(&template.id);
            let users: Vec<String> = users.iter().map(|user| user.record().id.to_string()).collect();
            let of =
                if users.is_empty() { String::new() } else { format!(" of endpoint {}", users.join(", ")) };
            return Err(CatalogError::Conflict(format!(
                "secret {name} is in use by template {}{of}: delete or change that first",
                template.id
            )));
        }
        self.delete_json_row(KIND, name.as_str()).await
    }

    /// Checks that the secrets exist which a template names. Those of `before` are not checked again.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the name of a missing secret.
    pub(crate) fn check_secrets(
        &self,
        template: &Template,
        before: Option<&Template>,
    ) -> Result<(), CatalogError> {
        let is_new =
            |name: &&SecretName| before.is_none_or(|before| before.secrets().all(|named| named != *name));
        let state = self.state();
        let is_missing = |name: &&SecretName| state.json_rows.get(KIND, name.as_str()).is_none();
        match template.secrets().filter(is_new).find(is_missing) {
            None => Ok(()),
            Some(name) => {
                Err(CatalogError::Conflict(format!("secret {name} does not exist: create it first")))
            }
        }
    }
}
