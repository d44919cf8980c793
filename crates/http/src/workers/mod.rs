//! The worker protocol: how handlers written for the official worker SDK fetch jobs and bring results.
//!
//! Everything is told apart by its path alone. Query parameters are optional, headers besides the token mean
//! nothing, and bodies are raw bytes whatever their content type says.

mod address;
mod chunks;
mod job_object;
mod lenient;
mod pings;
mod polls;
mod report;
mod reports;

use axum::Router;
use axum::routing::{get, post};

use crate::HttpState;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new()
        .route("/v2/{endpoint}/job-take/{worker}", get(polls::take))
        .route("/v2/{endpoint}/job-take-batch/{worker}", get(polls::take_batch))
        .route("/v2/{endpoint}/job-stop/{worker}", get(polls::stop))
        .route("/v2/{endpoint}/job-done/{worker}/{job}", post(reports::done))
        .route("/v2/{endpoint}/job-stream/{worker}/{job}", post(reports::stream))
        .route("/v2/{endpoint}/ping/{worker}", get(pings::ping))
}
