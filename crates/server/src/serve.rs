//! `longshore serve`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use longshore_cli::{CheckStatus, DoctorArgs, ServeArgs, ServerPlan};
use longshore_postgres::FindingLevel;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::parts::{self, WorkerCgroup};
use crate::service::{self, Listeners, Service};
use crate::settings::{DEFAULTS, Settings};
use crate::startup_error::StartupError;
use crate::{bootstrap_key, listener, logging, node, objects, secrets};

/// The program exits within this time after the signal, even if a part does not stop.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(9);

/// Runs the server until a signal stops it.
pub(crate) async fn serve(args: &ServeArgs) -> Result<(), StartupError> {
    if args.print_defaults {
        // A closed pipe means that the reader has enough.
        let _ = io::stdout().write_all(DEFAULTS.as_bytes());
        return Ok(());
    }
    let settings = Settings::load(args, environment())?;
    logging::start(&settings)?;
    let mut stop = stop_signals().map_err(StartupError::Signals)?;
    let listener = listener::listen(&settings.listen).await?;
    let address = local_address(&listener, &settings.listen)?;
    let management = match settings.management_listen.as_str() {
        "" => None,
        address => Some(listener::listen(address).await?),
    };
    let operators = management.as_ref().map(|listener| local_address(listener, &settings.management_listen));
    let operators = operators.transpose()?;
    let listeners = Listeners { jobs: listener, management };
    if settings.is_node() {
        let announced = || begin(args, &settings, address, operators);
        return node::serve(&settings, listeners, announced, stop.requested()).await;
    }
    let (mut service, made_key) = Service::start(&settings, listeners, bootstrap_key::ensure).await?;
    if let Some(key) = made_key {
        announce_key(&key);
    }
    begin(args, &settings, address, operators)?;
    let lost = tokio::select! {
        () = stop.requested() => Ok(()),
        error = service.lost() => Err(StartupError::from(error)),
    };
    match &lost {
        Ok(()) => tracing::info!("stopping, workers continue"),
        Err(error) => {
            tracing::error!(%error, "stopping, because the rows of the database are no longer those of this server");
        }
    }
    if tokio::time::timeout(STOP_TIME_MAX, service.stop()).await.is_err() {
        tracing::warn!("stopped before all parts ended; acknowledged jobs are stored");
    }
    lost
}

/// Returns what a server with these arguments would use, or why it would not start.
pub(crate) async fn plan(args: &DoctorArgs) -> Result<ServerPlan, String> {
    let (listen, data_dir, config) = (args.listen.clone(), args.data_dir.clone(), args.config.clone());
    let args = ServeArgs { listen, data_dir, config, ..ServeArgs::default() };
    let settings = Settings::load(&args, environment()).map_err(|error| error.to_string())?;
    let vault = secrets::vault(&settings);
    let secrets_key = vault.map(|vault| vault.is_sealing()).map_err(|fatal| fatal.to_string());
    let worker_cgroup = match parts::worker_cgroup(&settings) {
        WorkerCgroup::Found(base) => Ok(Some(base.path().to_owned())),
        WorkerCgroup::None(_) => Ok(None),
        WorkerCgroup::Unusable(cause) => Err(StartupError::WorkerCgroup(cause).to_string()),
    };
    let database = database_findings(&settings).await;
    let objects = objects_finding(&settings).await;
    let Settings { listen, data_dir, .. } = settings;
    Ok(ServerPlan { listen, data_dir, secrets_key, worker_cgroup, database, objects })
}

/// What is found about the database of the settings; empty without one.
async fn database_findings(settings: &Settings) -> Vec<(CheckStatus, String)> {
    let database = match settings.database() {
        Ok(None) => return Vec::new(),
        Ok(Some(database)) => parts::with_authorities(settings, database),
        Err(error) => Err(error.into()),
    };
    let database = match database {
        Ok(database) => database,
        Err(error) => return vec![(CheckStatus::Fail, error.to_string())],
    };
    let status = |level| match level {
        FindingLevel::Ok => CheckStatus::Ok,
        FindingLevel::Warn => CheckStatus::Warn,
        FindingLevel::Fail => CheckStatus::Fail,
    };
    let found = longshore_postgres::examine(&database).await;
    found.into_iter().map(|finding| (status(finding.level), finding.text)).collect()
}

/// What is found about the object storage of the settings; `None` without one.
async fn objects_finding(settings: &Settings) -> Option<(CheckStatus, String)> {
    let storage = match objects::open(settings) {
        Ok(storage) => storage?,
        Err(error) => return Some((CheckStatus::Fail, error.to_string())),
    };
    Some(match storage.probe().await {
        Ok(()) => (CheckStatus::Ok, format!("{} writes, reads and deletes objects", storage.address())),
        Err(error) => (CheckStatus::Fail, error),
    })
}

/// The environment variables that are valid UTF-8; settings are always text.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn local_address(listener: &TcpListener, asked: &str) -> Result<SocketAddr, StartupError> {
    listener.local_addr().map_err(|cause| StartupError::Listen { address: asked.to_owned(), cause })
}

/// Prints the start message to standard output. The log goes to standard error.
fn announce(settings: &Settings, address: SocketAddr, operators: Option<SocketAddr>) {
    let data_dir = std::path::absolute(&settings.data_dir).unwrap_or_else(|_| settings.data_dir.clone());
    let mut out = io::stdout().lock();
    // A closed standard output does not stop the server.
    let url = |address| service::local_url(address, settings.tls_files().is_some());
    let _ = writeln!(out, "listening on {}", url(address));
    if let Some(operators) = operators {
        let _ = writeln!(out, "management on {}", url(operators));
    }
    let _ = writeln!(out, "data in {}; stop with Ctrl-C or SIGTERM, workers go on", data_dir.display());
    let _ = out.flush();
}

/// Says that the server answers.
fn begin(
    args: &ServeArgs,
    settings: &Settings,
    address: SocketAddr,
    operators: Option<SocketAddr>,
) -> Result<(), StartupError> {
    if let Some(path) = &args.port_file {
        write_port(path, address.port())?;
    }
    announce(settings, address, operators);
    Ok(())
}

pub(crate) fn announce_key(key: &str) {
    let mut out = io::stdout().lock();
    let _ =
        writeln!(out, "first start: this key has all permissions; it is shown only now and stored as a hash");
    let _ = writeln!(out, "admin key: {key}");
}

/// Replaces the file atomically, so that a reader never sees a part of the number.
fn write_port(path: &Path, port: u16) -> Result<(), StartupError> {
    let draft = path.with_extension("tmp");
    let written = std::fs::write(&draft, format!("{port}\n")).and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|cause| StartupError::PortFile { path: path.to_owned(), cause })
}

struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

fn stop_signals() -> io::Result<StopSignals> {
    Ok(StopSignals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
    })
}

impl StopSignals {
    async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
