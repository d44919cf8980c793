//! Opens connections to receivers at permitted addresses.

mod stream;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tower::Service;

use self::stream::ConnectorStream;
use super::address;
use super::proxy::Proxies;

/// The future of [`Resolve::resolve`].
pub(super) type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves host names. A trait, so that tests choose the addresses.
pub(super) trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a host with this port; may be empty.
    ///
    /// # Errors
    ///
    /// The lookup failed.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a>;
}

/// The resolver of the operating system.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Resolves a host and connects to it. Each resolved address is checked before the connection to it: a name that
/// resolves to another address at the second lookup (DNS rebinding) cannot get around the check.
#[derive(Clone)]
pub(super) struct Connector {
    /// Whether addresses outside the public internet are permitted.
    pub allow_private: bool,
    /// Longest time to connect to one address; then the next address is tried.
    pub connect_timeout: Duration,
    /// The proxies for calls; empty if calls are direct.
    pub proxies: Arc<Proxies>,
    /// Resolves the hosts of targets and of proxies.
    pub resolver: Arc<dyn Resolve>,
}

impl Service<Uri> for Connector {
    type Response = ConnectorStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<ConnectorStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let stream = match connector.proxies.of_target(&target) {
                None => connector.connect(&connector.permitted(&target).await?).await?,
                Some(proxy) => return connector.connect_through(&proxy, target).await,
            };
            Ok(ConnectorStream::to_target(stream))
        })
    }
}

impl Connector {
    /// Returns the permitted addresses of the target, at least one.
    ///
    /// # Errors
    ///
    /// [`Forbidden`] if no address is permitted, `NotFound` if the host has none, or the error of the lookup.
    async fn permitted(&self, target: &Uri) -> io::Result<Vec<SocketAddr>> {
        let found = self.addresses_of(target).await?;
        let Some(first) = found.first().copied() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
        };
        let permitted: Vec<SocketAddr> =
            found.into_iter().filter(|found| self.is_permitted(found.ip())).collect();
        if permitted.is_empty() { Err(forbidden(first.ip())) } else { Ok(permitted) }
    }

    fn is_permitted(&self, address: IpAddr) -> bool {
        self.allow_private || address::is_public(address)
    }

    /// Returns the addresses of a URL: the literal one, or those of its host name.
    async fn addresses_of(&self, target: &Uri) -> io::Result<Vec<SocketAddr>> {
        let default = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let port = target.port_u16().unwrap_or(default);
        match literal(target) {
            Some(address) => Ok(vec![SocketAddr::new(address, port)]),
            None => self.resolver.resolve(host(target), port).await,
        }
    }

    /// Connects to the first address that accepts; the error is that of the last address.
    async fn connect(&self, addresses: &[SocketAddr]) -> io::Result<TokioIo<TcpStream>> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            match tokio::time::timeout(self.connect_timeout, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    return Ok(TokioIo::new(stream));
                }
                Ok(Err(error)) => last = error,
                Err(_) => {
                    last = io::Error::new(io::ErrorKind::TimedOut, "no answer to the connection attempt");
                }
            }
        }
        Err(last)
    }

    /// Connects to the target through a proxy: by a tunnel for `https`, by the proxy's own requests for `http`.
    ///
    /// The operator chose the proxy, so its address is not checked. A literal address of the target is.
    async fn connect_through(&self, proxy: &Intercept, target: Uri) -> io::Result<ConnectorStream> {
        if literal(&target).is_some() || is_number(host(&target)) {
            self.permitted(&target).await?;
        }
        if proxy.uri().scheme_str() != Some("http") {
            let text = "the proxy of webhooks must have an http:// address";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let stream = self.connect(&self.addresses_of(proxy.uri()).await?).await?;
        if target.scheme() != Some(&Scheme::HTTPS) {
            return Ok(ConnectorStream::to_proxy(stream));
        }
        let mut stream = Some(stream);
        let connected = tower::service_fn(move |_: Uri| {
            std::future::ready(
                stream.take().ok_or_else(|| io::Error::other("the tunnel was requested twice")),
            )
        });
        let tunnel = Tunnel::new(proxy.uri().clone(), connected);
        let mut tunnel = match proxy.basic_auth() {
            Some(credentials) => tunnel.with_auth(credentials.clone()),
            None => tunnel,
        };
        let stream = tunnel.call(target).await;
        stream
            .map(ConnectorStream::to_target)
            .map_err(|error| io::Error::other(format!("the proxy: {error}")))
    }
}

/// Returns the host of a URL, an IPv6 address without brackets.
fn host(target: &Uri) -> &str {
    target.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// Returns the address of a URL with a literal address; `None` for a name.
fn literal(target: &Uri) -> Option<IpAddr> {
    host(target).parse().ok()
}

/// Returns whether a host is an IPv4 address in any spelling, as `127.1` or `0x7f000001`. Judged by the first character
/// of the last label: top-level domains do not begin with a digit. To resolve such a host needs no lookup in the
/// network.
fn is_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_digit())
}

/// The cause of an [`io::Error`] for a receiver whose address is not permitted. The operating system refuses some
/// addresses with the same error kind; that refusal can end, this one cannot.
#[derive(Debug, Error)]
#[error("{0} is not a public address; allow private webhooks in the server's settings to call it")]
pub(super) struct Forbidden(IpAddr);

/// Returns the error for a receiver without a permitted address.
fn forbidden(address: IpAddr) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, Forbidden(address))
}
