//! Webhooks: whom they may reach, and the secrets with which an endpoint's are signed.

use http::Uri;
use longshore_model::{EndpointId, JsonRowKind, Millis};

use super::Engine;
use super::json_rows::StoredJson;
use crate::webhooks::signing::Secrets;
use crate::{CatalogError, WebhookSecret};

/// A secret that was just made. This is the only time that its text can be had.
pub struct NewWebhookSecret {
    /// What receivers need to check signatures.
    pub text: String,
    /// When it was made.
    pub created_at: Millis,
    /// Those that are good now, this one first.
    pub secrets: Vec<WebhookSecret>,
}

impl Engine {
    /// The secrets that are good now, newest first. Their texts stay here.
    pub fn webhook_secrets(&self, id_or_slug: &str) -> Result<Vec<WebhookSecret>, CatalogError> {
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        Ok(handle.shared.secrets().shown(self.now()))
    }

    /// Makes a new secret for an endpoint. Calls are signed with those before, too, for `overlap_ms` more.
    pub async fn rotate_webhook_secret(
        &self,
        id_or_slug: &str,
        overlap_ms: u64,
    ) -> Result<NewWebhookSecret, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        let (now, bits) = (self.now(), [self.entropy(), self.entropy()]);
        let mut secrets = Secrets::clone(&handle.shared.secrets());
        let text = secrets.rotate(bits, now, overlap_ms);
        let record = StoredJson { id: handle.record().id.to_string(), json: secrets.to_json() };
        self.keep_records(JsonRowKind::WebhookSecrets, vec![record]).await?;
        let shown = secrets.shown(now);
        handle.shared.set_secrets(secrets);
        Ok(NewWebhookSecret { text, created_at: now, secrets: shown })
    }

    /// Whether webhooks at this address may be called, as far as that is known before its name is looked up.
    pub fn may_call_webhook(&self, target: &Uri) -> bool {
        self.inner.services.webhooks.may_call(target)
    }

    /// Removes an endpoint's secrets: its webhooks are not signed any more.
    pub async fn remove_webhook_secrets(&self, id_or_slug: &str) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        self.forget_records(JsonRowKind::WebhookSecrets, vec![handle.record().id.to_string()]).await?;
        handle.shared.set_secrets(Secrets::default());
        Ok(())
    }

    /// The secrets that are kept for an endpoint.
    pub(super) fn kept_secrets(&self, endpoint: &EndpointId) -> Secrets {
        let Some(record) = self.record(JsonRowKind::WebhookSecrets, endpoint.as_str()) else {
            return Secrets::default();
        };
        Secrets::from_json(&record.json).unwrap_or_else(|error| {
            tracing::error!(%endpoint, %error, "the secrets of its webhooks are damaged: they are not signed");
            Secrets::default()
        })
    }

    /// Removes what is kept about the webhooks of an endpoint that is deleted.
    pub(super) async fn forget_webhooks(&self, endpoint: &EndpointId) {
        self.inner.services.webhook_log.forget(*endpoint);
        if self.record(JsonRowKind::WebhookSecrets, endpoint.as_str()).is_none() {
            return;
        }
        let _door = self.inner.catalog_lock.lock().await;
        let id = endpoint.to_string();
        if let Err(error) = self.forget_records(JsonRowKind::WebhookSecrets, vec![id]).await {
            tracing::warn!(%endpoint, %error, "a deleted endpoint's webhook secrets are left over");
        }
    }
}
