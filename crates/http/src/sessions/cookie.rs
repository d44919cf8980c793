//! The cookie of a session: its name, its attributes, and how it is found in a request.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// The cookie's name without a prefix.
const NAME: &str = "longshore";

/// Name and attributes of the cookie for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CookieRule {
    name: String,
    path: String,
    is_secure: bool,
}

impl CookieRule {
    /// The rule for a server that browsers reach under the path `base`, over TLS if `is_tls`. Cookies do not distinguish
    /// ports, so without TLS the name has six digits of `installation`: two servers of one computer would end each
    /// other's sessions.
    pub(crate) fn new(base: &str, is_tls: bool, installation: &str) -> Self {
        let name = match (is_tls, base) {
            (true, "") => format!("__Host-{NAME}"),
            (true, _) => format!("__Secure-{NAME}"),
            (false, _) => format!("{NAME}-{}", installation.get(..6).unwrap_or(installation)),
        };
        Self { name, path: format!("{base}/"), is_secure: is_tls }
    }

    /// The cookie's value in a request. The first one counts.
    pub(crate) fn read<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(name, _)| *name == self.name).map(|(_, value)| value)
    }

    /// The value of `Set-Cookie` that stores the session for `max_age_s` seconds.
    pub(crate) fn set(&self, value: &str, max_age_s: u64) -> Option<HeaderValue> {
        let Self { name, path, is_secure } = self;
        let secure = if *is_secure { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
        let mut header = HeaderValue::try_from(text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The value of `Set-Cookie` that removes the cookie.
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        self.set("", 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_attributes_follow_the_address() {
        for (base, is_tls, expected) in [
            ("", true, "__Host-longshore=v; Path=/; Max-Age=9; HttpOnly; SameSite=Strict; Secure"),
            ("/a", true, "__Secure-longshore=v; Path=/a/; Max-Age=9; HttpOnly; SameSite=Strict; Secure"),
            ("", false, "longshore-012345=v; Path=/; Max-Age=9; HttpOnly; SameSite=Strict"),
            ("/a", false, "longshore-012345=v; Path=/a/; Max-Age=9; HttpOnly; SameSite=Strict"),
        ] {
            let rule = CookieRule::new(base, is_tls, "0123456789");
            assert_eq!(rule.set("v", 9).unwrap(), expected);
            assert!(rule.clear().unwrap().to_str().unwrap().contains("; Max-Age=0;"));
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let rule = CookieRule::new("", true, "");
        let mut headers = HeaderMap::new();
        assert_eq!(rule.read(&headers), None);
        headers.append(COOKIE, HeaderValue::from_static("a=1; longshore=2; x__Host-longshore=3"));
        assert_eq!(rule.read(&headers), None);
        headers.append(COOKIE, HeaderValue::from_bytes(b"b=\xff; __Host-longshore=0").unwrap());
        assert_eq!(rule.read(&headers), None, "a header that is no text is left out");
        headers.append(COOKIE, HeaderValue::from_static("c;__Host-longshore=4;__Host-longshore=5"));
        assert_eq!(rule.read(&headers), Some("4"));
    }
}
