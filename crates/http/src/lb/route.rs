//! Finds the endpoint of a request: by the path `/lb/{endpoint}/…`, or by the host `{endpoint}.{lb_domain}`.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};

use crate::HttpState;
use crate::wire::base_path::without_base;

/// The endpoint that a request names, and the path for its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The endpoint's id or slug.
    pub(crate) endpoint: String,
    /// What the client's path had before `path`, without the server's base path; `None` if the host names the endpoint.
    pub(super) prefix: Option<String>,
    /// The path and query for the worker, as the client wrote them.
    pub(super) path: PathAndQuery,
}

impl Target {
    /// What the client's path had before the worker's path, with the server's base path.
    pub(super) fn full_prefix(&self, state: &HttpState) -> Option<String> {
        self.prefix.as_ref().map(|prefix| [state.console().base.as_str(), prefix].concat())
    }
}

/// The target of a request; `None` if the request is for another part of the server.
pub(crate) fn target(state: &HttpState, uri: &Uri, headers: &HeaderMap) -> Option<Target> {
    by_host(state.lb_domain(), uri, headers).or_else(|| by_path(&state.console().base, uri))
}

/// Whether the host of a request names a load-balancing endpoint. The path does not matter.
pub(crate) fn is_named_by_host(domain: Option<&str>, uri: &Uri, headers: &HeaderMap) -> bool {
    by_host(domain, uri, headers).is_some()
}

/// The target of a path. Slashes of a slug are escaped in it.
fn by_path(base: &str, uri: &Uri) -> Option<Target> {
    let path = uri.path();
    let own = if base.is_empty() { path } else { without_base(path, base).unwrap_or(path) };
    let named = own.strip_prefix("/lb/")?;
    let name = named.split('/').next().filter(|name| !name.is_empty())?;
    let endpoint = unescaped(name)?.into_owned();
    let rest = with_query(&named[name.len()..], uri.query())?;
    Some(Target { endpoint, prefix: Some(["/lb/", name].concat()), path: rest })
}

/// The target of a host. The authority of an absolute URI counts before `Host`, as RFC 9112 (3.2.2) requires.
fn by_host(domain: Option<&str>, uri: &Uri, headers: &HeaderMap) -> Option<Target> {
    let domain = domain?;
    let host = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => headers.get(HOST)?.to_str().ok()?,
    };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
    // The root of all names may be written.
    let name = name.strip_suffix('.').unwrap_or(&name);
    let endpoint = name.strip_suffix(domain)?.strip_suffix('.')?;
    if endpoint.is_empty() || endpoint.contains('.') {
        return None;
    }
    let path = with_query(uri.path(), uri.query())?;
    Some(Target { endpoint: endpoint.to_owned(), prefix: None, path })
}

fn with_query(path: &str, query: Option<&str>) -> Option<PathAndQuery> {
    let path = if path.is_empty() { "/" } else { path };
    match query {
        None => PathAndQuery::try_from(path).ok(),
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")).ok(),
    }
}

/// The name of an endpoint in a path. `None` if anything but a slash is escaped in it.
fn unescaped(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains('%') {
        return Some(Cow::Borrowed(name));
    }
    let plain = name.replace("%2F", "/").replace("%2f", "/");
    (!plain.contains('%')).then_some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(base: &str, uri: &str) -> Option<(String, String, String)> {
        let target = by_path(base, &uri.parse().unwrap())?;
        Some((target.endpoint, target.prefix.unwrap_or_default(), target.path.to_string()))
    }

    #[test]
    fn the_path_after_the_endpoint_is_the_workers_as_it_was_written() {
        for (base, uri, endpoint, prefix, path) in [
            ("", "/lb/e", "e", "/lb/e", "/"),
            ("", "/lb/e/", "e", "/lb/e", "/"),
            ("", "/lb/e?a=/lb/f", "e", "/lb/e", "/?a=/lb/f"),
            ("", "/lb/e//a/../b/%2e%2E/?x=1&y", "e", "/lb/e", "//a/../b/%2e%2E/?x=1&y"),
            ("", "/lb/org%2Fmodel/v1", "org/model", "/lb/org%2Fmodel", "/v1"),
            ("/base", "/base/lb/e/x", "e", "/lb/e", "/x"),
            ("/base", "/lb/e/x", "e", "/lb/e", "/x"),
            ("", "http://other.example/lb/e/x", "e", "/lb/e", "/x"),
        ] {
            let expected = (endpoint.to_owned(), prefix.to_owned(), path.to_owned());
            assert_eq!(found(base, uri), Some(expected), "{uri}");
        }
        for uri in ["/lb", "/lb/", "/lb//x", "/lb/%65/x", "/v2/lb/run", "/x/lb/e", "//lb/e"] {
            assert_eq!(found("", uri), None, "{uri}");
        }
    }

    #[test]
    fn a_host_names_the_endpoint_by_one_label() {
        let host = |uri: &str, host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            by_host(Some("apps.example"), &uri.parse().unwrap(), &headers).map(|target| target.endpoint)
        };
        assert_eq!(host("/x", "chat.apps.example").as_deref(), Some("chat"));
        assert_eq!(host("/x", "CHAT.Apps.Example:8080").as_deref(), Some("chat"));
        assert_eq!(host("/x", "chat.apps.example.:8080").as_deref(), Some("chat"));
        assert_eq!(host("http://chat.apps.example/x", "other").as_deref(), Some("chat"));
        assert_eq!(host("http://other/x", "chat.apps.example"), None, "the authority of the URI counts");
        for other in
            ["apps.example", ".apps.example", "a.b.apps.example", "chatapps.example", "chat.apps.example.org"]
        {
            assert_eq!(host("/x", other), None, "{other}");
        }
    }
}
