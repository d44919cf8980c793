//! The console: the page, its files, and the sessions of browsers.
//!
//! The page is a client of `/v1` and `/v2`. It is one file, the same at every address below `/console`; only the base path
//! and the hash of the assets vary in it.

mod accepts;
mod assets;
mod headers;
pub(crate) mod packed;
pub(crate) mod session;
pub(crate) mod settings;
mod shell;
mod sign_in;

use axum::Router;
use axum::routing::get;

use crate::HttpState;

/// The routes of the page and of its files.
pub(crate) fn routes() -> Router<HttpState> {
    Router::new()
        .route("/console", get(shell::shell))
        .route("/console/session", get(session::show).post(session::open).delete(session::end))
        .route("/console/{*path}", get(shell::shell))
        .route("/console/a/{hash}/{*path}", get(assets::asset))
}
