//! What a request passes before its handler runs: authentication, the endpoint, and the rate limits.

pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod fallback;
pub(crate) mod peer;
pub(crate) mod rate_limits;
pub(crate) mod sliding_window;
