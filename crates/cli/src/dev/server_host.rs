//! The interface by which `dev` starts a server. The server's crate implements it.

use std::future::Future;
use std::net::TcpListener;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// The future that a host's method returns. An error is text for the user.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parts of a server that `dev` chooses.
pub struct ServerRequest {
    /// The bound listener. Binding before the start keeps the port from other programs.
    pub listener: TcpListener,
    /// The server's data directory.
    pub data_dir: PathBuf,
    /// Text of the key with all permissions.
    pub admin_key: String,
    /// Whether changed files are run again, in place of one run.
    pub is_repeated: bool,
}

/// The log of one worker.
pub struct WorkerLog {
    /// The id of the worker that writes the log.
    pub worker: String,
    /// Path of the log file. Rotation replaces the file at this path.
    pub path: PathBuf,
}

/// Starts servers inside this process.
pub trait ServerHost: Send + Sync {
    /// Returns the text of a new key.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers, as text for the user.
    fn new_key(&self) -> Result<String, String>;

    /// Starts a server. The future completes when the server accepts requests.
    fn start(&self, request: ServerRequest) -> HostFuture<'_, Result<Arc<dyn RunningServer>, String>>;
}

/// A server inside this process.
pub trait RunningServer: Send + Sync {
    /// Returns the logs of current workers and of those that ended recently.
    fn worker_logs(&self) -> Vec<WorkerLog>;

    /// Stops the server and every worker that it started.
    fn stop(&self) -> HostFuture<'_, ()>;
}
