//! The way to another node: its address says whether the connection is encrypted.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_engine::{LinkStream, Links};
use rustix::net::sockopt;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// What the address of a node begins with whose connections are encrypted.
const SCHEME: &str = "https://";
/// How long a node may take to accept a connection, its certificate included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long bytes to a node may stay unacknowledged before the connection is broken: by default that takes 15 min where packets
/// are lost without a word.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// The pause before, and between, the probes of a connection that carries nothing, such as one with a take that waits.
const PROBE_PAUSE: Duration = Duration::from_secs(2);
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
        let is_known = lookup_host(authority(address)).await.is_ok_and(|mut found| found.next().is_some());
        let (tls, address) = (self.clone(), Arc::<str>::from(address));
        is_known.then(|| {
            Links::through(Arc::new(move || {
                let (tls, address) = (tls.clone(), Arc::clone(&address));
                Box::pin(async move {
                    let opened = timeout(CONNECT_TIMEOUT, tls.open(&address)).await;
                    opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
                })
            }))
        })
    }

    async fn open(&self, address: &str) -> io::Result<Box<dyn LinkStream>> {
        let host_and_port = authority(address);
        let stream = TcpStream::connect(host_and_port).await?;
        stream.set_nodelay(true)?;
        notice_silence(&stream)?;
        if !address.starts_with(SCHEME) {
            return Ok(Box::new(stream));
        }
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

/// Lets the system break a connection whose other side no longer acknowledges anything.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_user_timeout(stream, SILENCE_MAX.as_millis() as u32)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_PAUSE)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_PAUSE)?;
    Ok(())
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
