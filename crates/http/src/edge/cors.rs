//! CORS: which web pages may call the server from a browser.
//!
//! Scripts send keys in a header, never the browser itself, so credentials in the sense of CORS are not allowed. A
//! preflight carries no key, and is answered before the key is checked.

use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::sessions::CONSOLE_HEADER;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");
/// The allowed headers if a preflight does not name the headers that the page wants to send.
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type");
/// Response headers that pages may read, beside those that every page may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-Request-ID, Traceparent, RateLimit, RateLimit-Policy, Retry-After, Link, ETag, Allow, WWW-Authenticate",
);
/// How long a browser may cache the response to a preflight, in s.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origins whose web pages may call the server.
#[derive(Clone, Debug)]
pub enum Origins {
    /// Every origin is allowed.
    Any,
    /// These origins, such as `https://app.example`.
    These(Vec<String>),
}

impl Origins {
    /// The value of `Access-Control-Allow-Origin` for a request; `None` if its origin is not allowed.
    fn admitted(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::These(known) => {
                known.iter().any(|known| origin.as_bytes() == known.as_bytes()).then(|| origin.clone())
            }
        }
    }
}

/// The origin of a request, if it is allowed: taken before the request is passed on, for the headers of its response.
pub(super) struct Cors {
    origin: Option<HeaderValue>,
    /// The response depends on the origin, so that `Vary` names it.
    varies: bool,
}

impl Cors {
    pub(super) fn of(origins: &Origins, headers: &HeaderMap) -> Self {
        Self { origin: origins.admitted(headers), varies: matches!(origins, Origins::These(_)) }
    }

    /// The response to a preflight; `None` for any other request, for other origins, and for the header with which the
    /// console's page proves that it is of this server.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let asks = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.origin.is_none() {
            return None;
        }
        let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
        if wanted.is_some_and(names_console_header) {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        // Client libraries send many headers of their own; the server allows all of them.
        let wanted = wanted.cloned().unwrap_or(HEADERS);
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, wanted),
            (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ] {
            response.headers_mut().insert(name, value);
        }
        Some(response)
    }

    /// Adds the headers that let the page read the response, if its origin is allowed.
    pub(super) fn mark(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

fn names_console_header(wanted: &HeaderValue) -> bool {
    let mut names = wanted.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    names.any(|name| name.eq_ignore_ascii_case(CONSOLE_HEADER.as_str().as_bytes()))
}
