//! The key of a WebSocket from a page: `Sec-WebSocket-Protocol: longshore, longshore.key.<key>`.

use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Version};

/// The protocol that a page offers beside its key, and that the server answers if the worker chooses none.
const PROTOCOL: &str = "longshore";
const KEY_PREFIX: &str = "longshore.key.";

/// Whether a request asks for a WebSocket. No other upgrade is forwarded.
pub(super) fn is_asked(method: &Method, version: Version, headers: &HeaderMap) -> bool {
    method == Method::GET
        && version == Version::HTTP_11
        && lists(headers, &UPGRADE, "websocket")
        && lists(headers, &CONNECTION, "upgrade")
}

/// Whether a worker that leaves HTTP does so for a WebSocket.
pub(super) fn is_chosen(headers: &HeaderMap) -> bool {
    lists(headers, &UPGRADE, "websocket")
}

/// Whether a list of words in a header has this one, in any case.
pub(super) fn lists(headers: &HeaderMap, name: &http::HeaderName, word: &str) -> bool {
    words(headers, name).any(|listed| listed.eq_ignore_ascii_case(word))
}

/// The key among the offered protocols.
pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    words(headers, &SEC_WEBSOCKET_PROTOCOL).find_map(|protocol| protocol.strip_prefix(KEY_PREFIX))
}

/// Removes the key from the offered protocols. Returns whether the client offered [`PROTOCOL`].
pub(super) fn remove_key(headers: &mut HeaderMap) -> bool {
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return false;
    }
    let offered = words(headers, &SEC_WEBSOCKET_PROTOCOL).filter(|word| !word.starts_with(KEY_PREFIX));
    let offered: Vec<String> = offered.map(str::to_owned).collect();
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let (false, Ok(value)) = (offered.is_empty(), HeaderValue::try_from(offered.join(", "))) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
    offered.iter().any(|word| word == PROTOCOL)
}

/// Chooses [`PROTOCOL`] in a response whose worker chose none: a browser closes the connection otherwise.
pub(super) fn choose_protocol(headers: &mut HeaderMap) {
    headers.entry(SEC_WEBSOCKET_PROTOCOL).or_insert(HeaderValue::from_static(PROTOCOL));
}

fn words<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_read_and_removed() {
        let mut headers = HeaderMap::new();
        assert_eq!(key(&headers), None);
        assert!(!remove_key(&mut headers));
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("longshore, longshore.key.ls_a_b"));
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("chat"));
        assert_eq!(key(&headers), Some("ls_a_b"));
        assert!(remove_key(&mut headers));
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "longshore, chat");
        let mut only =
            HeaderMap::from_iter([(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("longshore.key.k"))]);
        assert!(!remove_key(&mut only));
        assert!(only.is_empty());
    }

    #[test]
    fn only_websockets_are_upgraded() {
        let asks = |upgrade: &'static str, connection: &'static str| {
            let headers = [
                (UPGRADE, HeaderValue::from_static(upgrade)),
                (CONNECTION, HeaderValue::from_static(connection)),
            ];
            is_asked(&Method::GET, Version::HTTP_11, &HeaderMap::from_iter(headers))
        };
        assert!(asks("WebSocket", "keep-alive, Upgrade"));
        assert!(!asks("h2c", "upgrade, http2-settings") && !asks("websocket", "keep-alive"));
        let headers = HeaderMap::from_iter([
            (UPGRADE, HeaderValue::from_static("websocket")),
            (CONNECTION, HeaderValue::from_static("upgrade")),
        ]);
        assert!(
            !is_asked(&Method::POST, Version::HTTP_11, &headers)
                && !is_asked(&Method::GET, Version::HTTP_10, &headers)
        );
    }
}
