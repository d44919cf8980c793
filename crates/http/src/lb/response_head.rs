//! The head of a worker's response as the client gets it.

use http::header::{
    ALT_SVC, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, LOCATION, PROXY_AUTHENTICATE,
    STRICT_TRANSPORT_SECURITY, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::cookies;
use super::request_head::{is_own, remove_hop_by_hop};

/// What a page of a worker may do that has the origin of the console: nothing with that origin.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("sandbox allow-scripts allow-forms allow-popups allow-downloads");
/// Headers that act on all pages of an origin, which a worker may not do where it has the origin of the console.
const OF_ALL_PAGES: [HeaderName; 7] = [
    ALT_SVC,
    STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
    HeaderName::from_static("reporting-endpoints"),
    HeaderName::from_static("service-worker-allowed"),
];

/// Whether the body has no transfer coding but the one that hyper decodes. Of another one, hyper passes the bytes on as they
/// are, and they would look like the body.
pub(super) fn is_decoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

/// Makes the headers of a response those that the client gets. `prefix` is what the client's path had before the worker's;
/// `host` is the worker's own address.
pub(super) fn rewrite(headers: &mut HeaderMap, prefix: Option<&str>, host: &HeaderValue, is_sandboxed: bool) {
    if headers.contains_key(TRANSFER_ENCODING) || !is_one_length(headers) {
        // The coding says where the body ends: RFC 9112 (6.3). hyper writes the length of a body that is there.
        headers.remove(CONTENT_LENGTH);
    }
    remove_hop_by_hop(headers, |name| {
        matches!(*name, TRANSFER_ENCODING | PROXY_AUTHENTICATE)
            || (is_sandboxed && OF_ALL_PAGES.contains(name))
            || is_own(name)
    });
    relocate(headers, prefix.unwrap_or_default(), host);
    cookies::confine(headers, prefix);
    if is_sandboxed {
        headers.append(CONTENT_SECURITY_POLICY, SANDBOX);
    }
}

/// Whether there is no `Content-Length`, or one number. hyper checks those of responses with a body alone, and not those to HEAD.
fn is_one_length(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(CONTENT_LENGTH).into_iter();
    lengths.next().is_none_or(|value| value.as_bytes().iter().all(u8::is_ascii_digit))
        && lengths.next().is_none()
}

/// Makes a redirect to the worker's own address one to its address for clients. A worker that does not know its prefix
/// redirects to a path without it.
fn relocate(headers: &mut HeaderMap, prefix: &str, host: &HeaderValue) {
    let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else { return };
    let host = host.to_str().unwrap_or_default();
    let own = ["http://", "https://", "//"]
        .iter()
        .find_map(|scheme| location.strip_prefix(scheme)?.strip_prefix(host));
    let path = match own {
        Some("") => "/",
        Some(rest) if rest.starts_with(['/', '?', '#']) => rest,
        None if location.starts_with('/') && !location.starts_with("//") => location,
        Some(_) | None => return,
    };
    let knows_prefix =
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
    let slash = if path.starts_with('/') { "" } else { "/" };
    let relocated =
        if knows_prefix && !prefix.is_empty() { path.to_owned() } else { format!("{prefix}{slash}{path}") };
    if let Ok(value) = HeaderValue::try_from(relocated) {
        headers.insert(LOCATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_not_one_number_does_not_reach_the_client() {
        for (lengths, is_kept) in
            [("12", true), ("-2", false), ("+2", false), ("2, 2", false), ("2|2", false)]
        {
            let mut headers = HeaderMap::new();
            for length in lengths.split('|') {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(length));
            }
            rewrite(&mut headers, None, &HeaderValue::from_static("127.0.0.1:20000"), false);
            assert_eq!(headers.contains_key(CONTENT_LENGTH), is_kept, "{headers:?}");
        }
    }

    #[test]
    fn redirects_of_a_worker_lead_to_its_address_for_clients() {
        for (sent, prefix, expected) in [
            ("/items/", "/lb/e", "/lb/e/items/"),
            ("/lb/e/items/", "/lb/e", "/lb/e/items/"),
            ("/lb/eve", "/lb/e", "/lb/e/lb/eve"),
            ("http://127.0.0.1:20000/items/?a=1", "/lb/e", "/lb/e/items/?a=1"),
            ("http://127.0.0.1:20000", "/lb/e", "/lb/e/"),
            ("http://127.0.0.1:20000/items/", "", "/items/"),
            ("/items/", "", "/items/"),
            ("http://127.0.0.1:200001/x", "/lb/e", "http://127.0.0.1:200001/x"),
            ("https://example.org/x", "/lb/e", "https://example.org/x"),
            ("//example.org/x", "/lb/e", "//example.org/x"),
            ("items/", "/lb/e", "items/"),
        ] {
            let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(sent))]);
            relocate(&mut headers, prefix, &HeaderValue::from_static("127.0.0.1:20000"));
            assert_eq!(headers[LOCATION], expected, "{sent}");
        }
    }
}
