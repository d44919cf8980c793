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

/// Limits the cookies that a worker sets to the `prefix` of its endpoint, and removes those with a name of the console.
pub(super) fn confine(headers: &mut HeaderMap, prefix: &str) {
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

/// The cookie with a path below the prefix and without a domain; `None` for one of the console.
fn confined(value: &HeaderValue, prefix: &str) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let mut parts = text.split(';').map(str::trim);
    let pair = parts.next()?;
    if is_own(name_of(pair.as_bytes())) {
        return None;
    }
    let mut path = None;
    let mut others = String::new();
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if name.trim().eq_ignore_ascii_case("path") {
            path = Some(value.trim()).filter(|path| path.starts_with('/'));
        } else if !name.trim().eq_ignore_ascii_case("domain") {
            others.push_str("; ");
            others.push_str(part);
        }
    }
    let path = match path {
        Some(path)
            if path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')) =>
        {
            path.to_owned()
        }
        Some(path) => format!("{prefix}{path}"),
        None => format!("{prefix}/"),
    };
    HeaderValue::try_from(format!("{pair}; Path={path}{others}")).ok()
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
            confine(&mut headers, "/lb/e");
            assert_eq!(headers.get(SET_COOKIE).map(|value| value.to_str().unwrap()), expected, "{set}");
        }
    }
}
