//! The head of a request as its worker gets it.

use axum::extract::Request;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body as HttpBody;

use super::cookies;
use super::websocket;
use crate::HttpState;
use crate::gate::{client, peer};
use crate::wire::request_id::{REQUEST_ID, RequestId};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Headers that concern one connection, beside those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 6] =
    [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, PROXY_AUTHORIZATION, TE, UPGRADE];

/// Headers by which proxies name the client, beside those that the server sets. They count only behind a trusted proxy.
const OF_PROXIES: [HeaderName; 3] = [
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-server"),
];

/// What the connection of a request says about it.
pub(super) struct Context {
    /// The value of `X-Forwarded-For`.
    forwarded_for: Option<HeaderValue>,
    /// The value of `X-Forwarded-Proto`.
    proto: HeaderValue,
    /// The value of `X-Forwarded-Host`; `None` without a `Host`.
    host: Option<HeaderValue>,
    /// The value of `X-Forwarded-Prefix`; `None` if the host names the endpoint.
    prefix: Option<HeaderValue>,
    /// The value of `X-Request-Id`.
    id: HeaderValue,
    /// Whether headers of a proxy count.
    is_trusted: bool,
    /// Whether the client asks for a WebSocket.
    pub(super) is_websocket: bool,
}

impl Context {
    /// The context of a request, whose path had `prefix` before that of the worker. Must be called in the task of its
    /// connection.
    pub(super) fn of(state: &HttpState, prefix: Option<&str>, request: &Request, id: &RequestId) -> Self {
        let headers = request.headers();
        let is_trusted = client::is_behind_proxy(state);
        let sent = |name: &HeaderName| headers.get(name).filter(|_| is_trusted).cloned();
        let scheme = if client::is_tls(state, headers) { "https" } else { "http" };
        let authority = request.uri().authority().and_then(|it| HeaderValue::try_from(it.as_str()).ok());
        let prefix = prefix.map(|own| {
            let before = sent(&FORWARDED_PREFIX).and_then(|it| it.to_str().ok().map(str::to_owned));
            [before.as_deref().unwrap_or_default().trim_end_matches('/'), own].concat()
        });
        Self {
            forwarded_for: forwarded_for(headers, is_trusted),
            proto: sent(&FORWARDED_PROTO).unwrap_or(HeaderValue::from_static(scheme)),
            host: sent(&FORWARDED_HOST).or(authority).or_else(|| headers.get(HOST).cloned()),
            prefix: prefix.and_then(|prefix| HeaderValue::try_from(prefix).ok()),
            id: id.header(),
            is_trusted,
            // A body that never ends would keep the connection from leaving HTTP.
            is_websocket: request.body().is_end_stream()
                && websocket::is_asked(request.method(), request.version(), headers),
        }
    }

    /// Makes the headers of a request those that its worker gets, all but `Host`. Returns whether the client offered the
    /// protocol of the server for a WebSocket.
    pub(super) fn apply(self, headers: &mut HeaderMap, pass_authorization: bool) -> bool {
        let takes_trailers = websocket::lists(headers, &TE, "trailers");
        if headers.contains_key(TRANSFER_ENCODING) {
            headers.remove(CONTENT_LENGTH);
        }
        // The server has answered `Expect`, or does so when it reads the body.
        remove_hop_by_hop(headers, |name| {
            matches!(*name, EXPECT | TRANSFER_ENCODING | FORWARDED)
                || (*name == AUTHORIZATION && !pass_authorization)
                || (!self.is_trusted && OF_PROXIES.contains(name))
                || is_own(name)
                || is_read_as_own(name)
        });
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        cookies::remove_own(headers);
        let offered = websocket::remove_key(headers);
        let set = [
            (FORWARDED_FOR, self.forwarded_for),
            (FORWARDED_PROTO, Some(self.proto)),
            (FORWARDED_HOST, self.host),
            (FORWARDED_PREFIX, self.prefix),
            (REQUEST_ID, Some(self.id)),
        ];
        for (name, value) in set {
            match value {
                Some(value) => drop(headers.insert(name, value)),
                None => drop(headers.remove(name)),
            }
        }
        if self.is_websocket {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        offered
    }
}

/// The value of `X-Forwarded-For`: the hops that a trusted proxy names, and the client of this connection. `None` if none is
/// known.
fn forwarded_for(headers: &HeaderMap, is_trusted: bool) -> Option<HeaderValue> {
    let peer = peer::address_header();
    let before = headers.get_all(FORWARDED_FOR).into_iter().filter(|_| is_trusted);
    let mut hops: Vec<&str> = before.filter_map(|value| value.to_str().ok()).collect();
    if hops.is_empty() {
        return peer;
    }
    hops.extend(peer.as_ref().and_then(|peer| peer.to_str().ok()));
    HeaderValue::try_from(hops.join(", ")).ok().filter(|value| !value.is_empty())
}

/// Removes the headers that concern one connection, and those that `is_other` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap, is_other: impl Fn(&HeaderName) -> bool) {
    if headers.contains_key(CONNECTION) {
        // Nearly always one word that names no header. There may be several lines.
        let is_word = |line: &HeaderValue| {
            matches!(line.as_bytes(), b"keep-alive" | b"close" | b"Upgrade" | b"upgrade")
        };
        if !headers.get_all(CONNECTION).iter().all(is_word) {
            for name in named_by_connection(headers) {
                headers.remove(name);
            }
        }
    }
    // One pass over the few names that there are costs less than a lookup of each that there may be.
    let removed = |name: &&HeaderName| HOP_BY_HOP.contains(*name) || is_other(name);
    let removed: Vec<HeaderName> = headers.keys().filter(removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let names = lines.flat_map(|line| line.split(','));
    names.filter_map(|name| HeaderName::try_from(name.trim()).ok()).collect()
}

/// Names the framing of a body whose length is not known. Without that, hyper sends a GET or HEAD without its body.
pub(super) fn mark_chunked(headers: &mut HeaderMap, body: &impl HttpBody) {
    if !body.is_end_stream() && body.size_hint().exact().is_none() {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Removes from the trailers of a request what a worker gets of this server alone, or not at all: some servers take trailers for
/// headers.
pub(super) fn clean_trailers(trailers: &mut HeaderMap) {
    remove_hop_by_hop(trailers, |name| {
        matches!(*name, AUTHORIZATION | COOKIE | EXPECT | FORWARDED | HOST | TRANSFER_ENCODING)
            || *name == REQUEST_ID
            || OF_PROXIES.contains(name)
            || name.as_str().starts_with("x-forwarded-")
            || is_own(name)
            || is_read_as_own(name)
    });
}

/// Whether a header has a name of this server: `X-Longshore-…`.
pub(super) fn is_own(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-longshore-")
}

/// Whether CGI and WSGI servers take a header for one that the server sets, because they do not tell `_` from `-`.
fn is_read_as_own(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.contains('_')
        && [
            "x-forwarded-",
            "x-longshore-",
            "x-request-id",
            "x-real-ip",
            "content-length",
            "transfer-encoding",
        ]
        .iter()
        .any(|own| name.replace('_', "-").starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_underscores_is_not_read_as_one_of_the_server() {
        for name in
            ["x_forwarded_for", "x-forwarded_proto", "x_longshore_key", "x_request_id", "transfer_encoding"]
        {
            assert!(is_read_as_own(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["x-forwarded-for", "x_api_key", "x_forwarded"] {
            assert!(!is_read_as_own(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn trailers_of_a_request_name_neither_its_client_nor_who_it_is() {
        let mut trailers = HeaderMap::new();
        for name in
            ["x-sum", "x-forwarded-for", "x_forwarded_for", "x-real-ip", "cookie", "x-request-id", "host"]
        {
            trailers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        clean_trailers(&mut trailers);
        assert_eq!(trailers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-sum"]);
    }

    #[test]
    fn every_line_of_connection_names_headers_to_remove() {
        let mut headers = HeaderMap::new();
        for line in ["close", "X-Hop, keep-alive", "Upgrade, HTTP2-Settings"] {
            headers.append(CONNECTION, HeaderValue::from_static(line));
        }
        for name in ["x-hop", "http2-settings", "upgrade", "te", "x-end-to-end"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        remove_hop_by_hop(&mut headers, |_| false);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-end-to-end"]);
    }
}
