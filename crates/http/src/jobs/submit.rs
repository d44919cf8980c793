//! `run` and `runsync`: a client submits a job.

use std::time::Duration;

use axum::response::Response;
use longshore_engine::Submission;
use longshore_model::limits::{
    RUN_BODY_BYTES_MAX, RUNSYNC_BODY_BYTES_MAX, WAIT_MS_DEFAULT, WAIT_MS_MAX, WAIT_MS_MIN,
};
use tokio::sync::OwnedSemaphorePermit;

use super::{idempotency, job_response};
use crate::gate::call::Call;
use crate::gate::peer::{self, ChosenJob};
use crate::gate::repeated_submit;
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, ReadBody};
use crate::wire::submit_trace;

/// Largest body in bytes that gives its share of the body budget back before it is durable; the number of concurrent
/// requests bounds those.
const SMALL_BODY_BYTES: usize = 64 * 1024;

/// `POST /run`: the response is sent when the job is durable.
#[expect(clippy::manual_async_fn, reason = "an async fn reserves the size of its arguments twice")]
pub(super) fn run(mut call: Call) -> impl Future<Output = Result<Response, ApiError>> + Send {
    async move {
        let (submission, permit) = read(&mut call, false).await?;
        let (submitted, trace) = (submission.id, submission.trace.clone());
        let (state, endpoint) = call.into_wait();
        let job = endpoint.jobs().submit(submission).await?;
        drop(permit);
        let mut response = job_response::brief(job.id, job.state);
        submit_trace::note(&mut response, state.engine(), &endpoint, (submitted, job.id), trace);
        Ok(response)
    }
}

/// `POST /runsync`: the response is sent when the job is terminal, or when `wait` has passed.
pub(super) async fn runsync(mut call: Call) -> Result<Response, ApiError> {
    let wait_ms = call.query()?.integer("wait", WAIT_MS_MIN, WAIT_MS_MAX)?.unwrap_or(WAIT_MS_DEFAULT);
    let wait = peer::left_of(Duration::from_millis(wait_ms));
    let (submission, permit) = read(&mut call, true).await?;
    let (submitted, trace) = (submission.id, submission.trace.clone());
    let (state, endpoint) = call.into_wait();
    let job = if submission.members.len() <= SMALL_BODY_BYTES {
        drop(permit);
        endpoint.jobs().submit_and_wait(submission, wait).await?
    } else {
        // The wait is long and the store has the body by then: the body must not count until the end.
        let accepted = endpoint.jobs().submit(submission).await?;
        drop(permit);
        endpoint.jobs().wait(accepted.id, wait).await?
    };
    // Never refused for its size: the client would not even learn the job's id.
    let id = job.row.id;
    let mut response = job_response::whole(job, None);
    submit_trace::note(&mut response, state.engine(), &endpoint, (submitted, id), trace);
    Ok(response)
}

async fn read(call: &mut Call, sync: bool) -> Result<(Submission, OwnedSemaphorePermit), ApiError> {
    let key = idempotency::key(&call.headers)?;
    let bytes_max = if sync { RUNSYNC_BODY_BYTES_MAX } else { RUN_BODY_BYTES_MAX };
    let body = std::mem::take(&mut call.body);
    let ReadBody { bytes, permit } = body::read(body, bytes_max, call.state.budget()).await?;
    let chosen = peer::chosen_job();
    let id = chosen.map_or_else(|| call.state.engine().mint_job(sync), |chosen| chosen.id);
    let engine = call.state.engine();
    let seal = |config: &str| engine.sealed_s3_config(id, config).map_err(|_| ApiError::internal());
    let envelope = longshore_envelope::parse(&bytes, seal, |url| engine.may_call_webhook(url))?;
    let submission = Submission {
        id,
        members: envelope.members,
        webhook: envelope.webhook,
        low_priority: envelope.low_priority,
        execution_timeout_ms: envelope.execution_timeout_ms,
        ttl_ms: envelope.ttl_ms,
        idempotency: key.map(|key| Box::new(idempotency::of(key, &bytes))),
        submitter: call.submitter(),
        trace: submit_trace::of_client(engine, &call.headers),
    };
    if let Some(repeated) = chosen.filter(ChosenJob::is_repeated) {
        // Boxed: rare, and every future would reserve the size.
        Box::pin(repeated_submit::check(&call.endpoint, repeated, submission.ttl_ms)).await?;
    }
    Ok((submission, permit))
}
