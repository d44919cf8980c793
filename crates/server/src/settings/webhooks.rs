//! The settings of webhooks.

use std::path::Path;
use std::time::Duration;

use longshore_engine::{BreakerSettings, WebhookRetries, WebhookSettings};
use serde::Deserialize;

use super::{Settings, SettingsError};

/// Longest of all webhook times, in ms: 30 days.
const WEBHOOK_WAIT_MS_MAX: u64 = 2_592_000_000;
/// Smallest limit of a call's body: an empty record with its URLs.
const WEBHOOK_BODY_BYTES_MIN: u64 = 4_096;
/// Smallest webhook log of an endpoint: a few attempts with responses.
const WEBHOOK_LOG_BYTES_MIN: u64 = 16_384;

/// Whether webhook calls go through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WebhookProxy {
    Off,
    Environment,
}

impl Settings {
    /// Returns the settings of webhook delivery.
    pub(crate) fn webhooks(&self) -> WebhookSettings {
        WebhookSettings {
            allow_private: self.allow_private_webhooks,
            proxy_from_environment: self.webhook_proxy == WebhookProxy::Environment,
            retries: WebhookRetries {
                attempts_max: self.webhook_attempts_max,
                delay: Duration::from_millis(self.webhook_retry_delay_ms),
                factor: self.webhook_retry_factor,
                delay_max: Duration::from_millis(self.webhook_retry_delay_max_ms),
                jitter_percent: self.webhook_retry_jitter_percent,
            },
            breaker: BreakerSettings {
                failures_max: self.webhook_breaker_failures,
                pause: Duration::from_millis(self.webhook_breaker_pause_ms),
                pause_max: Duration::from_millis(self.webhook_breaker_pause_max_ms),
                patience: Duration::from_millis(self.webhook_patience_ms),
            },
            timeout: Duration::from_millis(self.webhook_timeout_ms),
            connect_timeout: Duration::from_millis(self.webhook_connect_timeout_ms),
            body_bytes_max: self.webhook_body_bytes_max,
            public_url: self.public_url.clone(),
            progress_pause: Duration::from_millis(self.webhook_progress_pause_ms),
            calls_max: self.webhook_calls_max,
            calls_per_host_max: self.webhook_calls_per_host_max,
            bytes_max: self.webhook_bytes_max,
        }
    }

    /// The file with certificate authorities for receivers that the operator named.
    pub(crate) fn webhook_ca_file(&self) -> Option<&Path> {
        Some(self.webhook_ca_file.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Most bytes of the webhook log of one endpoint.
    pub(crate) fn webhook_log_bytes_max(&self) -> u64 {
        self.webhook_log_bytes_max
    }

    /// Rejects values that fit their type but are out of range.
    pub(super) fn check_webhooks(&self) -> Result<(), SettingsError> {
        let within = |name: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            let text = format!("`{name}` is {value}; it must be from {least} to {most}");
            Err(SettingsError::Value(text))
        };
        let wait_max = WEBHOOK_WAIT_MS_MAX;
        for (name, value, least, most) in [
            ("webhook_attempts_max", u64::from(self.webhook_attempts_max), 1, u64::from(u32::MAX)),
            ("webhook_retry_factor", u64::from(self.webhook_retry_factor), 1, u64::from(u32::MAX)),
            ("webhook_retry_delay_ms", self.webhook_retry_delay_ms, 0, wait_max),
            ("webhook_retry_delay_max_ms", self.webhook_retry_delay_max_ms, 0, wait_max),
            ("webhook_retry_jitter_percent", u64::from(self.webhook_retry_jitter_percent), 0, 100),
            ("webhook_breaker_pause_ms", self.webhook_breaker_pause_ms, 1, wait_max),
            ("webhook_breaker_pause_max_ms", self.webhook_breaker_pause_max_ms, 1, wait_max),
            ("webhook_patience_ms", self.webhook_patience_ms, 0, wait_max),
            ("webhook_calls_max", self.webhook_calls_max as u64, 1, u64::MAX),
            ("webhook_calls_per_host_max", self.webhook_calls_per_host_max as u64, 1, u64::MAX),
            ("webhook_body_bytes_max", self.webhook_body_bytes_max as u64, WEBHOOK_BODY_BYTES_MIN, u64::MAX),
            ("webhook_log_bytes_max", self.webhook_log_bytes_max, WEBHOOK_LOG_BYTES_MIN, u64::MAX),
        ] {
            within(name, value, least, most)?;
        }
        Ok(())
    }
}
