//! The job interface.

use axum::Router;

use crate::HttpState;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new()
}
