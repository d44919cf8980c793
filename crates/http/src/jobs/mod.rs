//! The job interface, on two mounts: `/v2/{endpoint}` to the letter of the specification, `/sdk/v2/{endpoint}`
//! for the official client libraries. They differ in what `/stream` answers, and in nothing else.

mod call;
mod change;
mod chunk;
mod described;
mod envelope;
mod events;
mod follow;
mod health;
mod idempotency;
mod record;
mod requests;
mod stream;
mod submit;
mod webhooks;

use axum::extract::{Request, State};
use axum::response::Response;
use http::Method;
use longshore_model::Operation::{Jobs, Read};

use self::call::{Call, Gate};
pub use self::envelope::members_of_submit;
pub(crate) use self::envelope::{is_webhook, web_address, webhook_never_allowed};
use self::stream::Mount;
use crate::HttpState;
use crate::edge::Answering;
use crate::errors::Failure;
use crate::fast_path::routes;
use crate::operations::{Group, Operation};
use crate::rate_limits::Bucket;
use crate::route_path::{RoutePath, RoutedPath};

const RUN: Gate = Gate::limited(Jobs, Bucket::Run);
const RUNSYNC: Gate = Gate::limited(Jobs, Bucket::Runsync);
const STATUS: Gate = Gate::limited(Read, Bucket::Status);

/// `POST /run`.
pub(crate) fn run(state: &HttpState, path: RoutePath<'_>, request: Request) -> Answering {
    RUN.pass(state.clone(), path, request, submit::run)
}

/// `POST /runsync`.
pub(crate) fn runsync(state: &HttpState, path: RoutePath<'_>, request: Request) -> Answering {
    RUNSYNC.pass(state.clone(), path, request, submit::runsync)
}

/// `GET|POST /status/{job}`.
pub(crate) fn status(state: &HttpState, path: RoutePath<'_>, request: Request) -> Answering {
    STATUS.pass(state.clone(), path, request, follow::status)
}

/// The operations to the letter of the specification.
pub(crate) fn group() -> Group {
    mount("/v2/{endpoint}", Mount::Specified)
}

/// The same for the official client libraries.
pub(crate) fn sdk_group() -> Group {
    mount("/sdk/v2/{endpoint}", Mount::Sdk)
}

fn mount(prefix: &str, mount: Mount) -> Group {
    let operations = [submits(prefix), looks(prefix, mount), changes(prefix), hooks(prefix)];
    Group {
        name: "Jobs",
        about: "Hand in jobs, and follow them to their end.",
        operations: operations.into_iter().flatten().collect(),
        schemas: [described::schemas(), webhooks::schemas()].concat(),
    }
}

fn submits(prefix: &str) -> Vec<Operation> {
    vec![
        Operation::hot("Run", &Method::POST, &routes::RUN, prefix)
            .summary("hands in a job")
            .about("Answers at once, when the job is on disk.")
            .takes("JobRequest")
            .gives("Job")
            .with(described::RUN)
            .rated()
            .refuses(409),
        Operation::hot("RunSync", &Method::POST, &routes::RUNSYNC, prefix)
            .summary("hands in a job and waits for its end")
            .about("A job that is not over when `wait` has passed goes on; follow it with its id.")
            .takes("JobRequest")
            .gives("Job")
            .with(described::RUN_SYNC)
            .rated()
            .refuses(409),
    ]
}

/// Some client libraries ask with GET and others with POST.
fn looks(prefix: &str, mount: Mount) -> Vec<Operation> {
    let streams = move |call| stream::stream(call, mount);
    let at = |path: &str| format!("{prefix}{path}");
    let status = |operation: Operation| operation.gives("Job").with(described::STATUS).rated();
    let sync = |operation: Operation| operation.gives("Job").with(described::STATUS_SYNC).rated();
    let stream = |operation: Operation| {
        operation.gives("StreamAnswer").or_events().about(described::EVENTS).with(described::STREAM).rated()
    };
    let again = "the same as GET";
    let stream_gate = Gate::limited(Read, Bucket::Stream);
    vec![
        status(Operation::hot("Status", &Method::GET, &routes::STATUS, prefix)).summary("a job as it is"),
        status(Operation::hot("StatusByPost", &Method::POST, &routes::STATUS, prefix)).summary(again),
        sync(Operation::get("StatusSync", at("/status-sync/{job}"), gated(STATUS, follow::status_sync)))
            .summary("a job when it is over"),
        sync(Operation::post(
            "StatusSyncByPost",
            at("/status-sync/{job}"),
            gated(STATUS, follow::status_sync),
        ))
        .summary(again),
        stream(Operation::get("Stream", at("/stream/{job}"), gated(stream_gate, streams)))
            .summary("the next chunks of a job's stream"),
        stream(Operation::post("StreamByPost", at("/stream/{job}"), gated(stream_gate, streams)))
            .summary(again),
        Operation::get("Health", at("/health"), gated(Gate::free(Read), health::health))
            .summary("numbers of jobs and workers")
            .gives("Health"),
        Operation::get(
            "ListRequests",
            at("/requests"),
            gated(Gate::limited(Read, Bucket::Requests), requests::requests),
        )
        .summary("the endpoint's jobs, newest first")
        .about("Without an `output` or `error` of more than 4 KiB: `/status` has those.")
        .gives("RequestPage")
        .with(described::REQUESTS)
        .rated(),
    ]
}

fn changes(prefix: &str) -> Vec<Operation> {
    let at = |path: &str| format!("{prefix}{path}");
    let (cancel, purge) = (Gate::limited(Jobs, Bucket::Cancel), Gate::limited(Jobs, Bucket::PurgeQueue));
    vec![
        Operation::post("Cancel", at("/cancel/{job}"), gated(cancel, change::cancel))
            .summary("ends a job")
            .about("One that is over already stays as it is.")
            .gives("Job")
            .rated(),
        Operation::post("Retry", at("/retry/{job}"), gated(cancel, change::retry))
            .summary("queues a failed or timed-out job again")
            .gives("Job")
            .rated(),
        Operation::post("PurgeQueue", at("/purge-queue"), gated(purge, change::purge))
            .summary("cancels every waiting job")
            .gives("PurgeResult")
            .rated(),
    ]
}

fn hooks(prefix: &str) -> Vec<Operation> {
    let at = |path: &str| format!("{prefix}/webhooks{path}");
    let (look, again) = (Gate::limited(Read, Bucket::Webhooks), Gate::limited(Jobs, Bucket::Webhooks));
    vec![
        Operation::get("ListWebhooks", at(""), gated(look, webhooks::list))
            .summary("what became of the endpoint's webhooks, the latest first")
            .gives("WebhookPage")
            .with(webhooks::LIST)
            .rated(),
        Operation::post("RedeliverWebhooks", at("/redeliver"), gated(again, webhooks::redeliver_failed))
            .summary("delivers all webhooks again that failed")
            .about("Those whose jobs are still there: `gone` counts the others.")
            .gives("RedeliveredWebhooks")
            .with(webhooks::REDELIVER)
            .rated(),
        Operation::post("RedeliverWebhook", at("/{webhook}/redeliver"), gated(again, webhooks::redeliver))
            .summary("delivers a webhook again")
            .about("One that is on its way goes on.")
            .gives("RedeliveredWebhook")
            .rated(),
    ]
}

/// An operation behind its gate, as axum takes it.
fn gated<H, F>(
    gate: Gate,
    operation: H,
) -> impl Fn(State<HttpState>, RoutedPath, Request) -> Answering + Clone
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    move |State(state), path, request| gate.pass(state, path.as_path(), request, operation.clone())
}
