//! What the edge knows of traces.

use longshore_model::{JobRow, TraceContext};

use super::Engine;
use crate::traces::{Fact, ForwardedSpan, RequestPlace, RequestSpan};

impl Engine {
    /// Whether traces are sent to a collector.
    pub fn is_tracing(&self) -> bool {
        self.inner.services.traces.is_some()
    }

    /// The address of the collector of traces; `None` if no traces are sent.
    pub fn trace_collector(&self) -> Option<&str> {
        self.inner.services.traces.as_ref().map(|traces| traces.collector())
    }

    /// The place of a job in its trace; `None` if the server sends no traces.
    pub fn trace_of(&self, row: &JobRow) -> Option<TraceContext> {
        self.inner.services.traces.as_ref().map(|traces| traces.job(row))
    }

    /// Sends the span of a request that submitted a job, if the job's trace is sent. Never waits.
    pub fn trace_request(&self, request: RequestSpan) {
        if let Some(traces) = self.inner.services.traces.as_ref().filter(|traces| traces.takes(&request)) {
            traces.add(Fact::Request(Box::new(request)));
        }
    }

    /// The place in a trace of a request that is forwarded; `None` if the server sends no traces. `client` returns the trace
    /// that the request names.
    pub fn place_of_request(&self, client: impl FnOnce() -> Option<TraceContext>) -> Option<RequestPlace> {
        let traces = self.inner.services.traces.as_ref()?;
        Some(traces.place(client(), || self.entropy()))
    }

    /// Sends the span of a forwarded request, if its trace is sent. Never waits.
    pub fn trace_forwarded(&self, request: ForwardedSpan) {
        let is_sampled = request.place.context.is_sampled();
        if let Some(traces) = self.inner.services.traces.as_ref().filter(|_| is_sampled) {
            traces.add(Fact::Forwarded(Box::new(request)));
        }
    }

    /// The number of spans that were dropped since the start, because too many waited or the collector did not accept
    /// them.
    pub fn dropped_spans(&self) -> u64 {
        self.inner.services.traces.as_ref().map_or(0, |traces| traces.dropped())
    }
}
