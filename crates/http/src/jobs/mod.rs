//! The job interface, on two mounts: `/v2/{endpoint}` to the letter of the specification, `/sdk/v2/{endpoint}`
//! for the official client libraries. They differ in what `/stream` answers, and in nothing else.

mod call;
mod change;
mod envelope;
mod follow;
mod health;
mod idempotency;
mod record;
mod requests;
mod stream;
mod submit;

use axum::extract::{RawPathParams, Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use axum::{RequestExt as _, Router};
use longshore_model::Operation::{Jobs, Read};

use self::call::{Call, Gate};
pub use self::envelope::members_of_submit;
use self::stream::Shape;
use crate::HttpState;
use crate::edge::Answering;
use crate::errors::Failure;
use crate::rate_limits::Bucket;

pub(crate) use self::call::JobPath;

const RUN: Gate = Gate::limited(Jobs, Bucket::Run);
const RUNSYNC: Gate = Gate::limited(Jobs, Bucket::Runsync);
const STATUS: Gate = Gate::limited(Read, Bucket::Status);

/// `POST /run`.
pub(crate) fn run(state: HttpState, path: JobPath<'_>, request: Request) -> Answering {
    RUN.pass(state, path, request, submit::run)
}

/// `POST /runsync`.
pub(crate) fn runsync(state: HttpState, path: JobPath<'_>, request: Request) -> Answering {
    RUNSYNC.pass(state, path, request, submit::runsync)
}

/// `GET|POST /status/{job}`.
pub(crate) fn status(state: HttpState, path: JobPath<'_>, request: Request) -> Answering {
    STATUS.pass(state, path, request, follow::status)
}

pub(crate) fn routes() -> Router<HttpState> {
    Router::new()
        .merge(mount("/v2/{endpoint}", Shape::Array))
        .merge(mount("/sdk/v2/{endpoint}", Shape::Envelope))
}

fn mount(prefix: &str, shape: Shape) -> Router<HttpState> {
    let at = |path: &str| format!("{prefix}{path}");
    let streams = move |call| stream::stream(call, shape);
    Router::new()
        .route(&at("/run"), post(gated(RUN, submit::run)))
        .route(&at("/runsync"), post(gated(RUNSYNC, submit::runsync)))
        .route(&at("/status/{job}"), asked(STATUS, follow::status))
        .route(&at("/status-sync/{job}"), asked(STATUS, follow::status_sync))
        .route(&at("/stream/{job}"), asked(Gate::limited(Read, Bucket::Stream), streams))
        .route(&at("/cancel/{job}"), post(gated(Gate::limited(Jobs, Bucket::Cancel), change::cancel)))
        .route(&at("/retry/{job}"), post(gated(Gate::limited(Jobs, Bucket::Cancel), change::retry)))
        .route(&at("/purge-queue"), post(gated(Gate::limited(Jobs, Bucket::PurgeQueue), change::purge)))
        .route(&at("/health"), get(gated(Gate::free(Read), health::health)))
        .route(&at("/requests"), get(gated(Gate::limited(Read, Bucket::Requests), requests::requests)))
}

/// What some client libraries ask with GET and others with POST.
fn asked<H, F>(gate: Gate, operation: H) -> MethodRouter<HttpState>
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    get(gated(gate, operation.clone())).post(gated(gate, operation))
}

/// An operation behind its gate, as axum takes it.
fn gated<H, F>(gate: Gate, operation: H) -> impl Fn(State<HttpState>, Request) -> Answering + Clone
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    move |State(state), mut request| {
        let operation = operation.clone();
        Box::pin(async move {
            let params = request.extract_parts::<RawPathParams>().await.ok();
            let mut path = JobPath::default();
            for (name, value) in params.iter().flatten() {
                match name {
                    "endpoint" => path.endpoint = value,
                    "job" => path.job = value,
                    _ => {}
                }
            }
            gate.pass(state, path, request, operation).await
        })
    }
}
