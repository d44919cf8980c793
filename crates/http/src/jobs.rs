//! The job interface, on two mounts: `/v2/{endpoint}` as the specification says, `/sdk/v2/{endpoint}` for the official
//! client libraries. Only the responses of `/stream` differ.

mod chunk;
mod control;
mod explain;
pub(crate) mod fast_routes;
mod follow;
pub(crate) mod health;
mod idempotency;
mod job_response;
mod job_worker;
mod life;
pub(crate) mod openapi;
mod payloads;
pub(crate) mod requests;
mod status;
mod stream;
mod submit;
pub(crate) mod webhooks;

use axum::extract::{Request, State};
use axum::response::Response;
use http::Method;
use longshore_history::LimitedOperation;
use longshore_model::Permission::{ReadJobs, WriteJobs};

use self::stream::StreamFormat;
use crate::HttpState;
use crate::gate::call::{Call, Gate};
use crate::openapi::{Group, Operation};
use crate::wire::BoxResponse;
use crate::wire::api_error::ApiError;
use crate::wire::route_path::{RoutePath, RoutedPath};

const RUN: Gate = Gate::limited(WriteJobs, LimitedOperation::Run);
const RUNSYNC: Gate = Gate::limited(WriteJobs, LimitedOperation::Runsync);
const STATUS: Gate = Gate::limited(ReadJobs, LimitedOperation::Status);

/// `POST /run`.
pub(crate) fn run(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    RUN.pass(state.clone(), path, request, submit::run)
}

/// `POST /runsync`.
pub(crate) fn runsync(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    RUNSYNC.pass(state.clone(), path, request, submit::runsync)
}

/// `GET|POST /status/{job}`.
pub(crate) fn status(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    STATUS.pass(state.clone(), path, request, status::status)
}

/// The operations as the specification says.
pub(crate) fn group() -> Group {
    mount("/v2/{endpoint}", StreamFormat::Specified)
}

/// The operations for the official client libraries.
pub(crate) fn sdk_group() -> Group {
    mount("/sdk/v2/{endpoint}", StreamFormat::Sdk)
}

fn mount(prefix: &str, mount: StreamFormat) -> Group {
    let operations = [
        submits(prefix),
        reads(prefix, mount),
        details(prefix),
        controls(prefix),
        webhook_operations(prefix),
    ];
    Group {
        name: "Jobs",
        about: "Hand in jobs, and follow them to their end.",
        operations: operations.into_iter().flatten().collect(),
        schemas: [openapi::schemas(), explain::schemas(), life::schemas(), webhooks::schemas()].concat(),
    }
}

fn submits(prefix: &str) -> Vec<Operation> {
    vec![
        Operation::fast("Run", &Method::POST, &fast_routes::RUN, prefix)
            .summary("hands in a job")
            .about("Answers as soon as the job is durable.")
            .takes("JobRequest")
            .gives("Job")
            .with(openapi::RUN)
            .rated()
            .refuses(409),
        Operation::fast("RunSync", &Method::POST, &fast_routes::RUNSYNC, prefix)
            .summary("hands in a job and waits for its end")
            .about("A job that is not over when `wait` has passed goes on; follow it with its id.")
            .takes("JobRequest")
            .gives("Job")
            .with(openapi::RUN_SYNC)
            .rated()
            .refuses(409),
    ]
}

/// The operations that read jobs. Some client libraries send GET and others POST, so most of them take both.
fn reads(prefix: &str, mount: StreamFormat) -> Vec<Operation> {
    let streams = move |call| stream::stream(call, mount);
    let at = |path: &str| format!("{prefix}{path}");
    let status = |operation: Operation| operation.gives("Job").with(openapi::STATUS).rated();
    let sync = |operation: Operation| operation.gives("Job").with(openapi::STATUS_SYNC).rated();
    let stream = |operation: Operation| {
        operation.gives("StreamAnswer").or_events().about(openapi::EVENTS).with(openapi::STREAM).rated()
    };
    let again = "the same as GET";
    let stream_gate = Gate::limited(ReadJobs, LimitedOperation::Stream);
    vec![
        status(Operation::fast("Status", &Method::GET, &fast_routes::STATUS, prefix))
            .summary("a job as it is"),
        status(Operation::fast("StatusByPost", &Method::POST, &fast_routes::STATUS, prefix)).summary(again),
        sync(Operation::get("StatusSync", at("/status-sync/{job}"), gated(STATUS, status::status_sync)))
            .summary("a job when it is over"),
        sync(Operation::post(
            "StatusSyncByPost",
            at("/status-sync/{job}"),
            gated(STATUS, status::status_sync),
        ))
        .summary(again),
        stream(Operation::get("Stream", at("/stream/{job}"), gated(stream_gate, streams)))
            .summary("the next chunks of a job's stream"),
        stream(Operation::post("StreamByPost", at("/stream/{job}"), gated(stream_gate, streams)))
            .summary(again),
        Operation::get("Health", at("/health"), gated(Gate::free(ReadJobs), health::health))
            .summary("numbers of jobs and workers")
            .gives("Health"),
        Operation::get("ExplainJob", at("/explain/{job}"), gated(STATUS.for_all_types(), explain::of_job))
            .summary("why a job waits")
            .about(explain::ABOUT)
            .gives("Explanation")
            .rated(),
        Operation::get("Explain", at("/explain"), gated(STATUS.for_all_types(), explain::of_endpoint))
            .summary("why the endpoint's jobs wait")
            .about(explain::ABOUT)
            .gives("Explanation")
            .rated(),
        Operation::get(
            "ListRequests",
            at("/requests"),
            gated(Gate::limited(ReadJobs, LimitedOperation::Requests), requests::requests),
        )
        .summary("the endpoint's jobs, newest first")
        .about(openapi::ABOUT_REQUESTS)
        .gives("RequestPage")
        .with(openapi::CONDITIONS)
        .with(openapi::REQUESTS)
        .rated(),
    ]
}

/// The operations that read all that is known of one job.
fn details(prefix: &str) -> Vec<Operation> {
    let at = |path: &str| format!("{prefix}{path}");
    vec![
        Operation::get("GetJob", at("/jobs/{job}"), gated(STATUS, life::life))
            .summary("the life of a job")
            .about("Times, attempts, sizes, who submitted it, and its webhook calls; without input and output. Of its \
                    attempts, the last 8 are kept with the job.")
            .gives("JobLife")
            .rated(),
        Operation::get("GetJobInput", at("/jobs/{job}/input"), gated(STATUS, payloads::input))
            .summary("what the client sent as `input`")
            .about("The JSON text as it came, every digit as the client wrote it. `Range` asks for a part.")
            .gives("Payload")
            .rated(),
        Operation::get("GetJobOutput", at("/jobs/{job}/output"), gated(STATUS, payloads::output))
            .summary("what the worker returned")
            .about("The JSON text as it came; of a running job, its last progress value. `Range` asks for a part.")
            .gives("Payload")
            .rated(),
    ]
}

fn controls(prefix: &str) -> Vec<Operation> {
    let at = |path: &str| format!("{prefix}{path}");
    let (cancel, purge) = (
        Gate::limited(WriteJobs, LimitedOperation::Cancel),
        Gate::limited(WriteJobs, LimitedOperation::PurgeQueue),
    );
    vec![
        Operation::post("Cancel", at("/cancel/{job}"), gated(cancel, control::cancel))
            .summary("ends a job")
            .about("One that is over already stays as it is.")
            .gives("Job")
            .rated(),
        Operation::post("Retry", at("/retry/{job}"), gated(cancel, control::retry))
            .summary("queues a failed or timed-out job again")
            .gives("Job")
            .rated(),
        Operation::post("PurgeQueue", at("/purge-queue"), gated(purge, control::purge))
            .summary("cancels every waiting job")
            .gives("PurgeResult")
            .rated(),
    ]
}

fn webhook_operations(prefix: &str) -> Vec<Operation> {
    let at = |path: &str| format!("{prefix}/webhooks{path}");
    let (read, redeliver) = (
        Gate::limited(ReadJobs, LimitedOperation::Webhooks),
        Gate::limited(WriteJobs, LimitedOperation::Webhooks),
    );
    vec![
        Operation::get("ListWebhooks", at(""), gated(read, webhooks::list))
            .summary("what became of the endpoint's webhooks, the latest first")
            .gives("WebhookPage")
            .with(webhooks::LIST)
            .rated(),
        Operation::post("RedeliverWebhooks", at("/redeliver"), gated(redeliver, webhooks::redeliver_failed))
            .summary("delivers all webhooks again that failed")
            .about("Those whose jobs are still there: `gone` counts the others.")
            .gives("RedeliveredWebhooks")
            .with(webhooks::REDELIVER)
            .rated(),
        Operation::post(
            "RedeliverWebhook",
            at("/{webhook}/redeliver"),
            gated(redeliver, webhooks::redeliver),
        )
        .summary("delivers a webhook again")
        .about("A call in flight goes on.")
        .gives("RedeliveredWebhook")
        .rated(),
    ]
}

/// An operation behind its gate, as axum takes it.
pub(crate) fn gated<H, F>(
    gate: Gate,
    operation: H,
) -> impl Fn(State<HttpState>, RoutedPath, Request) -> BoxResponse + Clone
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    move |State(state), path, request| gate.pass(state, path.as_path(), request, operation.clone())
}
