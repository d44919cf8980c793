//! A server that answers: the engine behind the edge, and how both end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use longshore_engine::Engine;
use longshore_http::{HttpState, ServerFiles};
use longshore_launch::Launcher;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::fatal::Fatal;
use crate::files::DataFiles;
use crate::settings::Settings;
use crate::{descriptors, parts, secrets};

/// A running server.
pub(crate) struct Service {
    engine: Engine,
    launcher: Arc<dyn Launcher>,
    files: Arc<DataFiles>,
    noting: JoinSet<()>,
    closing: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    grace: Duration,
}

impl Service {
    /// Starts an engine, lets `admit` put the first key into it, and then answers on `listener`: a server that
    /// says it is ready must not refuse its own operator.
    pub(crate) async fn start<T>(
        settings: &Settings,
        listener: TcpListener,
        admit: impl AsyncFnOnce(&Engine) -> Result<T, Fatal>,
    ) -> Result<(Self, T), Fatal> {
        let address =
            listener.local_addr().map_err(|cause| Fatal::Listen { address: "there".into(), cause })?;
        let server_url = settings.server_url().unwrap_or_else(|| local_url(address));
        let launcher = parts::process_launcher(&settings.data_dir);
        let vault = secrets::vault(settings)?;
        let engine = parts::start_engine(settings, Arc::clone(&launcher), vault, server_url).await?;
        if !engine.vault().is_sealing() {
            tracing::warn!(
                "secrets are kept unsealed: set LONGSHORE_SECRETS_KEY or `secrets_key_file` (longshore secrets new-key)"
            );
        }
        let admitted = admit(&engine).await?;
        let files = Arc::new(DataFiles::new(&settings.data_dir));
        let shown: Arc<dyn ServerFiles> = Arc::<DataFiles>::clone(&files);
        let router = longshore_http::router(HttpState::with_files(engine.clone(), &settings.http(), shown));
        let (closing, closed) = oneshot::channel();
        let serving =
            tokio::spawn(longshore_http::serve(listener, router, descriptors::connections_max(), async {
                // A dropped sender means the same as a sent word: stop.
                let _ = closed.await;
            }));
        let mut noting = JoinSet::new();
        noting.spawn(note_key_use(engine.clone(), settings.key_use_interval()));
        noting.spawn(note_usage(engine.clone()));
        let grace = settings.shutdown_grace();
        Ok((Self { engine, launcher, files, noting, closing, serving, grace }, admitted))
    }

    /// Who runs the workers.
    pub(crate) fn launcher(&self) -> Arc<dyn Launcher> {
        Arc::clone(&self.launcher)
    }

    /// Takes no more requests, answers those that wait, and lets go of the data folder. Workers go on.
    pub(crate) async fn stop(mut self) {
        let _ = self.closing.send(());
        self.files.close();
        self.engine.release_waits().await;
        if tokio::time::timeout(self.grace, &mut self.serving).await.is_err() {
            tracing::warn!(grace = ?self.grace, "some requests were not answered in time");
            self.serving.abort();
        }
        self.noting.shutdown().await;
        if let Err(error) = self.engine.note_key_use().await {
            tracing::warn!(%error, "the last use of keys is not noted");
        }
        if let Err(error) = self.engine.note_usage().await {
            tracing::warn!(%error, "the next server has to find out how long workers ran");
        }
        self.engine.close().await;
    }
}

/// Writes down at intervals which keys were used; a killed server forgets one interval of it.
async fn note_key_use(engine: Engine, interval: Duration) {
    let mut interval = tokio::time::interval(interval);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = engine.note_key_use().await {
            tracing::warn!(%error, "the use of keys could not be noted, trying again later");
        }
    }
}

/// Writes down once a minute how long workers ran.
async fn note_usage(engine: Engine) {
    let mut interval = tokio::time::interval(Duration::from_mins(1));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = engine.note_usage().await {
            tracing::warn!(%error, "the time of workers could not be noted, trying again in a minute");
        }
    }
}

/// How this machine reaches a server that listens on `address`.
pub(crate) fn local_url(address: SocketAddr) -> String {
    match address {
        _ if address.ip().is_unspecified() => format!("http://127.0.0.1:{}", address.port()),
        _ => format!("http://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_this_machine_reach_a_server_that_listens_everywhere() {
        let url = |text: &str| local_url(text.parse().unwrap());
        assert_eq!(url("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80"), "http://127.0.0.1:80");
        assert_eq!(url("10.0.0.7:80"), "http://10.0.0.7:80");
        assert_eq!(url("[::1]:80"), "http://[::1]:80");
    }
}
