//! Creates the server's parts from the settings.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use longshore_blobs::{Blobs, DirBlobs};
use longshore_docker::DockerLauncher;
use longshore_engine::{Engine, EngineParts, Histogram, HttpTransport, Runtime, TokioRuntime, TraceExport};
use longshore_http::AuditLog;
use longshore_launch::{
    CgroupBase, CgroupError, CodeFolders, CodeSource, Launcher, Launchers, ProcessLauncher, ShimCommand,
};
use longshore_model::{Millis, Provider};
use longshore_objects::{ObjectBlobs, Storage};
use longshore_postgres::{
    Database, DatabaseClock, LogTable, OldTransaction, Owned, PostgresStore, ServingRight,
};
use longshore_store::{EmbeddedStore, HeldDataDir, Scrub, Store, StoreError};
use longshore_trust::Roots;
use longshore_vault::Keyring;

use crate::files::SharedCode;
use crate::logs::Logs;
use crate::objects;
use crate::reserve::Reserve;
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::worker_runtime;

/// The hidden subcommand that supervises one worker.
const SHIM_SUBCOMMAND: &str = "worker-shim";

/// The hidden subcommand that creates a version's Python environment and executes its handler.
const CODE_SUBCOMMAND: &str = "code-worker";

/// Bounds of the times of flushes, in us.
const FLUSH_US_BOUNDS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];

/// Age from which a transaction in the database is old.
const OLD_TRANSACTION: Duration = Duration::from_mins(5);

/// An engine, and what lives as long as it does.
pub(crate) struct Started {
    pub(crate) engine: Engine,
    pub(crate) audit: AuditLog,
    /// The logs of the database; `None` without one.
    pub(crate) log_table: Option<Arc<LogTable>>,
    pub(crate) background: Background,
}

/// What a store needs beside the engine.
pub(crate) struct Background {
    /// The background reader of a log.
    pub(crate) scrub: Option<Scrub>,
    /// The times of the database's flushes, in us; `None` without a database.
    pub(crate) flush_us: Option<Arc<Histogram>>,
    /// Ends when the rows in memory are no longer those of the store.
    pub(crate) lost: Pin<Box<dyn Future<Output = StoreError> + Send + Sync>>,
    /// The data directory, which the embedded store holds itself.
    _data_dir: Option<HeldDataDir>,
}

/// Starts an engine on the store. Workers connect to `server_url`.
pub(crate) async fn start_engine(
    settings: &Settings,
    launchers: Launchers,
    vault: Keyring,
    server_url: String,
    rows: Rows,
    objects: Option<Storage>,
) -> Result<Started, StartupError> {
    let roots = Roots::load(settings.webhook_ca_file()).map_err(StartupError::WebhookAuthorities)?;
    let gpus = settings.gpus(longshore_launch::read_gpus()).await?;
    // Opening the store needs some space. A disk without any gets that of the reserve.
    Reserve::of(&settings.data_dir).use_if_full();
    let runtime: Arc<dyn Runtime> = match &rows {
        Rows::OfSettings => Arc::new(TokioRuntime),
        Rows::OfOwner(owned) => Arc::new(OwnerRuntime { clock: owned.clock(), right: owned.right() }),
    };
    let OpenData { store, blobs, background } = open_rows(settings, rows, objects).await?;
    let Logs { audit, deliveries, table: log_table } = Logs::open(settings).await?;
    let parts = EngineParts {
        store,
        blobs,
        launchers,
        runtime,
        webhook_transport: Arc::new(HttpTransport::with_roots(&settings.webhooks(), &roots)),
        webhook_log: deliveries,
        vault: Arc::new(vault),
        settings: settings.engine(),
        webhooks: settings.webhooks(),
        workers: settings.workers(server_url, gpus),
        traces: traces(settings, &roots)?,
    };
    Ok(Started { engine: Engine::start(parts).await?, audit, log_table, background })
}

/// The runtime of a node that owns the shards: its engine decides by the clock of the database, and acts while the lease of the
/// node lasts.
struct OwnerRuntime {
    clock: DatabaseClock,
    right: ServingRight,
}

impl Runtime for OwnerRuntime {
    fn wall_clock(&self) -> Millis {
        self.clock.now().unwrap_or_else(|| TokioRuntime.wall_clock())
    }

    fn may_act(&self) -> bool {
        self.right.lasts()
    }
}

/// What sends traces to the collector of the settings; `None` if they name none.
fn traces(settings: &Settings, roots: &Roots) -> Result<Option<TraceExport>, StartupError> {
    let traces = settings.traces(|name| std::env::var(name).ok())?;
    Ok(traces.map(|settings_of_traces| TraceExport {
        settings: settings_of_traces,
        transport: Arc::new(HttpTransport::with_roots(&settings.trace_connection(), roots)),
    }))
}

/// The store and the payloads of a server, open until this is dropped.
pub(crate) struct OpenData {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) background: Background,
}

/// Which store a server opens.
pub(crate) enum Rows {
    /// That of the settings, alone.
    OfSettings,
    /// The database of a node that owns the shards. The node holds the data directory itself.
    OfOwner(Owned),
}

/// Opens the store, and the payloads in the data directory. One server at a time can have them open.
pub(crate) async fn open_data(settings: &Settings) -> Result<OpenData, StartupError> {
    open_rows(settings, Rows::OfSettings, objects::open_and_probe(settings).await?).await
}

async fn open_rows(
    settings: &Settings,
    rows: Rows,
    objects: Option<Storage>,
) -> Result<OpenData, StartupError> {
    let (store, background) = match (rows, settings.database()?) {
        (Rows::OfOwner(owned), _) => {
            let mut store = PostgresStore::of_owner(owned);
            // The node is told by others when one of them takes over.
            let (flush_us, lost) = (Some(watched(&mut store)), Box::pin(store.lost()));
            let store: Arc<dyn Store> = Arc::new(store);
            (store, Background { scrub: None, flush_us, lost, _data_dir: None })
        }
        (Rows::OfSettings, None) => open_log(settings).await?,
        (Rows::OfSettings, Some(database)) => open_database(settings, database).await?,
    };
    let blobs_dir = settings.data_dir.join("blobs");
    let blobs: Arc<dyn Blobs> = match objects {
        Some(storage) => {
            objects::expect_no_files(&blobs_dir, storage.address())?;
            Arc::new(ObjectBlobs::new(storage))
        }
        None => Arc::new(open_folder(blobs_dir)?),
    };
    Ok(OpenData { store, blobs, background })
}

/// Opens the folder of large payloads.
pub(crate) fn open_folder(dir: PathBuf) -> Result<DirBlobs, StartupError> {
    DirBlobs::open(&dir).map_err(|error| StartupError::Blobs { path: dir, cause: error.to_string() })
}

async fn open_log(settings: &Settings) -> Result<(Arc<dyn Store>, Background), StartupError> {
    let dir = settings.data_dir.clone();
    let store = blocking(move || EmbeddedStore::open(&dir)).await?;
    let scrub = Some(store.scrub(&settings.data_dir));
    // The log's lock cannot get lost.
    let background = Background { scrub, flush_us: None, lost: Box::pin(pending()), _data_dir: None };
    Ok((Arc::new(store), background))
}

async fn open_database(
    settings: &Settings,
    database: Database,
) -> Result<(Arc<dyn Store>, Background), StartupError> {
    let data_dir = hold_data_dir(settings).await?;
    let address = database.address();
    let database = with_authorities(settings, database)?;
    let mut store = PostgresStore::open(database).await?;
    tracing::info!(database = %address, "rows and payloads are in a PostgreSQL database");
    let (flush_us, lost) = (Some(watched(&mut store)), Box::pin(store.lost()));
    Ok((Arc::new(store), Background { scrub: None, flush_us, lost, _data_dir: Some(data_dir) }))
}

/// Counts the times of the store's flushes from now on, and warns of what keeps the database from removing rows.
fn watched(store: &mut PostgresStore) -> Arc<Histogram> {
    let flush_us = Arc::new(Histogram::new(&FLUSH_US_BOUNDS));
    let counted = Arc::clone(&flush_us);
    store.watch_flushes(move |took| counted.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX)));
    store.watch_transactions(OLD_TRANSACTION, |OldTransaction { pid, application, .. }| {
        tracing::warn!(
            pid,
            application,
            "a transaction in the database is open for more than 5 min: old rows stay, and commits become slower; end it"
        );
    });
    flush_us
}

/// Keeps other servers away from the data directory. It must have no log of an embedded store.
pub(crate) async fn hold_data_dir(settings: &Settings) -> Result<HeldDataDir, StartupError> {
    let dir = settings.data_dir.clone();
    blocking(move || HeldDataDir::hold(&dir)).await
}

/// The database, with the certificates that are trusted for it.
pub(crate) fn with_authorities(settings: &Settings, database: Database) -> Result<Database, StartupError> {
    trusting(settings.store_ca_file(), database)
}

/// The database, with the certificates of this computer and of `ca_file`.
pub(crate) fn trusting(ca_file: Option<&Path>, database: Database) -> Result<Database, StartupError> {
    if !database.needs_tls() {
        return Ok(database);
    }
    let roots = Roots::load(ca_file).map_err(StartupError::DatabaseAuthorities)?;
    Ok(database.with_tls(roots.client_config()))
}

pub(crate) async fn blocking<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StartupError> {
    let opened = tokio::task::spawn_blocking(open).await;
    Ok(opened.map_err(|error| StartupError::Engine(error.to_string()))??)
}

/// The launchers of this server, by provider: processes of this computer, and containers if it has a Docker daemon.
///
/// Code that is not here is fetched from `shared`.
pub(crate) fn launchers(
    settings: &Settings,
    shared: Option<&Arc<SharedCode>>,
) -> Result<Launchers, StartupError> {
    let process: Arc<dyn Launcher> = Arc::new(process_launcher(settings, shared)?);
    let mut launchers = Launchers::from([(Provider::Process, process)]);
    if let Some(docker) = settings.docker() {
        let dir = settings.data_dir.join("containers");
        let code = code_folders(&settings.data_dir, shared);
        let docker = DockerLauncher::new(&dir, &volumes_dir(&settings.data_dir), docker)
            .with_code(code, Arc::new(longshore_cli::code_command));
        let docker = match worker_runtime_folder(settings) {
            Some(folder) => docker.with_worker_runtime(folder),
            None => docker,
        };
        launchers.insert(Provider::Docker, Arc::new(docker));
    }
    Ok(launchers)
}

/// Directory of the network volumes.
pub(crate) fn volumes_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("volumes")
}

fn process_launcher(
    settings: &Settings,
    shared: Option<&Arc<SharedCode>>,
) -> Result<ProcessLauncher, StartupError> {
    let shim = ShimCommand::this_program(SHIM_SUBCOMMAND);
    // `/proc/self/exe` works after an upgrade has replaced the program's file. The shim is this program and starts
    // the worker.
    let runner = vec!["/proc/self/exe".to_owned(), CODE_SUBCOMMAND.to_owned()];
    let launcher = ProcessLauncher::new(settings.data_dir.join("workers"), shim)
        .with_volumes(volumes_dir(&settings.data_dir))
        .with_code(code_folders(&settings.data_dir, shared), runner)
        .with_orphans_ended_after(settings.orphans_ended_after());
    let launcher = match worker_runtime_folder(settings) {
        Some(folder) => launcher.with_worker_runtime(folder).with_zygotes(settings.zygotes_max),
        None => launcher,
    };
    match worker_cgroup(settings) {
        WorkerCgroup::Found(base) => Ok(launcher.with_cgroups(base)),
        WorkerCgroup::None(_) => Ok(launcher),
        WorkerCgroup::Unusable(cause) => Err(StartupError::WorkerCgroup(cause)),
    }
}

/// The folder of the worker runtime; `None` if the runtime is off, and if its files cannot be written: then workers run at
/// the pace of their SDK.
fn worker_runtime_folder(settings: &Settings) -> Option<PathBuf> {
    if !settings.is_worker_runtime_on() {
        return None;
    }
    let cache = settings.data_dir.join("cache");
    let folder = worker_runtime::prepare(&cache);
    folder
        .inspect_err(|error| {
            tracing::warn!(%error, cache = %cache.display(), "workers start without the worker runtime");
        })
        .ok()
}

/// Logs where workers' cgroups are made, or why there are none. A server calls this when its start can no longer be
/// refused.
pub(crate) fn log_worker_cgroup(settings: &Settings) {
    match worker_cgroup(settings) {
        WorkerCgroup::Found(base) => {
            tracing::info!(base = %base.path().display(), "each worker gets a cgroup of its own");
        }
        WorkerCgroup::None(reason) => tracing::info!(%reason, "workers get no cgroups of their own"),
        WorkerCgroup::Unusable(error) => tracing::warn!(%error, "workers get no cgroups of their own"),
    }
}

/// Logs that `DOCKER_HOST` is not used, if that is why the server starts no containers.
pub(crate) fn log_docker_host(settings: &Settings) {
    if let Some(address) = settings.unused_docker_host() {
        // The rest may have a password.
        let scheme = address.split("://").next();
        tracing::warn!(
            scheme,
            "DOCKER_HOST names no unix socket and is not used, this server reaches a Docker daemon by one only"
        );
    }
}

/// The cgroup for workers.
pub(crate) enum WorkerCgroup {
    /// Workers get their own cgroups below this one.
    Found(CgroupBase),
    /// No cgroup was delegated to this program.
    None(CgroupError),
    /// The configured cgroup cannot be used.
    Unusable(CgroupError),
}

/// Looks for the parent cgroup of workers, without changing anything.
pub(crate) fn worker_cgroup(settings: &Settings) -> WorkerCgroup {
    match settings.worker_cgroup() {
        Some(path) => CgroupBase::at(path).map_or_else(WorkerCgroup::Unusable, WorkerCgroup::Found),
        None => CgroupBase::delegated().map_or_else(WorkerCgroup::None, WorkerCgroup::Found),
    }
}

/// The folders of deployed code, with the code that other computers were sent.
pub(crate) fn code_folders(data_dir: &Path, shared: Option<&Arc<SharedCode>>) -> CodeFolders {
    let source = shared.map(|shared| Arc::<SharedCode>::clone(shared) as Arc<dyn CodeSource>);
    CodeFolders::at(&code_dir(data_dir)).with_source(source)
}

/// Directory of deployed code.
pub(crate) fn code_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("code")
}
