//! Settings: the operator's choices as data. [`crate::parts`] creates the working parts from them.

mod cluster;
mod console;
mod docker;
mod error;
mod gpus;
#[cfg(test)]
mod hostile;
mod layers;
mod limits;
mod objects;
mod store;
mod traces;
mod webhooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longshore_cli::ServeArgs;
use longshore_engine::{Capacity, EngineSettings, WorkerSettings};
use longshore_http::{HttpSettings, Origins, ServerFacts};
use longshore_launch::GpuReading;
use longshore_model::limits::{TAKE_HOLD_MS_MAX, WORKER_BODY_BYTES_MAX};
use longshore_model::{Gpu, StreamShape};
use serde::Deserialize;

use console::Switch;
use docker::DockerTable;
pub(crate) use error::SettingsError;
use gpus::{GpuSettings, GpuSharing};
use layers::Layers;
use limits::LimitSettings;
use webhooks::WebhookProxy;

use crate::machine;
use crate::scrub::Pace;

/// The reference: every setting with its default and explanation.
pub(crate) const DEFAULTS: &str = include_str!("defaults.toml");

/// The worker SDK counts in whole seconds, and stops pinging below 1 s.
const PING_INTERVAL_MS_MIN: u64 = 1_000;
/// A worker is lost after three intervals, which must fit a number.
const PING_INTERVAL_MS_MAX: u64 = 3_600_000;
/// The largest request must fit.
const BYTES_IN_FLIGHT_MIN: u64 = WORKER_BODY_BYTES_MAX as u64 + 16_000_000;

/// One year; longer times do not fit a clock.
const SCRUB_INTERVAL_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// Allows every web page.
const EVERY_ORIGIN: &str = "*";

/// Environment variable that names the settings file.
const CONFIG_VARIABLE: &str = "LONGSHORE_CONFIG";

/// All settings. `defaults.toml` explains each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    pub(crate) management_listen: String,
    tls_cert: PathBuf,
    tls_key: PathBuf,
    cors_origins: String,
    console: Switch,
    console_base: String,
    trusted_proxies: String,
    currency: String,
    session_idle_ms: u64,
    session_max_ms: u64,
    pub(crate) data_dir: PathBuf,
    store: String,
    store_password_file: PathBuf,
    store_ca_file: PathBuf,
    blobs: String,
    blobs_credentials_file: PathBuf,
    blobs_ca_file: PathBuf,
    pub(crate) cluster_listen: String,
    cluster_address: String,
    cluster_tls_cert: PathBuf,
    cluster_tls_key: PathBuf,
    cluster_ca_file: PathBuf,
    node_name: String,
    shutdown_grace_ms: u64,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: String,
    ping_interval_ms: u64,
    stop_grace_ms: u64,
    kill_grace_ms: u64,
    orphan_ms: u64,
    worker_runtime: Switch,
    pub(crate) zygotes_max: usize,
    worker_cgroup: PathBuf,
    worker_hold_ms: u64,
    server_url: String,
    lb_domain: String,
    stream_shape: StreamShape,
    jobs_max: u64,
    output_bytes_max: u64,
    sync_output_bytes_max: u64,
    stream_bytes_max: u64,
    blob_bytes_min: usize,
    recent_bytes_max: usize,
    bytes_in_flight_max: usize,
    key_use_interval_ms: u64,
    pub(crate) secrets_key_file: PathBuf,
    pub(crate) audit_file_bytes_max: u64,
    pub(crate) audit_files_max: usize,
    allow_private_webhooks: bool,
    metrics_public: bool,
    webhook_attempts_max: u32,
    webhook_retry_delay_ms: u64,
    webhook_retry_factor: u32,
    webhook_retry_delay_max_ms: u64,
    webhook_retry_jitter_percent: u32,
    webhook_timeout_ms: u64,
    webhook_connect_timeout_ms: u64,
    webhook_calls_max: usize,
    webhook_calls_per_host_max: usize,
    webhook_bytes_max: usize,
    workers_max_total: u32,
    workers_memory_bytes_max: u64,
    workers_vcpus_max: u32,
    gpu_sharing: GpuSharing,
    gpu_interval_ms: u64,
    gpus: Vec<GpuSettings>,
    prices: BTreeMap<String, f64>,
    webhook_body_bytes_max: usize,
    webhook_breaker_failures: u32,
    webhook_breaker_pause_ms: u64,
    webhook_breaker_pause_max_ms: u64,
    webhook_patience_ms: u64,
    webhook_progress_pause_ms: u64,
    webhook_log_bytes_max: u64,
    history_bytes_max: u64,
    webhook_proxy: WebhookProxy,
    webhook_ca_file: PathBuf,
    scrub_bytes_per_second: u64,
    scrub_interval_ms: u64,
    public_url: String,
    otlp_endpoint: String,
    otlp_headers_file: PathBuf,
    otlp_sample: f64,
    otlp_queue_spans: u64,
    trace_link: String,
    rate_limits: LimitSettings,
    docker: DockerTable,
    /// The settings whose value is not the default, by name. Not read from a layer: it follows from them.
    #[serde(skip)]
    changed: BTreeMap<String, serde_json::Value>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}

impl Settings {
    /// Reads defaults, then the file, then `environment`, then the command line; later ones win.
    pub(crate) fn load(
        args: &ServeArgs,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        let named = environment.iter().find(|(name, path)| name == CONFIG_VARIABLE && !path.is_empty());
        let mut layers = Layers::defaults()?;
        if let Some(path) = args.config.clone().or_else(|| named.map(|(_, path)| path.into())) {
            layers.add_file(&path)?;
        }
        layers.add_environment(environment)?;
        layers.add_flags(args)?;
        layers.finish()
    }

    /// Settings of `dev`: the defaults, without rate limits, with webhooks to any address.
    ///
    /// `is_repeated`: files are saved and run again, so that a zygote saves the later imports.
    pub(crate) fn for_dev(
        data_dir: PathBuf,
        log_level: &str,
        is_repeated: bool,
    ) -> Result<Self, SettingsError> {
        let mut settings = Layers::defaults()?.finish()?;
        settings.data_dir = data_dir;
        log_level.clone_into(&mut settings.log_level);
        settings.rate_limits.switch_off();
        settings.allow_private_webhooks = true;
        settings.shutdown_grace_ms = 1_000;
        // `dev` listens on the loopback address only, so metrics need no key.
        settings.metrics_public = true;
        // With sharing, a second worker of a tried handler would get no GPU.
        settings.gpu_sharing = GpuSharing::Off;
        settings.zygotes_max = usize::from(is_repeated);
        Ok(settings)
    }

    /// How long requests may run after the server starts to stop.
    pub(crate) fn shutdown_grace(&self) -> Duration {
        Duration::from_millis(self.shutdown_grace_ms)
    }

    /// The most bytes of the minutes of the history.
    pub(crate) fn history_bytes_max(&self) -> u64 {
        self.history_bytes_max
    }

    /// Rate and interval of reading stored files in the background.
    pub(crate) fn scrub_pace(&self) -> Pace {
        let interval = Duration::from_millis(self.scrub_interval_ms);
        Pace { bytes_per_second: self.scrub_bytes_per_second, interval }
    }

    /// Interval of writing which keys were used.
    pub(crate) fn key_use_interval(&self) -> Duration {
        Duration::from_millis(self.key_use_interval_ms)
    }

    /// How long workers run without a server; `None` for no limit.
    pub(crate) fn orphans_ended_after(&self) -> Option<Duration> {
        (self.orphan_ms > 0).then(|| Duration::from_millis(self.orphan_ms))
    }

    /// Whether workers get the worker runtime.
    pub(crate) fn is_worker_runtime_on(&self) -> bool {
        self.worker_runtime == Switch::On
    }

    /// The cgroup for workers that the operator named.
    pub(crate) fn worker_cgroup(&self) -> Option<&Path> {
        Some(self.worker_cgroup.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// The server's URL for workers, if it differs from the listening address.
    pub(crate) fn server_url(&self) -> Option<String> {
        let url = self.server_url.trim_end_matches('/');
        (!url.is_empty()).then(|| url.to_owned())
    }

    /// The files of the TLS certificate and its key, if TLS is enabled.
    pub(crate) fn tls_files(&self) -> Option<(&Path, &Path)> {
        let is_set = !self.tls_cert.as_os_str().is_empty();
        is_set.then_some((&self.tls_cert, &self.tls_key))
    }

    /// The web pages that may call the API.
    pub(crate) fn origins(&self) -> Option<Origins> {
        let origins: Vec<String> = self.origins_text().map(str::to_owned).collect();
        match origins.as_slice() {
            [] => None,
            [every] if every == EVERY_ORIGIN => Some(Origins::Any),
            _ => Some(Origins::These(origins)),
        }
    }

    fn origins_text(&self) -> impl Iterator<Item = &str> {
        self.cors_origins
            .split([',', ' '])
            .map(|origin| origin.trim_end_matches('/'))
            .filter(|text| !text.is_empty())
    }

    fn check_addresses(&self) -> Result<(), SettingsError> {
        if self.tls_cert.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            let text = "`tls_cert` and `tls_key` go together: set both, or neither";
            return Err(SettingsError::Value(text.to_owned()));
        }
        let is_origin = |origin: &str| {
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', '#', '@']))
        };
        let count = self.origins_text().count();
        match self.origins_text().find(|origin| !(is_origin(origin) || *origin == EVERY_ORIGIN && count == 1))
        {
            None => Ok(()),
            Some(origin) => Err(SettingsError::Value(format!(
                "`cors_origins` has {origin:?}; name origins such as https://app.example, with commas between them, or * \
                 alone for every page"
            ))),
        }
    }

    /// Budget of request bodies in bytes: half of the bytes in flight, and at least the largest body.
    fn body_bytes_max(&self) -> usize {
        (self.bytes_in_flight_max / 2).max(WORKER_BODY_BYTES_MAX)
    }

    /// Budget in bytes of payloads that are read for clients; workers have another one of the same size.
    fn payload_bytes_max(&self) -> usize {
        (self.bytes_in_flight_max - self.body_bytes_max()) / 2
    }

    /// Returns the engine's settings.
    pub(crate) fn engine(&self) -> EngineSettings {
        EngineSettings {
            ping_interval_ms: self.ping_interval_ms,
            stop_grace_ms: self.stop_grace_ms,
            jobs_max: self.jobs_max,
            output_bytes_max: self.output_bytes_max,
            sync_output_bytes_max: self.sync_output_bytes_max,
            stream_bytes_max: self.stream_bytes_max,
            blob_bytes_min: self.blob_bytes_min(),
            recent_bytes_max: self.recent_bytes_max,
            answer_bytes_max: self.payload_bytes_max(),
            input_bytes_max: self.payload_bytes_max(),
            // Clients may use three quarters of it, which are as many bytes as their bodies may have.
            request_bytes_max: self.body_bytes_max() / 3 * 4,
        }
    }

    /// The GPUs to share among workers: those in the settings, or else the detected ones.
    pub(crate) async fn gpus(
        &self,
        found: impl Future<Output = Result<Vec<GpuReading>, String>>,
    ) -> Result<Vec<Gpu>, SettingsError> {
        match self.gpu_sharing {
            GpuSharing::Off => Ok(Vec::new()),
            GpuSharing::On if !self.gpus.is_empty() => gpus::inventory(&self.gpus),
            GpuSharing::On => {
                let found = found.await.unwrap_or_else(|reason| {
                    tracing::warn!(%reason, "GPU sharing disabled; name the GPUs under [[gpus]]");
                    Vec::new()
                });
                Ok(found.into_iter().map(|reading| reading.gpu).collect())
            }
        }
    }

    /// How often the driver is asked how its GPUs are; `None`: never, as with GPUs that the settings name.
    pub(crate) fn gpu_interval(&self) -> Option<Duration> {
        let are_detected = self.gpu_sharing == GpuSharing::On && self.gpus.is_empty();
        (are_detected && self.gpu_interval_ms > 0).then(|| Duration::from_millis(self.gpu_interval_ms))
    }

    /// Returns the settings of worker supervisors. Workers connect to `base_url`.
    pub(crate) fn workers(&self, base_url: String, gpus: Vec<Gpu>) -> WorkerSettings {
        WorkerSettings {
            base_url,
            ping_interval_ms: self.ping_interval_ms,
            stop_grace_ms: self.stop_grace_ms,
            kill_grace_ms: self.kill_grace_ms,
            gpus,
            capacity: self.capacity(),
            machine: self.node_name(),
            orphan_ms: Some(self.orphan_ms).filter(|ms| *ms > 0),
        }
    }

    /// What all workers may have together: what the settings name, or else what this computer has.
    fn capacity(&self) -> Capacity {
        let machine = machine::capacity();
        Capacity {
            memory_bytes: Some(self.workers_memory_bytes_max).filter(|max| *max > 0).or(machine.memory_bytes),
            vcpus: Some(f64::from(self.workers_vcpus_max)).filter(|max| *max > 0.0).or(machine.vcpus),
            workers_max: Some(self.workers_max_total).filter(|max| *max > 0),
        }
    }

    /// Rejects values that fit their type but are out of range.
    fn check(&self) -> Result<(), SettingsError> {
        let at_least = |name: &str, value: u64, least: u64| {
            if value >= least {
                return Ok(());
            }
            Err(SettingsError::Value(format!("`{name}` is {value}; it must be at least {least}")))
        };
        let at_most = |name: &str, value: u64, most: u64| {
            if value <= most {
                return Ok(());
            }
            Err(SettingsError::Value(format!("`{name}` is {value}; it must be at most {most}")))
        };
        gpus::inventory(&self.gpus)?;
        gpus::check_prices(&self.prices)?;
        at_least("ping_interval_ms", self.ping_interval_ms, PING_INTERVAL_MS_MIN)?;
        at_most("ping_interval_ms", self.ping_interval_ms, PING_INTERVAL_MS_MAX)?;
        at_least("jobs_max", self.jobs_max, 1)?;
        at_least("scrub_interval_ms", self.scrub_interval_ms, 1_000)?;
        at_most("scrub_interval_ms", self.scrub_interval_ms, SCRUB_INTERVAL_MS_MAX)?;
        at_least("key_use_interval_ms", self.key_use_interval_ms, 1)?;
        self.check_webhooks()?;
        self.check_console()?;
        self.check_docker()?;
        self.check_store()?;
        self.check_blobs()?;
        self.check_cluster()?;
        self.check_traces()?;
        at_least("bytes_in_flight_max", self.bytes_in_flight_max as u64, BYTES_IN_FLIGHT_MIN)?;
        self.check_addresses()?;
        at_least("audit_files_max", self.audit_files_max as u64, 1)?;
        at_most("worker_hold_ms", self.worker_hold_ms, TAKE_HOLD_MS_MAX)?;
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !self.lb_domain.is_empty() && !self.lb_domain.split('.').all(is_label) {
            let text =
                format!("`lb_domain` is {:?}; it must be a domain such as apps.example.org", self.lb_domain);
            return Err(SettingsError::Value(text));
        }
        for (name, url) in [("server_url", &self.server_url), ("public_url", &self.public_url)] {
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                let text = format!("`{name}` is {url:?}; it must start with http:// or https://");
                return Err(SettingsError::Value(text));
            }
        }
        Ok(())
    }

    /// Returns the HTTP edge's settings.
    pub(crate) fn http(&self) -> HttpSettings {
        let rate_limits = self.rate_limits.limits();
        HttpSettings {
            rate_limits,
            bytes_in_flight_max: self.body_bytes_max(),
            worker_hold_ms: self.worker_hold_ms,
            workers_url: None,
            lb_domain: Some(self.lb_domain.to_ascii_lowercase()).filter(|domain| !domain.is_empty()),
            audit: None,
            prices: self.prices.clone().into(),
            stream_shape: self.stream_shape,
            metrics_public: self.metrics_public,
            scrub: None,
            flush_us: None,
            history: None,
            console: self.console(),
            facts: ServerFacts {
                changed_settings: self.changed.clone(),
                trace_link: self.trace_link().to_owned(),
                ..ServerFacts::default()
            },
            node: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings of a server with these variables; each name is without its `LONGSHORE_`.
    pub(super) fn load(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let pairs = pairs.iter().map(|(name, value)| (format!("LONGSHORE_{name}"), (*value).to_owned()));
        Settings::load(&ServeArgs::default(), pairs)
    }

    #[test]
    fn the_reference_gives_every_setting_a_value() {
        let settings = Settings::load(&ServeArgs::default(), []).unwrap();
        assert_eq!(settings.listen, "127.0.0.1:8080");
        assert_eq!(settings.server_url(), None);
    }

    #[test]
    fn an_interval_that_no_worker_keeps_is_refused() {
        for (interval, fits) in
            [("999", false), ("1000", true), ("3600000", true), ("9223372036854775807", false)]
        {
            let environment = [("LONGSHORE_PING_INTERVAL_MS".to_owned(), interval.to_owned())];
            assert_eq!(Settings::load(&ServeArgs::default(), environment).is_ok(), fits, "{interval}");
        }
    }

    #[test]
    fn origins_are_checked_and_read() {
        let load = |text: &str| {
            Settings::load(&ServeArgs::default(), [("LONGSHORE_CORS_ORIGINS".to_owned(), text.to_owned())])
        };
        assert!(load("").unwrap().origins().is_none());
        assert!(matches!(load("*").unwrap().origins(), Some(Origins::Any)));
        let these = load("https://a.example/, http://localhost:3000").unwrap().origins();
        assert!(
            matches!(these, Some(Origins::These(these)) if these == ["https://a.example", "http://localhost:3000"])
        );
        for text in
            ["a.example", "https://a.example/page", "https://*.example", "*,https://a.example", "https://"]
        {
            assert!(load(text).unwrap_err().to_string().contains("`cors_origins` has"), "{text}");
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let environment = [("LONGSHORE_TLS_CERT".to_owned(), "cert.pem".to_owned())];
        let error = Settings::load(&ServeArgs::default(), environment).unwrap_err().to_string();
        assert!(error.contains("`tls_cert` and `tls_key` go together"), "{error}");
    }

    #[test]
    fn the_manual_shows_the_reference_as_it_is() {
        let manual = include_str!("../../../docs/manual/configuration.md");
        assert!(manual.contains(DEFAULTS), "copy defaults.toml into docs/manual/configuration.md");
    }
}
