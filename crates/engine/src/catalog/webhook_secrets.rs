//! The secrets that sign the webhook calls of an endpoint.

use longshore_model::{EndpointId, JsonRowKind, Millis};

use super::Catalog;
use super::json_rows::StoredJson;
use crate::webhooks::log::WebhookLog as _;
use crate::webhooks::signing::Secrets;
use crate::{CatalogError, WebhookSecret};

const KIND: JsonRowKind = JsonRowKind::WebhookSecrets;

/// A new secret of an endpoint. No later call returns its text again.
pub struct NewWebhookSecret {
    /// The text with which receivers check signatures: `whsec_` and Base64.
    pub text: String,
    /// When the secret was made.
    pub created_at: Millis,
    /// All secrets that sign calls now, the new one first.
    pub secrets: Vec<WebhookSecret>,
}

impl Catalog {
    /// The secrets that sign the endpoint's calls now, newest first, without their texts.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NotFound`] for an unknown endpoint.
    pub fn webhook_secrets(&self, id_or_slug: &str) -> Result<Vec<WebhookSecret>, CatalogError> {
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        Ok(handle.shared().secrets().shown(self.now()))
    }

    /// Makes a new secret for an endpoint. The earlier secrets sign calls too, for `overlap_ms` more. At most three
    /// secrets exist, so the oldest may end earlier.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NotFound`] for an unknown endpoint.
    pub async fn rotate_webhook_secret(
        &self,
        id_or_slug: &str,
        overlap_ms: u64,
    ) -> Result<NewWebhookSecret, CatalogError> {
        let _lock = self.lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        let (now, runtime) = (self.now(), &self.services.runtime);
        let mut secrets = Secrets::clone(&handle.shared().secrets());
        let text = secrets.rotate([runtime.entropy(), runtime.entropy()], now, overlap_ms);
        let row = StoredJson { id: handle.id().to_string(), json: secrets.to_json() };
        self.put_json_row(KIND, row).await?;
        let shown = secrets.shown(now);
        handle.shared().set_secrets(secrets);
        Ok(NewWebhookSecret { text, created_at: now, secrets: shown })
    }

    /// Removes an endpoint's secrets. Its later calls have no signature.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NotFound`] for an unknown endpoint.
    pub async fn remove_webhook_secrets(&self, id_or_slug: &str) -> Result<(), CatalogError> {
        let _lock = self.lock().await;
        let handle = self.endpoint(id_or_slug).ok_or(CatalogError::NotFound)?;
        self.delete_json_row(KIND, handle.id().as_str()).await?;
        handle.shared().set_secrets(Secrets::default());
        Ok(())
    }

    /// The stored secrets of an endpoint; none if their row is missing or corrupt.
    pub(crate) fn stored_secrets(&self, endpoint: &EndpointId) -> Secrets {
        let Some(row) = self.json_row(KIND, endpoint.as_str()) else { return Secrets::default() };
        Secrets::from_json(&row.json).unwrap_or_else(|error| {
            tracing::error!(%endpoint, %error, "corrupt webhook secrets: calls are not signed");
            Secrets::default()
        })
    }

    /// Removes the webhook log and the secrets of a deleted endpoint.
    pub(crate) async fn forget_webhooks(&self, endpoint: &EndpointId) {
        self.services.webhook_log.forget(*endpoint);
        if self.json_row(KIND, endpoint.as_str()).is_none() {
            return;
        }
        let _lock = self.lock().await;
        if let Err(error) = self.delete_json_row(KIND, endpoint.as_str()).await {
            tracing::warn!(%endpoint, %error, "webhook secrets of a deleted endpoint remain");
        }
    }
}
