//! Sessions of the console: a browser that is signed in with an API key.
//!
//! A session is a cookie of 256 random bits, of which the store has the hash. The cookie counts only together with a header
//! that pages of other origins cannot send: browsers ask the server first, and the server never allows it. So a form, a link
//! or a script of another page reaches the server as a request without a key.

pub(crate) mod cookie;
pub(crate) mod csrf;
pub(crate) mod failed_sign_ins;
pub(crate) mod lookup;
pub(crate) mod minted;

use http::HeaderName;

/// The header with which the console sends the session's CSRF value, or `new` where it has none yet.
pub(crate) const CONSOLE_HEADER: HeaderName = HeaderName::from_static("x-longshore-console");

/// The value of [`CONSOLE_HEADER`] in requests that get the CSRF value.
pub(crate) const NEW: &str = "new";
