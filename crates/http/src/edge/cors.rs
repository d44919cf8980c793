//! Which web pages may call the server from a browser.
//!
//! Keys are sent in a header that scripts set, never by the browser itself, so credentials in the sense of CORS are
//! not allowed; and a preflight, which carries no key, is answered before anybody asks for one.

use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");
/// What is asked where a preflight does not say which headers the page wants to send.
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type");
/// What of our answers pages may read, beside what every page may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-Request-ID, Traceparent, RateLimit, RateLimit-Policy, Retry-After, Link, ETag, Allow, WWW-Authenticate",
);
/// How long a browser may remember the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origins whose pages may call.
#[derive(Clone, Debug)]
pub enum Origins {
    /// Every page there is.
    Any,
    /// Pages from these, such as `https://app.example`.
    These(Vec<String>),
}

impl Origins {
    /// Whether and as what the origin of a request is named in the answer.
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

/// What the answer to a cross-origin request needs; known before the request is given away.
pub(super) struct Cors {
    origin: Option<HeaderValue>,
    /// Another origin would get another answer.
    varies: bool,
}

impl Cors {
    pub(super) fn of(origins: &Origins, headers: &HeaderMap) -> Self {
        Self { origin: origins.admitted(headers), varies: matches!(origins, Origins::These(_)) }
    }

    /// The answer to a browser that asks whether it may send a request; none if this is another `OPTIONS`.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let asks = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.origin.is_none() {
            return None;
        }
        let mut answer = StatusCode::NO_CONTENT.into_response();
        // Client libraries send headers of their own by the dozen; which they are does not matter here.
        let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or(HEADERS);
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, wanted),
            (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ] {
            answer.headers_mut().insert(name, value);
        }
        Some(answer)
    }

    /// Lets the page read the answer, if its origin may.
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
