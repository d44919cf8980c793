//! The place of a forwarded request in a trace: below its client's span, and above those of its worker.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use longshore_engine::{Engine, ForwardedSpan, RequestPlace};
use longshore_model::{Endpoint, WorkerId};

use super::PATTERN;
use crate::wire::request_id::{self, TRACEPARENT};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A request that is being forwarded, while the server sends traces.
pub(super) struct RequestTrace {
    engine: Engine,
    endpoint: Arc<Endpoint>,
    place: RequestPlace,
    method: Method,
    began: Instant,
}

impl RequestTrace {
    /// Returns the place of a request that begins now; `None` if the server sends no traces.
    pub(super) fn begin(engine: &Engine, endpoint: &Arc<Endpoint>, request: &Request) -> Option<Self> {
        let place = engine.place_of_request(|| request_id::trace_context(request.headers()))?;
        Some(Self {
            engine: engine.clone(),
            endpoint: Arc::clone(endpoint),
            place,
            method: request.method().clone(),
            began: Instant::now(),
        })
    }

    /// Puts the place into the headers for the worker. A state of another trace is removed.
    pub(super) fn mark(&self, headers: &mut HeaderMap) {
        if self.place.parent.is_none() {
            headers.remove(TRACESTATE);
        }
        // The text has digits and dashes alone, so it is always a header's value.
        if let Ok(value) = HeaderValue::try_from(self.place.context.to_string()) {
            headers.insert(TRACEPARENT, value);
        }
    }

    /// Sends the span of the request, whose response is known. `worker` is the one that responded.
    pub(super) fn end(self, status: StatusCode, worker: Option<&WorkerId>) {
        let end_us = self.engine.now().0.saturating_mul(1_000);
        let took_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.engine.trace_forwarded(ForwardedSpan {
            endpoint: self.endpoint,
            place: self.place,
            method: self.method,
            route: PATTERN,
            status,
            worker: worker.cloned(),
            start_us: end_us.saturating_sub(took_us),
            end_us,
        });
    }
}
