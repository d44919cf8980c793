//! Errors that keep the server from starting. Each is one line that says what is wrong and what to do.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use longshore_http::TlsError;
use longshore_launch::CgroupError;
use longshore_store::StoreError;
use longshore_trust::TrustError;

use crate::backup::BackupError;
use crate::settings::SettingsError;

/// Why the server or a command did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartupError {
    #[error("{0}")]
    Settings(#[from] SettingsError),
    #[error("`{address}` is not an address to listen on; it must look like 127.0.0.1:8080 or 0.0.0.0:8080")]
    Address { address: String },
    #[error("{address} is in use by another program; stop that one, or choose another port with --listen")]
    InUse { address: String },
    #[error("cannot listen on {address}: {cause}")]
    Listen { address: String, cause: io::Error },
    #[error("cannot write the port to {}: {cause}", path.display())]
    PortFile { path: PathBuf, cause: io::Error },
    #[error("cannot write the audit log in {}: {cause}", path.display())]
    Audit { path: PathBuf, cause: io::Error },
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    #[error(
        "`worker_cgroup` cannot be used: {0}; name a cgroup v2 folder that the server's user may write, or none"
    )]
    WorkerCgroup(CgroupError),
    #[error("{origin} cannot be used for secrets: {cause}")]
    SecretsKey { origin: String, cause: String },
    #[error("cannot write a key to {}: {cause}", path.display())]
    NewSecretsKey { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Backup(#[from] BackupError),
    #[error("cannot open the payloads in {}: {cause}", path.display())]
    Blobs { path: PathBuf, cause: String },
    #[error("{0}")]
    Objects(String),
    #[error("cannot check the certificate of the object storage: {0}")]
    ObjectAuthorities(TrustError),
    #[error("cannot open the webhook log in {}: {cause}", path.display())]
    WebhookLog { path: PathBuf, cause: io::Error },
    #[error("cannot check the certificates of webhook receivers: {0}")]
    WebhookAuthorities(TrustError),
    #[error("cannot check the certificate of the database: {0}")]
    DatabaseAuthorities(TrustError),
    #[error("cannot check the certificates of other nodes: {0}")]
    PeerAuthorities(TrustError),
    #[error("{0}")]
    NotWithDatabase(&'static str),
    #[error("{0}")]
    Cluster(String),
    #[error("{0}")]
    Copy(String),
    #[error("cannot start: {0}")]
    Engine(String),
    #[error("cannot create a key: no random numbers from the system")]
    NoRandom,
    #[error("LONGSHORE_ADMIN_KEY is too short: a key with all permissions needs at least 16 characters")]
    WeakKey,
    #[error("cannot store the key: {0}")]
    Key(String),
    #[error("cannot remove the secrets from the environment: {0}")]
    Confidential(io::Error),
    #[error("cannot start the program's threads: {0}")]
    Runtime(io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
}

impl StartupError {
    /// Prints the error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let text = self.to_string();
        let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        // If standard error is closed, the exit code still shows the failure.
        let _ = writeln!(io::stderr(), "longshore: {line}");
        ExitCode::FAILURE
    }
}
