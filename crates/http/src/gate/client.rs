//! How the client of a request reaches this server: its address, TLS and the base path, also behind a proxy that the
//! operator trusts.

use std::borrow::Cow;

use http::HeaderMap;
use longshore_engine::ClientAddress;

use crate::HttpState;
use crate::gate::peer::Peer;
use crate::sessions::cookie::CookieRule;
use crate::wire::base_path::is_base_path;

/// The address of the client; `None` outside of a connection.
pub(crate) fn address(state: &HttpState, headers: &HeaderMap) -> Option<ClientAddress> {
    let caller = Peer::current()?.caller;
    let proxies = &state.console().trusted_proxies;
    if proxies.is_empty() {
        return Some(caller);
    }
    let address = proxies.client(caller.address, headers);
    Some(if address == caller.address { caller } else { Peer::new(address, false).caller })
}

/// What a proxy puts before every path: the setting, or the header of a trusted proxy.
pub(crate) fn base<'a>(state: &'a HttpState, headers: &'a HeaderMap) -> Cow<'a, str> {
    let console = state.console();
    let sent = headers.get("x-forwarded-prefix").filter(|_| is_behind_proxy(state));
    let sent = sent.and_then(|value| value.to_str().ok()).map(|prefix| prefix.trim_end_matches('/'));
    match sent.filter(|prefix| console.base.is_empty() && is_base_path(prefix)) {
        Some(prefix) => Cow::Borrowed(prefix),
        None => Cow::Borrowed(&console.base),
    }
}

/// Whether the browser's connection is encrypted: up to this server, or up to a proxy in front of it.
pub(crate) fn is_tls(state: &HttpState, headers: &HeaderMap) -> bool {
    let says_https = || headers.get("x-forwarded-proto").is_some_and(|value| value.as_bytes() == b"https");
    Peer::current().is_some_and(|peer| peer.is_tls)
        || state.console().is_public_https()
        || (is_behind_proxy(state) && says_https())
}

/// Name and attributes of the session's cookie for this request.
pub(crate) fn cookie_rule(state: &HttpState, headers: &HeaderMap) -> CookieRule {
    CookieRule::new(&base(state, headers), is_tls(state, headers), state.installation())
}

/// Whether the request came from a proxy that the operator trusts.
pub(crate) fn is_behind_proxy(state: &HttpState) -> bool {
    let proxies = &state.console().trusted_proxies;
    !proxies.is_empty() && Peer::current().is_some_and(|peer| proxies.contains(peer.caller.address))
}
