//! What a request passes before its handler runs: authentication, the endpoint, and the rate limits.

pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod client;
pub(crate) mod fallback;
pub(crate) mod interim;
pub(crate) mod parser_error;
pub(crate) mod peer;
pub(crate) mod rate_limits;
pub(crate) mod repeated_submit;
pub(crate) mod session_admission;
pub(crate) mod session_rates;
pub(crate) mod sliding_window;
