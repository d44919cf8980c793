//! Opens connections to receivers, and to nobody else.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::address;

/// How long one of several addresses may take before the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Resolves a host and connects to it. The addresses are checked here, after the name was resolved and right
/// before they are dialled: a name that answers differently the second time gains nothing.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    pub allow_private: bool,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let stream = connect(&resolve(&target, allow_private).await?).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}

/// The addresses of the target that may be dialled; at least one.
async fn resolve(target: &Uri, allow_private: bool) -> io::Result<Vec<SocketAddr>> {
    let host = target.host().unwrap_or_default();
    let default = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = target.port_u16().unwrap_or(default);
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let found: Vec<SocketAddr> = match literal {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await?.collect(),
    };
    let Some(first) = found.first().copied() else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    };
    let allowed: Vec<SocketAddr> =
        found.into_iter().filter(|found| allow_private || address::is_public(found.ip())).collect();
    if allowed.is_empty() {
        let text = format!(
            "{} is not a public address; allow private webhooks in the server's settings to call it",
            first.ip()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(allowed)
}

async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no answer to the connection attempt"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(url: &str) -> String {
        let error = resolve(&url.parse().expect(url), false).await.expect_err(url);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{url}");
        error.to_string()
    }

    #[tokio::test]
    async fn a_literal_private_address_is_refused() {
        for url in
            ["http://127.0.0.1/", "http://[::1]:9/", "https://[::ffff:10.0.0.1]/", "http://169.254.169.254/"]
        {
            assert!(refused(url).await.contains("is not a public address"), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused() {
        refused("http://localhost:8080/").await;
        // The resolver of the system reads these as 127.0.0.1.
        refused("http://2130706433/").await;
        refused("http://0x7f.1/").await;
    }

    #[tokio::test]
    async fn the_port_follows_the_scheme() {
        for (url, port) in
            [("http://1.1.1.1/", 80), ("https://1.1.1.1/", 443), ("https://1.1.1.1:8443/", 8443)]
        {
            let addresses = resolve(&url.parse().unwrap(), false).await.unwrap();
            assert_eq!(addresses, [SocketAddr::new([1, 1, 1, 1].into(), port)], "{url}");
        }
    }

    #[tokio::test]
    async fn private_addresses_can_be_allowed() {
        let addresses = resolve(&"http://127.0.0.1:81/".parse().unwrap(), true).await.unwrap();
        assert_eq!(addresses, [SocketAddr::new([127, 0, 0, 1].into(), 81)]);
    }
}
