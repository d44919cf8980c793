//! The span of one webhook call.

use std::sync::Arc;

use longshore_model::{Endpoint, JobRow, Millis, TraceContext};

use super::fact::about_job;
use super::ids::JobTrace;
use super::sampling::Sampling;
use super::span::{Span, SpanKind, Value};
use super::{Fact, Traces};

/// A webhook call that is being made, and its place in the trace of its job.
pub(crate) struct WebhookCallSpan {
    endpoint: Arc<Endpoint>,
    row: Box<JobRow>,
    /// The number of the attempt to make the call, from 1.
    number: u32,
    at: Millis,
    until: Millis,
    receiver: String,
    /// The status of the response; `None` without one.
    status: Option<u16>,
}

impl WebhookCallSpan {
    /// The call of this number for an event of the job, made now.
    pub(crate) fn new(endpoint: Arc<Endpoint>, row: &JobRow, number: u32, now: Millis) -> Self {
        let row = Box::new(row.clone());
        Self { endpoint, row, number, at: now, until: now, receiver: String::new(), status: None }
    }

    /// The place of the call in its trace, which its receiver gets.
    pub(crate) fn context(&self, traces: &Traces) -> TraceContext {
        let trace = traces.of(&self.row);
        trace.context(trace.webhook_span(self.number, self.at))
    }

    /// Hands the ended call over. `receiver` is scheme, host and port.
    pub(crate) fn end(mut self, traces: &Traces, receiver: &str, status: Option<u16>, latency_ms: u64) {
        if traces.is_sampled(&self.row) {
            self.until = self.at + latency_ms;
            receiver.clone_into(&mut self.receiver);
            self.status = status;
            traces.add(Fact::Webhook(Box::new(self)));
        }
    }

    pub(super) fn into_span(self, sampling: Sampling) -> Span {
        let trace = JobTrace::of(self.row.id, self.row.trace.as_deref(), sampling);
        let mut attributes = about_job(&self.endpoint, &self.row.id.to_string());
        attributes.push(("http.request.method", "POST".into()));
        attributes.push(("server.address", self.receiver.into()));
        attributes
            .extend(self.status.map(|status| ("http.response.status_code", Value::from(u32::from(status)))));
        // Only 200 is an acceptance.
        let is_error = self.status != Some(200);
        if is_error {
            let error = self.status.map_or_else(|| "no_response".to_owned(), |status| status.to_string());
            attributes.push(("error.type", error.into()));
        }
        Span {
            trace: trace.id,
            id: trace.webhook_span(self.number, self.at),
            parent: Some(trace.job_span(&self.row)),
            name: format!("webhook {}", self.number),
            kind: SpanKind::Client,
            start: self.at.into(),
            end: self.until.into(),
            attributes,
            events: Vec::new(),
            links: Vec::new(),
            is_error,
        }
    }
}
