//! The audit log, and the log of webhook deliveries: files of the data directory, or lines in the database, which every node
//! finds.

mod audit_lines;
mod delivery_lines;

use std::sync::Arc;

use longshore_engine::{WebhookLog, open_webhook_log};
use longshore_http::AuditLog;
use longshore_postgres::LogTable;
use longshore_store::StoreError;
use tokio::runtime::Handle;

use self::audit_lines::AuditLines;
use crate::parts::{blocking, with_authorities};
use crate::settings::Settings;
use crate::startup_error::StartupError;

/// The name of the audit log's lines in the database.
pub(crate) const AUDIT: &str = "audit";

/// What the name of each log of deliveries begins with; the endpoint's id follows.
pub(crate) const DELIVERIES: &str = "webhooks/";

/// The open logs of a server.
pub(crate) struct Logs {
    pub(crate) audit: AuditLog,
    pub(crate) deliveries: Arc<dyn WebhookLog>,
    /// The table that they are in; `None`: they are files.
    pub(crate) table: Option<Arc<LogTable>>,
}

impl Logs {
    /// Opens the logs. The data directory must be locked.
    ///
    /// # Errors
    ///
    /// A directory, a file or the database cannot be opened or read.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, StartupError> {
        match settings.database()? {
            None => Self::in_files(settings),
            Some(database) => {
                Self::in_table(settings, LogTable::of(with_authorities(settings, database)?)).await
            }
        }
    }

    fn in_files(settings: &Settings) -> Result<Self, StartupError> {
        let audit_dir = settings.data_dir.join("audit");
        let audit = AuditLog::open(&audit_dir, settings.audit_file_bytes_max, settings.audit_files_max)
            .map_err(|cause| StartupError::Audit { path: audit_dir, cause })?;
        let deliveries_dir = settings.data_dir.join("webhooks");
        let deliveries = open_webhook_log(&deliveries_dir, settings.webhook_log_bytes_max())
            .map_err(|cause| StartupError::WebhookLog { path: deliveries_dir, cause })?;
        Ok(Self { audit, deliveries: Arc::new(deliveries), table: None })
    }

    async fn in_table(settings: &Settings, table: LogTable) -> Result<Self, StartupError> {
        let table = Arc::new(table);
        let bytes_max = settings.audit_file_bytes_max.saturating_mul(settings.audit_files_max as u64);
        let lines = Arc::new(AuditLines::new(Arc::clone(&table), Handle::current(), bytes_max));
        let audit =
            blocking(move || AuditLog::over(lines).map_err(|error| StoreError::Io(error.to_string())))
                .await?;
        let deliveries = delivery_lines::open(Arc::clone(&table), settings.webhook_log_bytes_max());
        Ok(Self { audit, deliveries: Arc::new(deliveries), table: Some(table) })
    }
}
