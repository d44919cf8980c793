//! The span of a request that submitted a job. A handler notes the job in the extensions of its response, and the edge,
//! which knows when the request began, sends the span.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use http::HeaderMap;
use longshore_engine::{EndpointHandle, Engine, RequestSpan};
use longshore_model::{Endpoint, JobId, TraceContext};

use super::request_id;

/// The job that a request submitted.
#[derive(Clone)]
pub(crate) struct SubmitTrace {
    endpoint: Arc<Endpoint>,
    job: JobId,
    client: Option<Box<TraceContext>>,
}

/// The client's trace in a request; `None` without one, and if the server sends no traces.
pub(crate) fn of_client(engine: &Engine, headers: &HeaderMap) -> Option<Box<TraceContext>> {
    if engine.is_tracing() { request_id::trace_context(headers).map(Box::new) } else { None }
}

/// Notes the job that a request submitted, if the server sends traces. `submitted` is the id that the request would have given to a
/// new job: with that of another one, an earlier request has submitted it. Then the job may be in the trace of another client, to
/// which a request without a trace does not belong.
pub(crate) fn note(
    response: &mut Response,
    engine: &Engine,
    endpoint: &EndpointHandle,
    (submitted, job): (JobId, JobId),
    client: Option<Box<TraceContext>>,
) {
    if engine.is_tracing() && (client.is_some() || submitted == job) {
        response.extensions_mut().insert(SubmitTrace { endpoint: endpoint.record(), job, client });
    }
}

/// Sends the span of a request whose response has a job noted. `route` is the pattern of its path.
pub(crate) fn send(response: &mut Response, engine: &Engine, route: &'static str, began: Instant) {
    let Some(SubmitTrace { endpoint, job, client }) = response.extensions_mut().remove() else { return };
    let end_us = engine.now().0.saturating_mul(1_000);
    let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    engine.trace_request(RequestSpan {
        endpoint,
        job,
        client,
        method: "POST",
        route,
        status: response.status().as_u16(),
        start_us: end_us.saturating_sub(took_us),
        end_us,
    });
}
