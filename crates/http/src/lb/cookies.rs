//! Cookies between clients and workers. Those of the console are never seen by a worker, nor set by one.

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

/// The name of the console's cookie without prefix and without the digits that some names have.
const OWN: &str = "longshore";

/// Whether a cookie has a name that the console uses.
fn is_own(name: &[u8]) -> bool {
    let bare = name.strip_prefix(b"__Host-").or_else(|| name.strip_prefix(b"__Secure-")).unwrap_or(name);
    bare.strip_prefix(OWN.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'-')
}

fn name_of(pair: &[u8]) -> &[u8] {
    pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii()
}

/// Removes the console's cookies from a request.
pub(super) fn remove_own(headers: &mut HeaderMap) {
    let has_own =
        |value: &HeaderValue| value.as_bytes().split(|byte| *byte == b';').any(|pair| is_own(name_of(pair)));
    if !headers.get_all(COOKIE).into_iter().any(has_own) {
        return;
    }
    let lines: Vec<HeaderValue> = headers.get_all(COOKIE).into_iter().filter_map(without_own).collect();
    headers.remove(COOKIE);
    for line in lines {
        headers.append(COOKIE, line);
    }
}

/// The line without the console's cookies; `None` if nothing is left.
fn without_own(line: &HeaderValue) -> Option<HeaderValue> {
    let pairs = line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let kept: Vec<&[u8]> = pairs.filter(|pair| !pair.is_empty() && !is_own(name_of(pair))).collect();
    HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok().filter(|value| !value.is_empty())
}

/// Limits the cookies that a worker sets to the host and the `prefix` of its endpoint, and removes those with a name of the
/// console. Without a prefix, their paths stay.
pub(super) fn confine(headers: &mut HeaderMap, prefix: Option<&str>) {
    if !headers.contains_key(SET_COOKIE) {
        return;
    }
    let set: Vec<HeaderValue> =
        headers.get_all(SET_COOKIE).into_iter().filter_map(|value| confined(value, prefix)).collect();
    headers.remove(SET_COOKIE);
    for value in set {
        headers.append(SET_COOKIE, value);
    }
}

/// The cookie with a path below the prefix and without a domain, which would be that of other endpoints, too; `None` for one of
/// the console.
fn confined(value: &HeaderValue, prefix: Option<&str>) -> Option<HeaderValue> {
    // A value may have bytes that are no text.
    let mut parts = value.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let pair = parts.next()?;
    if is_own(name_of(pair)) {
        return None;
    }
    let mut path = None;
    let mut others = Vec::new();
    for part in parts {
        let name = name_of(part);
        if name.eq_ignore_ascii_case(b"path") {
            let value = part.splitn(2, |byte| *byte == b'=').nth(1).unwrap_or_default().trim_ascii();
            path = Some(value).filter(|path| path.starts_with(b"/"));
        } else if !name.eq_ignore_ascii_case(b"domain") {
            others.push(part);
        }
    }
    let path = match (prefix.map(str::as_bytes), path) {
        (None, path) => path.map(<[u8]>::to_vec),
        (Some(prefix), Some(path)) if is_below(path, prefix) => Some(path.to_vec()),
        (Some(prefix), path) => Some([prefix, path.unwrap_or(b"/")].concat()),
    };
    let path = path.map(|path| [b"Path=", &path[..]].concat());
    let kept: Vec<&[u8]> = std::iter::once(pair).chain(path.as_deref()).chain(others).collect();
    HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok()
}

fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_worker_sees_a_cookie_of_the_console() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; __Host-longshore=x; longshore-012345=y"));
        headers.append(COOKIE, HeaderValue::from_static("__Secure-longshore=z"));
        headers.append(COOKIE, HeaderValue::from_static("longshoreman=2;b=\"3; 4\""));
        remove_own(&mut headers);
        let left: Vec<_> = headers.get_all(COOKIE).into_iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(left, ["a=1", "longshoreman=2; b=\"3; 4\""]);
    }

    #[test]
    fn cookies_of_workers_stay_below_their_endpoint() {
        for (set, expected) in [
            ("a=1", Some("a=1; Path=/lb/e/")),
            ("a=1; Path=/; HttpOnly", Some("a=1; Path=/lb/e/; HttpOnly")),
            ("a=1; path=/lb/e/x; Domain=example.org; Secure", Some("a=1; Path=/lb/e/x; Secure")),
            ("a=1; path=/lb/ex", Some("a=1; Path=/lb/e/lb/ex")),
            ("a=1; path=x; Max-Age=3", Some("a=1; Path=/lb/e/; Max-Age=3")),
            ("__Host-longshore=evil; Path=/", None),
            (" longshore-012345 =evil", None),
            ("longshore=evil", None),
        ] {
            let mut headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static(set))]);
            confine(&mut headers, Some("/lb/e"));
            assert_eq!(headers.get(SET_COOKIE).map(|value| value.to_str().unwrap()), expected, "{set}");
        }
    }

    #[test]
    fn cookies_of_workers_stay_at_their_host() {
        for (set, expected) in [
            ("a=1", Some("a=1")),
            ("a=1; Domain=apps.example; Path=/x; Secure", Some("a=1; Path=/x; Secure")),
            ("a=\u{e9}; Domain=apps.example", Some("a=\u{e9}")),
            ("longshore=evil", None),
        ] {
            let mut headers =
                HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_bytes(set.as_bytes()).unwrap())]);
            confine(&mut headers, None);
            assert_eq!(
                headers.get(SET_COOKIE).map(HeaderValue::as_bytes),
                expected.map(str::as_bytes),
                "{set}"
            );
        }
    }
}
