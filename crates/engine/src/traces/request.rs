//! The span of a request that submitted a job.

use std::sync::Arc;

use longshore_model::{Endpoint, JobId, TraceContext};

use super::fact::about_job;
use super::http_request::HttpRequest;
use super::ids::JobTrace;
use super::sampling::Sampling;
use super::span::Span;

/// A request that submitted a job, or repeated its submit.
#[derive(Clone, Debug)]
pub struct RequestSpan {
    /// The endpoint of the job.
    pub endpoint: Arc<Endpoint>,
    /// The job of the submit.
    pub job: JobId,
    /// The client's trace; `None` if the request named none.
    pub client: Option<Box<TraceContext>>,
    /// The method of the request.
    pub method: &'static str,
    /// The pattern of the request's path.
    pub route: &'static str,
    /// The status of the response.
    pub status: u16,
    /// When the head of the request was read, in µs since 1970.
    pub start_us: u64,
    /// When the head of the response was ready, in µs since 1970.
    pub end_us: u64,
}

impl RequestSpan {
    pub(super) fn is_sampled(&self, sampling: Sampling) -> bool {
        self.trace(sampling).is_sampled
    }

    fn trace(&self, sampling: Sampling) -> JobTrace {
        JobTrace::of(self.job, self.client.as_deref(), sampling)
    }

    pub(super) fn into_span(self, sampling: Sampling) -> Span {
        let trace = self.trace(sampling);
        let about_job = about_job(&self.endpoint, &self.job.to_string());
        let request = HttpRequest {
            ids: (trace.id, trace.request_span(self.start_us)),
            // Without a client's span the job's span is the first of the trace: it is sent even if this one is lost.
            parent: Some(trace.parent.unwrap_or_else(|| trace.first_job_span())),
            method: self.method,
            route: self.route,
            status: self.status,
            start_us: self.start_us,
            end_us: self.end_us,
        };
        request.into_span(about_job)
    }
}
