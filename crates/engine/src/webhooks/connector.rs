//! Opens connections to receivers, and to nobody else.

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

/// What [`Resolve::resolve`] returns.
pub(super) type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Looks names up.
pub(super) trait Resolve: Send + Sync + 'static {
    /// The addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a>;
}

/// As the operating system does it.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Resolves a host and connects to it. The addresses are checked here, after the name was resolved and right
/// before they are dialled: a name that answers differently the second time gains nothing.
#[derive(Clone)]
pub(super) struct Connector {
    pub allow_private: bool,
    /// How long one of several addresses may take before the next is tried.
    pub connect_timeout: Duration,
    pub proxies: Arc<Proxies>,
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
                None => connector.connect(&connector.allowed(&target).await?).await?,
                Some(proxy) => return connector.dial_through(&proxy, target).await,
            };
            Ok(ConnectorStream::to_target(stream))
        })
    }
}

impl Connector {
    /// The addresses of the target that may be dialled; at least one.
    async fn allowed(&self, target: &Uri) -> io::Result<Vec<SocketAddr>> {
        let found = self.addresses_of(target).await?;
        let Some(first) = found.first().copied() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
        };
        let allowed: Vec<SocketAddr> = found.into_iter().filter(|found| self.may_dial(found.ip())).collect();
        if allowed.is_empty() { Err(forbidden(first.ip())) } else { Ok(allowed) }
    }

    fn may_dial(&self, address: IpAddr) -> bool {
        self.allow_private || address::is_public(address)
    }

    async fn addresses_of(&self, target: &Uri) -> io::Result<Vec<SocketAddr>> {
        let default = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let port = target.port_u16().unwrap_or(default);
        match literal(target) {
            Some(address) => Ok(vec![SocketAddr::new(address, port)]),
            None => self.resolver.resolve(host(target), port).await,
        }
    }

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

    /// The proxy is the operator's: it may be anywhere.
    async fn dial_through(&self, proxy: &Intercept, target: Uri) -> io::Result<ConnectorStream> {
        if literal(&target).is_some() || is_number(host(&target)) {
            self.allowed(&target).await?;
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
            std::future::ready(stream.take().ok_or_else(|| io::Error::other("the tunnel was asked twice")))
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

fn host(target: &Uri) -> &str {
    target.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// The address that the target is written as.
fn literal(target: &Uri) -> Option<IpAddr> {
    host(target).parse().ok()
}

/// Whether a host is an IPv4 address in whatever spelling: `127.1`, `0x7f000001`. No name ends in a part with a digit in
/// front, and no question goes out to look such a one up.
fn is_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_digit())
}

/// Why a receiver is not dialled. The system refuses to dial some, too, and with the same kind of error; those may be
/// there later.
#[derive(Debug, Error)]
#[error("{0} is not a public address; allow private webhooks in the server's settings to call it")]
pub(super) struct Forbidden(IpAddr);

fn forbidden(address: IpAddr) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, Forbidden(address))
}
