//! The seam between `dev` and whoever can make a server.

use std::future::Future;
use std::net::TcpListener;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// What the methods of the host answer; the error is a sentence for people.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What `dev` wants of its server.
pub struct ServerRequest {
    /// Bound already, so that nobody can take the port in between.
    pub listener: TcpListener,
    /// Where the server keeps everything.
    pub data_dir: PathBuf,
    /// The key that may do everything.
    pub admin_key: String,
}

/// A worker's log.
pub struct WorkerLog {
    /// The worker's id.
    pub worker: String,
    /// The file that it writes; a file of the same name follows when it is rotated.
    pub path: PathBuf,
}

/// Makes servers inside this process.
pub trait ServerHost: Send + Sync {
    /// A new key's text.
    fn new_key(&self) -> Result<String, String>;

    /// Starts a server; returns when it answers.
    fn start(&self, request: ServerRequest) -> HostFuture<'_, Result<Arc<dyn RunningServer>, String>>;
}

/// A server inside this process.
pub trait RunningServer: Send + Sync {
    /// Where the workers that there are now, or were lately, write their logs.
    fn worker_logs(&self) -> Vec<WorkerLog>;

    /// Stops the server and every worker that it started.
    fn stop(&self) -> HostFuture<'_, ()>;
}
