//! The server that `longshore dev` runs in its own process.

use std::sync::Arc;
use std::time::Duration;

use longshore_cli::dev::{HostFuture, RunningServer, ServerHost, ServerRequest, WorkerLog};
use longshore_engine::Engine;
use longshore_launch::Launchers;
use longshore_model::StopReason;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::service::{Listeners, Service};
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{bootstrap_key, logging};

/// Log level: `dev` prints its own messages, so the log has only errors.
const LOG_LEVEL: &str = "error";
const LOG_LEVEL_VARIABLE: &str = "LONGSHORE_LOG_LEVEL";
/// How long a worker may run after SIGTERM.
const WORKER_GRACE: Duration = Duration::from_secs(2);

/// Starts servers for `dev`.
pub(crate) struct DevHost;

struct DevServer {
    launchers: Launchers,
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
    let settings = Settings::for_dev(request.data_dir, &level, request.is_repeated)?;
    logging::start(&settings)?;
    let cannot = |cause| StartupError::Listen { address: "the chosen port".to_owned(), cause };
    request.listener.set_nonblocking(true).map_err(cannot)?;
    let listener = TcpListener::from_std(request.listener).map_err(cannot)?;
    let admit = async |engine: &Engine| bootstrap_key::put(engine, &request.admin_key).await;
    let (service, ()) = Service::start(&settings, Listeners::one(listener), admit).await?;
    Ok(DevServer { launchers: service.launchers().clone(), service: Mutex::new(Some(service)) })
}

impl RunningServer for DevServer {
    fn worker_logs(&self) -> Vec<WorkerLog> {
        let logs = self.launchers.values().flat_map(|launcher| launcher.worker_logs());
        logs.map(|log| WorkerLog { worker: log.worker.to_string(), path: log.path }).collect()
    }

    fn stop(&self) -> HostFuture<'_, ()> {
        Box::pin(async move {
            let Some(service) = self.service.lock().await.take() else { return };
            // First, so that no others are started in their place.
            service.stop().await;
            stop_workers(&self.launchers).await;
        })
    }
}

/// Ends every worker that has a log and runs.
async fn stop_workers(launchers: &Launchers) {
    let mut stopping = JoinSet::new();
    for launcher in launchers.values() {
        for log in launcher.worker_logs().into_iter().filter(|log| log.is_live) {
            let launcher = Arc::clone(launcher);
            stopping.spawn(async move {
                if let Err(error) = launcher.stop(&log.worker, WORKER_GRACE, &StopReason::DevEnded).await {
                    tracing::warn!(worker = %log.worker, %error, "a worker could not be stopped");
                }
            });
        }
    }
    while stopping.join_next().await.is_some() {}
}
