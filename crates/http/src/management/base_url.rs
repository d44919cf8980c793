//! The address at which an external worker reaches this server.

use http::HeaderMap;
use http::header::HOST;

use crate::gate::peer::Peer;

/// The address at which the client reached this server: scheme and host, without a slash at the end. Both come from
/// the request or from the headers of a proxy. `None` for a request without a host.
pub(super) fn base_url(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_tls =
        Peer::current().is_some_and(|peer| peer.is_tls) || text("x-forwarded-proto") == Some("https");
    let scheme = if is_tls { "https" } else { "http" };
    let host = text("x-forwarded-host").or_else(|| text(HOST.as_str()))?;
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_address_is_the_one_the_client_used() {
        let mut headers = HeaderMap::new();
        assert_eq!(base_url(&headers), None);
        headers.insert(HOST, "10.0.0.1:8080".parse().unwrap());
        assert_eq!(base_url(&headers).as_deref(), Some("http://10.0.0.1:8080"));
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        headers.insert("x-forwarded-host", "jobs.example".parse().unwrap());
        assert_eq!(base_url(&headers).as_deref(), Some("https://jobs.example"));
    }
}
