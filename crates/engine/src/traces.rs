//! Traces of jobs for an OpenTelemetry collector.
//!
//! A job is one trace. A span is made when it ends, from facts of the job's row, under an id that follows from the job:
//! no span is open in memory, and a server that continues a job of an earlier one continues its trace
//! ([ADR 0025](../../../docs/adr/0025-spans-from-rows.md)).
//!
//! The actors hand facts over after their commit ([`Traces::add`]) and wait for nothing. One task turns them into spans and
//! sends them ([`export`]). Over a limit of waiting facts the next ones are dropped and counted.

mod export;
mod fact;
mod forwarded;
mod http_request;
mod ids;
mod otlp;
mod request;
mod sampling;
mod span;
#[cfg(test)]
mod tests;
mod webhook_call;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Uri};
use longshore_model::{JobRow, TraceContext};
use tokio::sync::{mpsc, oneshot};

use self::export::ExportMessage;
pub(crate) use self::fact::{AttemptMarks, Fact, JobFact, JobSpan, Measured, StartedWorker};
pub use self::forwarded::{ForwardedSpan, RequestPlace};
use self::ids::JobTrace;
pub use self::request::RequestSpan;
pub use self::sampling::Sampling;
pub(crate) use self::webhook_call::WebhookCallSpan;
use crate::runtime::Runtime;
use crate::webhooks::WebhookTransport;

/// Where spans are sent, and which.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// The address of the collector for spans as OTLP over HTTP, with its path.
    pub endpoint: Uri,
    /// Headers of each request to the collector, such as its key.
    pub headers: HeaderMap,
    /// The name of this server in its spans (`service.name`).
    pub service: String,
    /// Which traces are sent.
    pub sampling: Sampling,
    /// The largest number of spans that wait to be sent.
    pub spans_max: usize,
    /// How long the collector has for its response.
    pub timeout: Duration,
}

/// The settings of traces, and what sends them.
pub struct TraceExport {
    /// Where spans are sent, and which.
    pub settings: TraceSettings,
    /// Sends the requests to the collector.
    pub transport: Arc<dyn WebhookTransport>,
}

/// The traces of an engine. One per engine that has a collector.
pub(crate) struct Traces {
    sampling: Sampling,
    messages: mpsc::UnboundedSender<ExportMessage>,
    counts: Arc<SpanCounts>,
    spans_max: usize,
    /// The address of the collector.
    collector: String,
}

/// The numbers of spans that wait, and that were dropped.
#[derive(Debug, Default)]
struct SpanCounts {
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

impl Traces {
    /// Starts the task that sends spans.
    pub(crate) fn start(export: TraceExport, runtime: &dyn Runtime) -> Self {
        // Bounded by `spans_max`: only `add` sends facts.
        let (messages, received) = mpsc::unbounded_channel();
        let counts = Arc::new(SpanCounts::default());
        let TraceSettings { sampling, spans_max, .. } = export.settings;
        let collector = export.settings.endpoint.to_string();
        runtime.spawn(Box::pin(export::run(export, received, Arc::clone(&counts))));
        Self { sampling, messages, counts, spans_max, collector }
    }

    /// Whether the job's spans are sent.
    pub(crate) fn is_sampled(&self, row: &JobRow) -> bool {
        self.of(row).is_sampled
    }

    /// The id of the job's trace.
    pub(crate) fn id(&self, row: &JobRow) -> [u8; 16] {
        self.of(row).id
    }

    /// The place of the job's present run in its trace.
    pub(crate) fn job(&self, row: &JobRow) -> TraceContext {
        let trace = self.of(row);
        trace.context(trace.job_span(row))
    }

    /// The place of the job's present attempt in its trace, for what its worker does.
    pub(crate) fn attempt(&self, row: &JobRow) -> TraceContext {
        let trace = self.of(row);
        trace.context(trace.attempt_span(row))
    }

    /// Whether the span of the request is sent.
    pub(crate) fn takes(&self, request: &RequestSpan) -> bool {
        request.is_sampled(self.sampling)
    }

    /// The place of a request that is no submit: below the client's span, else in a trace of its own.
    pub(crate) fn place(&self, client: Option<TraceContext>, entropy: impl Fn() -> u128) -> RequestPlace {
        RequestPlace::new(client, self.sampling, entropy)
    }

    fn of(&self, row: &JobRow) -> JobTrace {
        JobTrace::of(row.id, row.trace.as_deref(), self.sampling)
    }

    /// Hands a fact over, or drops it if too many wait. Never waits.
    pub(crate) fn add(&self, fact: Fact) {
        if self.counts.waiting.fetch_add(1, Ordering::Relaxed) >= self.spans_max {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The task ends with the engine.
        let _ = self.messages.send(ExportMessage::Fact(Box::new(fact)));
    }

    /// The address of the collector.
    pub(crate) fn collector(&self) -> &str {
        &self.collector
    }

    /// The number of spans that were dropped: too many waited, or the collector did not take them.
    pub(crate) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Returns when the spans that wait were sent, or after `patience`.
    pub(crate) async fn flush(&self, patience: Duration) {
        let (sent, is_sent) = oneshot::channel();
        let _ = self.messages.send(ExportMessage::Flush(sent));
        let _ = tokio::time::timeout(patience, is_sent).await;
    }
}
