//! The server that `longshore dev` runs inside its own process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longshore_cli::dev::{HostFuture, RunningServer, ServerHost, ServerRequest, WorkerLog};
use longshore_engine::Engine;
use longshore_launch::Launcher;
use longshore_model::WorkerId;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::service::{Listeners, Service};
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{bootstrap_key, logging, parts};

/// `dev` shows what happens itself; the log is for what goes wrong.
const LOG_LEVEL: &str = "error";
const LOG_LEVEL_VARIABLE: &str = "LONGSHORE_LOG_LEVEL";
/// A worker of a developer may take this long to end after SIGTERM.
const WORKER_GRACE: Duration = Duration::from_secs(2);

/// Makes servers for `dev`.
pub(crate) struct DevHost;

struct DevServer {
    data_dir: PathBuf,
    /// None once it was stopped.
    service: Mutex<Option<Service>>,
}

impl ServerHost for DevHost {
    fn new_key(&self) -> Result<String, String> {
        bootstrap_key::make().map_err(|fatal| fatal.to_string())
    }

    fn start(&self, request: ServerRequest) -> HostFuture<'_, Result<Arc<dyn RunningServer>, String>> {
        Box::pin(async move {
            let server = start(request).await.map_err(|fatal| fatal.to_string())?;
            Ok(Arc::new(server) as Arc<dyn RunningServer>)
        })
    }
}

async fn start(request: ServerRequest) -> Result<DevServer, StartupError> {
    let level = std::env::var(LOG_LEVEL_VARIABLE).unwrap_or_else(|_| LOG_LEVEL.to_owned());
    let settings = Settings::for_dev(request.data_dir, &level)?;
    logging::start(&settings)?;
    let cannot = |cause| StartupError::Listen { address: "the chosen port".to_owned(), cause };
    request.listener.set_nonblocking(true).map_err(cannot)?;
    let listener = TcpListener::from_std(request.listener).map_err(cannot)?;
    let admit = async |engine: &Engine| bootstrap_key::put(engine, &request.admin_key).await;
    let (service, ()) = Service::start(&settings, Listeners::one(listener), admit).await?;
    Ok(DevServer { data_dir: settings.data_dir, service: Mutex::new(Some(service)) })
}

impl RunningServer for DevServer {
    fn worker_logs(&self) -> Vec<WorkerLog> {
        let workers = parts::workers_dir(&self.data_dir);
        let living = folders(&workers.join("live"));
        let ended = folders(&workers.join("ended")).into_iter().flat_map(|endpoint| folders(&endpoint));
        living.into_iter().chain(ended).filter_map(|folder| log_in(&folder)).collect()
    }

    fn stop(&self) -> HostFuture<'_, ()> {
        Box::pin(async move {
            let Some(service) = self.service.lock().await.take() else { return };
            let launcher = service.launcher();
            // First, so that nobody starts others in their place.
            service.stop().await;
            stop_workers(&launcher, &self.data_dir).await;
        })
    }
}

/// Ends every worker that has a folder among the living.
async fn stop_workers(launcher: &Arc<dyn Launcher>, data_dir: &Path) {
    let living = folders(&parts::workers_dir(data_dir).join("live"));
    let names = living.iter().filter_map(|folder| folder.file_name()?.to_str());
    let mut stopping = JoinSet::new();
    for worker in names.filter_map(|name| name.parse::<WorkerId>().ok()) {
        let launcher = Arc::clone(launcher);
        stopping.spawn(async move {
            if let Err(error) = launcher.stop(&worker, WORKER_GRACE).await {
                tracing::warn!(%worker, %error, "a worker could not be stopped");
            }
        });
    }
    while stopping.join_next().await.is_some() {}
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn log_in(folder: &Path) -> Option<WorkerLog> {
    let worker = folder.file_name()?.to_string_lossy().into_owned();
    let path = folder.join("log");
    path.exists().then_some(WorkerLog { worker, path })
}
