//! A running server: the engine behind the HTTP edge, and how both stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use longshore_engine::Engine;
use longshore_http::{Edge, FileService, HttpState, NodeStatus, ScrubReport, Surface, Tls};
use longshore_launch::Launchers;
use longshore_objects::CodeObjects;
use longshore_store::StoreError;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::files::{DataFiles, SAMPLE_INTERVAL, SharedCode};
use crate::history::Recording;
use crate::parts::{Background, Rows, Started};
use crate::reserve::{self, Reserve};
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{fd_limit, gpu_watch, objects, parts, scrub, secrets};

/// Divisor of the connections: one in 16 is reserved for operators if they have their own address.
const OPERATORS_SHARE: usize = 16;

/// Interval between two scans for unused code, which is removed after a day.
const CODE_LOOK: Duration = Duration::from_hours(1);

/// The sockets of a server.
pub(crate) struct Listeners {
    /// For clients and workers, and for operators if they have no address of their own.
    pub(crate) jobs: TcpListener,
    /// The listener of routes for operators only; `None`: the other listener serves them too.
    pub(crate) management: Option<TcpListener>,
}

impl Listeners {
    /// One address for all requests.
    pub(crate) fn one(listener: TcpListener) -> Self {
        Self { jobs: listener, management: None }
    }
}

/// A server that accepts connections, until its shutdown.
pub(crate) struct Service {
    engine: Engine,
    launchers: Launchers,
    files: Arc<DataFiles>,
    recording: Recording,
    noting: JoinSet<()>,
    background: Background,
    closing: watch::Sender<()>,
    serving: JoinSet<()>,
    grace: Duration,
}

impl Service {
    /// Starts an engine, runs `admit`, which creates the first key, and then serves requests: a ready server must
    /// accept its operator's key.
    pub(crate) async fn start<T>(
        settings: &Settings,
        listeners: Listeners,
        admit: impl AsyncFnOnce(&Engine) -> Result<T, StartupError>,
    ) -> Result<(Self, T), StartupError> {
        let place = Place::of(settings, &listeners)?;
        let tls = place.tls.clone();
        let (mut service, edge, admitted) =
            Self::prepare(settings, place, Rows::OfSettings, None, admit).await?;
        let closed = service.closing.subscribe();
        serve_all(listeners, &mut service.serving, closed, |listener, surface, connections_max, closed| {
            longshore_http::serve(listener, edge.restricted_to(surface), tls.clone(), connections_max, closed)
        });
        Ok((service, admitted))
    }

    /// Starts an engine on `rows` and runs `admit`. Returns what answers requests, for the caller to serve.
    pub(crate) async fn prepare<T>(
        settings: &Settings,
        place: Place,
        rows: Rows,
        node: Option<Arc<NodeStatus>>,
        admit: impl AsyncFnOnce(&Engine) -> Result<T, StartupError>,
    ) -> Result<(Self, Edge, T), StartupError> {
        let Place { tls, server_url, workers_url } = place;
        let mut http = settings.http();
        http.workers_url = workers_url;
        http.node = node;
        // A node that takes over has probed at its start.
        let objects = match &rows {
            Rows::OfSettings => objects::open_and_probe(settings).await?,
            Rows::OfOwner(_) => objects::open(settings)?,
        };
        let shared = objects.clone().map(|storage| {
            Arc::new(SharedCode::new(
                CodeObjects::new(storage),
                parts::code_folders(&settings.data_dir, None).path(),
            ))
        });
        let launchers = parts::launchers(settings, shared.as_ref())?;
        let vault = secrets::vault(settings)?;
        let is_sealing = vault.is_sealing();
        let Started { engine, audit, log_table, mut background } =
            parts::start_engine(settings, launchers.clone(), vault, server_url, rows, objects).await?;
        if !is_sealing {
            tracing::warn!(
                "secrets are stored unencrypted: set LONGSHORE_SECRETS_KEY or `secrets_key_file` (longshore secret new-key)"
            );
        }
        let admitted = admit(&engine).await?;
        parts::log_worker_cgroup(settings);
        parts::log_docker_host(settings);
        if let Some(shared) = shared.clone() {
            // A detached thread: no request depends on it.
            std::thread::spawn(move || shared.put_local());
        }
        let files = Arc::new(DataFiles::new(&settings.data_dir, launchers.clone(), shared));
        let shown: Arc<dyn FileService> = Arc::<DataFiles>::clone(&files);
        http.audit = Some(audit);
        http.flush_us = background.flush_us.clone();
        let reading = background.scrub.take().map(|scrub| (scrub, Arc::new(ScrubReport::default())));
        http.scrub = reading.as_ref().map(|(_, found)| Arc::clone(found));
        http.facts.is_sealing = is_sealing;
        http.facts.certificate_end = tls.as_ref().map(Tls::certificate_end);
        let recording = Recording::open(settings, engine.now(), log_table).await;
        http.history = Some(Arc::clone(&recording.history));
        let state = HttpState::with_files(engine.clone(), &http, shown);
        let edge = longshore_http::router(state.clone()).with_origins(settings.origins());
        let mut noting = work_at_intervals(settings, &engine, &files);
        noting.spawn(note_session_use(state, settings.key_use_interval()));
        noting.spawn(recording.clone().record(engine.clone()));
        if let Some((scrub, found)) = reading {
            noting.spawn(scrub::run(scrub, settings.scrub_pace(), found));
        }
        let grace = settings.shutdown_grace();
        let (closing, serving) = (watch::channel(()).0, JoinSet::new());
        let service =
            Self { engine, launchers, files, recording, noting, background, closing, serving, grace };
        Ok((service, edge, admitted))
    }

    /// Hands over the tasks that answer requests, and what ends them.
    pub(crate) fn serves(&mut self, serving: JoinSet<()>, closing: watch::Sender<()>) {
        (self.serving, self.closing) = (serving, closing);
    }

    /// The launchers, by provider.
    pub(crate) fn launchers(&self) -> &Launchers {
        &self.launchers
    }

    /// Waits until another server has taken the rows, or the database has forgotten some: then this one must stop. Returns why.
    pub(crate) async fn lost(&mut self) -> StoreError {
        self.background.lost.as_mut().await
    }

    /// Stops accepting requests, finishes current ones and closes the data directory. Workers continue.
    pub(crate) async fn stop(mut self) {
        let _ = self.closing.send(());
        self.files.close();
        self.engine.release_waits().await;
        let all_served = async { while self.serving.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all_served).await.is_err() {
            tracing::warn!(grace_s = self.grace.as_secs_f64(), "requests unanswered at shutdown");
            self.serving.abort_all();
        }
        self.noting.shutdown().await;
        if let Err(error) = self.engine.keys().note_use().await {
            tracing::warn!(%error, "key use not written at shutdown");
        }
        if let Err(error) = self.engine.note_usage().await {
            tracing::warn!(%error, "worker usage not written at shutdown, next start recounts it");
        }
        self.recording.close(&self.engine).await;
        self.engine.close().await;
    }
}

/// Where a server is reached, and its certificate.
pub(crate) struct Place {
    /// The certificate of its listeners.
    pub(crate) tls: Option<Tls>,
    /// The URL for workers of this computer.
    server_url: String,
    /// The URL for external workers; `None`: the address that the request for their token came to.
    workers_url: Option<String>,
}

impl Place {
    /// The place of a server with these settings.
    ///
    /// # Errors
    ///
    /// The certificate cannot be read.
    pub(crate) fn of(settings: &Settings, listeners: &Listeners) -> Result<Self, StartupError> {
        let address = listeners
            .jobs
            .local_addr()
            .map_err(|cause| StartupError::Listen { address: "there".into(), cause })?;
        let tls = tls(settings)?;
        warn_of_unlikely_url(settings, address, tls.as_ref());
        let server_url = settings.server_url().unwrap_or_else(|| local_url(address, tls.is_some()));
        // Without an operators' address, workers use the address that the request came to.
        let workers_url = listeners.management.is_some().then(|| server_url.clone());
        Ok(Self { tls, server_url, workers_url })
    }
}

/// Serves each listener in a task of its own, until the sender of `closed` says stop or is dropped.
pub(crate) fn serve_all<F: Future<Output = ()> + Send + 'static>(
    listeners: Listeners,
    serving: &mut JoinSet<()>,
    closed: watch::Receiver<()>,
    serve: impl Fn(TcpListener, Surface, usize, Closed) -> F,
) {
    let connections_max = fd_limit::connections_max();
    match listeners.management {
        None => {
            serving.spawn(serve(listeners.jobs, Surface::All, connections_max, until_closed(closed)));
        }
        Some(management) => {
            let few = connections_max / OPERATORS_SHARE + 1;
            let rest = connections_max - few;
            serving.spawn(serve(listeners.jobs, Surface::Jobs, rest, until_closed(closed.clone())));
            serving.spawn(serve(management, Surface::All, few, until_closed(closed)));
        }
    }
}

/// Ends when a server closes.
pub(crate) type Closed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Ends when the sender says stop or is dropped.
pub(crate) fn until_closed(mut closed: watch::Receiver<()>) -> Closed {
    Box::pin(async move {
        let _ = closed.changed().await;
    })
}

/// Starts what is done at intervals until the server stops.
fn work_at_intervals(settings: &Settings, engine: &Engine, files: &Arc<DataFiles>) -> JoinSet<()> {
    let mut noting = JoinSet::new();
    noting.spawn(note_key_use(engine.clone(), settings.key_use_interval()));
    noting.spawn(note_usage(engine.clone()));
    gpu_watch::begin(&mut noting, settings.gpu_interval(), engine);
    noting.spawn(forget_unused_code(engine.clone(), Arc::clone(files)));
    noting.spawn(note_free_space(Arc::clone(files)));
    noting.spawn(reserve::watch(Reserve::of(&settings.data_dir), engine.clone()));
    noting
}

/// Writes at intervals which keys were used. A killed server loses one interval.
async fn note_key_use(engine: Engine, interval: Duration) {
    let mut interval = tokio::time::interval(interval);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = engine.keys().note_use().await {
            tracing::warn!(%error, "key use not written, retrying");
        }
    }
}

/// Writes at intervals which sessions were used, and removes those that are over.
async fn note_session_use(state: HttpState, interval: Duration) {
    let mut interval = tokio::time::interval(interval);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = longshore_http::note_session_use(&state).await {
            tracing::warn!(%error, "session use not written, retrying");
        }
    }
}

/// Writes once per minute how long workers ran.
async fn note_usage(engine: Engine) {
    let mut interval = tokio::time::interval(Duration::from_mins(1));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = engine.note_usage().await {
            tracing::warn!(%error, "worker usage not written, retrying in 60 s");
        }
    }
}

/// Removes unused code at intervals. The first scan is not at the start, when templates may not run yet.
async fn forget_unused_code(engine: Engine, files: Arc<DataFiles>) {
    let mut interval = tokio::time::interval_at(Instant::now() + CODE_LOOK, CODE_LOOK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        longshore_http::forget_unused_code(&engine, files.as_ref());
    }
}

/// Samples the free space of the disk, for how fast it fills.
async fn note_free_space(files: Arc<DataFiles>) {
    let mut interval = tokio::time::interval(SAMPLE_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let files = Arc::clone(&files);
        // An error is a panic, which the hook has logged.
        let _ = tokio::task::spawn_blocking(move || files.note_free_space()).await;
    }
}

/// Loads the certificate and key for TLS, if configured.
fn tls(settings: &Settings) -> Result<Option<Tls>, StartupError> {
    let Some((certificate, key)) = settings.tls_files() else { return Ok(None) };
    Ok(Some(Tls::from_files(certificate, key)?))
}

/// Warns if managed workers get a URL whose host the certificate is not for.
fn warn_of_unlikely_url(settings: &Settings, address: SocketAddr, tls: Option<&Tls>) {
    let host = local_address(address).ip();
    if settings.server_url().is_none() && tls.is_some_and(|tls| !tls.is_for(&host.to_string())) {
        tracing::warn!(
            %host,
            "managed workers connect to an address that the certificate is not for: set `server_url` to https:// and a name \
             that it is for"
        );
    }
}

/// Returns the address at which this computer reaches a server that listens on `address`.
fn local_address(address: SocketAddr) -> SocketAddr {
    match address {
        _ if address.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// Returns the URL at which this computer reaches a server that listens on `address`.
pub(crate) fn local_url(address: SocketAddr, is_tls: bool) -> String {
    format!("{}://{}", if is_tls { "https" } else { "http" }, local_address(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_this_machine_reach_a_server_that_listens_everywhere() {
        let url = |text: &str| local_url(text.parse().unwrap(), false);
        assert_eq!(url("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80"), "http://127.0.0.1:80");
        assert_eq!(url("10.0.0.7:80"), "http://10.0.0.7:80");
        assert_eq!(url("[::1]:80"), "http://[::1]:80");
    }
}
