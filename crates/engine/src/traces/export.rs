//! Sends spans to the collector, in batches, one request at a time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::fact::Fact;
use super::span::Span;
use super::{SpanCounts, TraceExport, TraceSettings, otlp};
use crate::webhooks::{TransportError, TransportResponse};

/// How long spans gather for one request.
const GATHER: Duration = Duration::from_millis(200);
/// The largest number of spans in a request.
const BATCH_MAX: usize = 512;
/// The pause before the first repetition of a request; doubles with each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause before a repetition.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a request is repeated; then its spans are dropped.
const PATIENCE: Duration = Duration::from_secs(30);

/// A message to the task that sends spans.
pub(super) enum ExportMessage {
    /// Something that is over.
    Fact(Box<Fact>),
    /// Send what waits now, and reply. From now on a request that fails is not repeated: the server stops.
    Flush(oneshot::Sender<()>),
}

/// Sends spans until the senders are dropped.
pub(super) async fn run(
    export: TraceExport,
    mut messages: mpsc::UnboundedReceiver<ExportMessage>,
    counts: Arc<SpanCounts>,
) {
    let mut exporter = Exporter { export, counts, is_failing: false, is_stopping: false };
    let mut received = Vec::new();
    while let Some(first) = messages.recv().await {
        received.push(first);
        gather(&mut messages, &mut received).await;
        exporter.handle(received.drain(..)).await;
    }
}

/// Receives what arrives within [`GATHER`], at most a batch. Returns early for a flush.
async fn gather(messages: &mut mpsc::UnboundedReceiver<ExportMessage>, received: &mut Vec<ExportMessage>) {
    let mut is_over = pin!(tokio::time::sleep(GATHER));
    while received.len() < BATCH_MAX && !matches!(received.last(), Some(ExportMessage::Flush(_))) {
        tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => received.push(message),
                None => return,
            },
            () = &mut is_over => return,
        }
    }
}

struct Exporter {
    export: TraceExport,
    counts: Arc<SpanCounts>,
    /// The last request failed, and the log says so.
    is_failing: bool,
    is_stopping: bool,
}

impl Exporter {
    async fn handle(&mut self, received: impl Iterator<Item = ExportMessage>) {
        let (mut spans, mut flushed) = (Vec::new(), Vec::new());
        for message in received {
            match message {
                ExportMessage::Fact(fact) => spans.push(fact.into_span(self.export.settings.sampling)),
                ExportMessage::Flush(done) => flushed.push(done),
            }
        }
        self.counts.waiting.fetch_sub(spans.len(), Ordering::Relaxed);
        self.is_stopping |= !flushed.is_empty();
        if !spans.is_empty() {
            self.send(&spans).await;
        }
        for done in flushed {
            let _ = done.send(());
        }
    }

    /// Sends the spans. They are dropped if the collector refuses them, or accepts none for [`PATIENCE`].
    async fn send(&mut self, spans: &[Span]) {
        let body = Bytes::from(otlp::request(&self.export.settings.service, spans));
        let (began, mut pause) = (Instant::now(), PAUSE);
        loop {
            let refused = match self.post(body.clone()).await {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        let dropped = self.counts.dropped.load(Ordering::Relaxed);
                        tracing::info!(dropped, "the collector of traces accepts spans again");
                    }
                    return;
                }
                Err(refused) => refused,
            };
            if !std::mem::replace(&mut self.is_failing, true) {
                let Refused { reason, .. } = &refused;
                tracing::warn!(%reason, "the collector of traces does not accept spans");
            }
            if !refused.can_be_repeated || self.is_stopping || began.elapsed() + pause > PATIENCE {
                self.counts.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
                return;
            }
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), Refused> {
        let TraceSettings { endpoint, headers, timeout, .. } = &self.export.settings;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.clone();
        *request.headers_mut() = headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = HeaderValue::from_static(concat!("longshore/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let sent = tokio::time::timeout(*timeout, self.export.transport.post(request)).await;
        match sent {
            Ok(Ok(TransportResponse { status, .. })) if status.is_success() => Ok(()),
            Ok(Ok(TransportResponse { status, .. })) => Err(Refused::with_status(status)),
            Ok(Err(TransportError::NoResponse(reason) | TransportError::Forbidden(reason))) => {
                Err(Refused { reason, can_be_repeated: true })
            }
            Err(_) => Err(Refused { reason: "no answer in time".to_owned(), can_be_repeated: true }),
        }
    }
}

/// Why the collector did not accept a request.
struct Refused {
    reason: String,
    can_be_repeated: bool,
}

impl Refused {
    /// The statuses with which OTLP asks for a repetition are those of a collector that is busy or gone.
    fn with_status(status: StatusCode) -> Self {
        let can_be_repeated = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        Self { reason: format!("status {}", status.as_u16()), can_be_repeated }
    }
}
