//! The way to another node: its address says whether the connection is encrypted.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_engine::{LinkStream, Links};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// What the address of a node begins with whose connections are encrypted.
const SCHEME: &str = "https://";
/// How long a node may take to accept a connection, its certificate included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Least time between two log lines about certificates.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Which certificates of other nodes a node trusts. Cheap to clone.
#[derive(Clone, Default)]
pub struct PeerTls {
    connector: Option<TlsConnector>,
    /// When the log last got a line about a failed handshake.
    last_logged: Arc<Mutex<Option<Instant>>>,
}

impl PeerTls {
    /// Connections with this configuration, which says what is trusted. Without one, nodes whose connections are encrypted cannot be
    /// reached.
    pub fn new(config: Option<ClientConfig>) -> Self {
        Self {
            connector: config.map(|config| TlsConnector::from(Arc::new(config))),
            last_logged: Arc::default(),
        }
    }

    /// The address of a node that listens at `host_and_port`, as the other nodes read it.
    pub fn address(host_and_port: &str, is_encrypted: bool) -> String {
        if is_encrypted { format!("{SCHEME}{host_and_port}") } else { host_and_port.to_owned() }
    }

    /// The connections to the node at an address; `None` if its host is not known.
    pub(super) async fn links(&self, address: &str) -> Option<Links> {
        let Some(encrypted) = address.strip_prefix(SCHEME) else {
            return Some(Links::to(lookup_host(address).await.ok()?.next()?));
        };
        let (tls, encrypted) = (self.clone(), Arc::<str>::from(encrypted));
        Some(Links::through(Arc::new(move || {
            let (tls, encrypted) = (tls.clone(), Arc::clone(&encrypted));
            Box::pin(async move {
                let opened = timeout(CONNECT_TIMEOUT, tls.open(&encrypted)).await;
                opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
            })
        })))
    }

    async fn open(&self, host_and_port: &str) -> io::Result<Box<dyn LinkStream>> {
        let stream = TcpStream::connect(host_and_port).await?;
        stream.set_nodelay(true)?;
        let shaken = async {
            let connector = self.connector.as_ref();
            let connector = connector.ok_or_else(|| io::Error::other("`cluster_ca_file` is not set"))?;
            let host = host_and_port.rsplit_once(':').map_or(host_and_port, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            connector.connect(name, stream).await
        };
        match shaken.await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => {
                self.log(host_and_port, &error);
                Err(error)
            }
        }
    }

    fn log(&self, address: &str, error: &io::Error) {
        let mut last = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL) {
            *last = Some(Instant::now());
            tracing::warn!(address, %error, "no encrypted connection to another node");
        }
    }
}

/// The host and port in the address of a node.
pub(super) fn authority(address: &str) -> &str {
    address.strip_prefix(SCHEME).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_whether_connections_are_encrypted() {
        let (plain, encrypted) = (PeerTls::address("n:1", false), PeerTls::address("n:1", true));
        assert_eq!((plain.as_str(), encrypted.as_str()), ("n:1", "https://n:1"));
        assert_eq!((authority(&plain), authority(&encrypted)), ("n:1", "n:1"));
    }
}
