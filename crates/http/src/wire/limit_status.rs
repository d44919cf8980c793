//! The state of one rate limit as response headers show it.

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// How much of one rate limit a client has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitStatus {
    /// The name of the limit.
    pub(crate) name: &'static str,
    /// Requests that the limit admits in one window.
    pub(crate) rate: u32,
    /// The length of the window, in s.
    pub(crate) window_s: u64,
    /// Requests that are admitted now.
    pub(crate) left: u32,
    /// Time until more requests are admitted, in s.
    pub(crate) reset_s: u64,
}

impl LimitStatus {
    /// Adds the fields of the IETF draft "`RateLimit` header fields for HTTP" (structured fields, RFC 9651).
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let name = self.name;
        let policy = format!("\"{name}\";q={};w={}", self.rate, self.window_s);
        let limit = format!("\"{name}\";r={};t={}", self.left, self.reset_s);
        for (field, value) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, limit)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(field, value);
            }
        }
    }
}
