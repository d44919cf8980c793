//! What happened to a job or a worker, and the span that tells it.

use std::sync::Arc;

use longshore_model::{AttemptEnd, Endpoint, JobRow, JobState, Millis, Placement, WorkerId};

use super::forwarded::ForwardedSpan;
use super::ids::{JobTrace, worker_start};
use super::request::RequestSpan;
use super::sampling::Sampling;
use super::span::{Attributes, Event, Span, SpanKind, Value};
use super::webhook_call::WebhookCallSpan;

/// The largest number of progress values that a span shows.
const PROGRESS_MAX: usize = 32;
/// The longest reason in a span, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// Something that is over, from which one span is made.
pub(crate) enum Fact {
    Job {
        endpoint: Arc<Endpoint>,
        /// Where the job's worker runs; `None` if it is not a managed one, or no worker took the job.
        worker: Option<StartedWorker>,
        fact: JobFact,
    },
    WorkerStart {
        endpoint: Arc<Endpoint>,
        worker: WorkerId,
        placement: Placement,
        ready_at: Millis,
    },
    Webhook(Box<WebhookCallSpan>),
    Request(Box<RequestSpan>),
    Forwarded(Box<ForwardedSpan>),
}

/// When a managed worker was started, and on which GPUs.
#[derive(Clone, Debug)]
pub(crate) struct StartedWorker {
    /// The placement of the worker.
    pub(crate) placement: Placement,
    /// Whether the worker has sent its first take, as of the supervisor's last pass.
    pub(crate) is_ready: bool,
    /// When it did; `None` if that is not known.
    pub(crate) ready_at: Option<Millis>,
}

impl StartedWorker {
    /// Whether the job waited while the worker started.
    fn was_met_by(&self, row: &JobRow) -> bool {
        let is_later = |at: Millis| at >= row.enqueued_at;
        let started_at = self.placement.started_at;
        // An older version started the worker if the time is 0.
        started_at > Millis(0)
            && (!self.is_ready || is_later(started_at) || self.ready_at.is_some_and(is_later))
    }
}

/// A part of a job's life that is over.
#[derive(Debug)]
pub(crate) struct JobFact {
    /// The row of the job at that time.
    pub(crate) row: Box<JobRow>,
    /// When the part ended.
    pub(crate) until: Millis,
    pub(crate) span: JobSpan,
}

/// The part of a job's life.
#[derive(Debug)]
pub(crate) enum JobSpan {
    /// A wait in the queue.
    Queue,
    /// An attempt. `end` says how and why it ended if the job is queued again, or the worker was lost.
    Attempt { end: Option<(AttemptEnd, String)>, marks: AttemptMarks },
    /// From the submit or the last client retry to the end.
    Whole,
}

/// What happened during an attempt. Volatile: after a restart of the server it begins anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptMarks {
    first_chunk: Option<Millis>,
    progress: Vec<Millis>,
}

impl AttemptMarks {
    /// Notes a chunk; only the first one counts.
    pub(crate) fn chunk(&mut self, at: Millis) {
        self.first_chunk.get_or_insert(at);
    }

    /// Notes a progress value; those after the 32nd do not count.
    pub(crate) fn progress(&mut self, at: Millis) {
        if self.progress.len() < PROGRESS_MAX {
            self.progress.push(at);
        }
    }
}

/// The histogram that counted a part of a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    Delay,
    Execution,
}

impl JobFact {
    /// The histogram that counted this part; `None` for a part that none counts.
    pub(crate) fn measured(&self) -> Option<Measured> {
        let is_counted = self.row.state.is_terminal() && self.row.state != JobState::Cancelled;
        match self.span {
            JobSpan::Queue => self.has_worker().then_some(Measured::Delay),
            JobSpan::Attempt { .. } => is_counted.then_some(Measured::Execution),
            JobSpan::Whole => None,
        }
    }

    /// Whether a worker had the job during this part.
    pub(crate) fn has_worker(&self) -> bool {
        match self.span {
            // A wait that ended with a take.
            JobSpan::Queue => self.row.state == JobState::InProgress,
            JobSpan::Attempt { .. } => true,
            JobSpan::Whole => false,
        }
    }
}

impl Fact {
    pub(super) fn into_span(self, sampling: Sampling) -> Span {
        match self {
            Self::Job { endpoint, worker, fact } => job_span(&endpoint, worker.as_ref(), fact, sampling),
            Self::WorkerStart { endpoint, worker, placement, ready_at } => {
                start_span(&endpoint, &worker, &placement, ready_at)
            }
            Self::Webhook(call) => call.into_span(sampling),
            Self::Request(request) => request.into_span(sampling),
            Self::Forwarded(request) => request.into_span(),
        }
    }
}

fn job_span(endpoint: &Endpoint, worker: Option<&StartedWorker>, fact: JobFact, sampling: Sampling) -> Span {
    let JobFact { row, until, span } = fact;
    let trace = JobTrace::of(row.id, row.trace.as_deref(), sampling);
    let mut part = match span {
        JobSpan::Queue => queue(&row, &trace, worker),
        JobSpan::Attempt { end, marks } => attempt(&row, &trace, worker, until, end.as_ref(), &marks),
        JobSpan::Whole => whole(&row, &trace, endpoint),
    };
    let mut attributes = about_job(endpoint, &row.id.to_string());
    attributes.append(&mut part.attributes);
    // A clock that was set back between two servers must not make a span of negative length.
    let end = until.max(part.start).into();
    Span { end, attributes, ..part.into_span(&trace) }
}

/// What is special about a part of a job's life.
struct Part {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    start: Millis,
    attributes: Attributes,
    events: Vec<Event>,
    links: Vec<([u8; 16], [u8; 8])>,
    is_error: bool,
}

impl Part {
    fn into_span(self, trace: &JobTrace) -> Span {
        Span {
            trace: trace.id,
            id: self.id,
            parent: self.parent,
            name: self.name,
            kind: self.kind,
            start: self.start.into(),
            end: self.start.into(),
            attributes: Attributes::new(),
            events: self.events,
            links: self.links,
            is_error: self.is_error,
        }
    }
}

fn queue(row: &JobRow, trace: &JobTrace, worker: Option<&StartedWorker>) -> Part {
    let met = worker.filter(|worker| worker.was_met_by(row)).map(|worker| worker.placement.started_at);
    let link = met.zip(row.worker.as_ref()).map(|(started_at, worker)| worker_start(worker, started_at));
    Part {
        id: trace.queue_span(row),
        parent: Some(trace.job_span(row)),
        name: "queue".to_owned(),
        kind: SpanKind::Internal,
        start: row.enqueued_at,
        attributes: vec![("longshore.cold_start", link.is_some().into())],
        events: Vec::new(),
        links: link.into_iter().collect(),
        is_error: false,
    }
}

fn attempt(
    row: &JobRow,
    trace: &JobTrace,
    worker: Option<&StartedWorker>,
    until: Millis,
    end: Option<&(AttemptEnd, String)>,
    marks: &AttemptMarks,
) -> Part {
    let number = row.attempt.0;
    let mut attributes =
        vec![("messaging.operation.type", "process".into()), ("longshore.attempt", Value::from(number))];
    if let Some(worker) = &row.worker {
        attributes.push(("longshore.worker", worker.as_str().into()));
    }
    attributes.extend(worker.and_then(|worker| gpus(&worker.placement)));
    let error = match end {
        Some((AttemptEnd::WorkerLost, _)) => Some("worker_lost"),
        Some((AttemptEnd::Failed, _)) => error_type(JobState::Failed),
        // A worker that is stopped, or did not get the job, is no error of the attempt.
        Some(_) => None,
        None => error_type(row.state),
    };
    attributes.extend(error.map(|error| ("error.type", error.into())));
    let at = |at: &Millis, name| Event { at: (*at).into(), name, attributes: Attributes::new() };
    let mut events: Vec<_> = marks.first_chunk.iter().map(|first| at(first, "first chunk")).collect();
    events.extend(marks.progress.iter().map(|value| at(value, "progress")));
    if let Some((end, reason)) = end {
        let name = if *end == AttemptEnd::WorkerLost { "lost" } else { "requeued" };
        let attributes = vec![("reason", short(reason).into())];
        events.push(Event { attributes, ..at(&until, name) });
    }
    Part {
        id: trace.attempt_span(row),
        parent: Some(trace.job_span(row)),
        name: format!("attempt {number}"),
        kind: SpanKind::Consumer,
        start: row.started_at,
        attributes,
        events,
        links: Vec::new(),
        is_error: error.is_some(),
    }
}

fn whole(row: &JobRow, trace: &JobTrace, endpoint: &Endpoint) -> Part {
    // A job that is deleted before its end has expired.
    let state = if row.state.is_terminal() { state_name(row.state) } else { "expired" };
    let error = if row.state.is_terminal() { error_type(row.state) } else { Some("expired") };
    let mut attributes = vec![
        ("longshore.job.version", Value::from(endpoint.version)),
        ("longshore.job.state", state.into()),
        ("longshore.job.retries", Value::from(u32::from(row.retries))),
    ];
    attributes.extend(error.map(|error| ("error.type", error.into())));
    let is_retried = row.retried_at > Millis(0);
    Part {
        id: trace.job_span(row),
        parent: trace.parent,
        name: format!("job {}", name_of(endpoint)),
        kind: SpanKind::Internal,
        start: if is_retried { row.retried_at } else { row.created_at },
        attributes,
        events: Vec::new(),
        links: Vec::new(),
        is_error: error.is_some(),
    }
}

fn start_span(endpoint: &Endpoint, worker: &WorkerId, placement: &Placement, ready_at: Millis) -> Span {
    let (trace, id) = worker_start(worker, placement.started_at);
    let mut attributes = vec![
        ("longshore.endpoint", endpoint.id.as_str().into()),
        ("longshore.worker", worker.as_str().into()),
    ];
    attributes.extend(gpus(placement));
    Span {
        trace,
        id,
        parent: None,
        name: "worker start".to_owned(),
        kind: SpanKind::Internal,
        start: placement.started_at.into(),
        end: ready_at.max(placement.started_at).into(),
        attributes,
        events: Vec::new(),
        links: Vec::new(),
        is_error: false,
    }
}

/// The attributes of every span of a job.
pub(super) fn about_job(endpoint: &Endpoint, job: &str) -> Attributes {
    vec![
        ("longshore.job.id", job.into()),
        ("longshore.job.endpoint", endpoint.id.as_str().into()),
        ("messaging.system", "longshore".into()),
        ("messaging.destination.name", name_of(endpoint).into()),
        ("messaging.message.id", job.into()),
    ]
}

/// The name of an endpoint in addresses: its slug, else its id.
fn name_of(endpoint: &Endpoint) -> &str {
    endpoint.slug.as_deref().unwrap_or(endpoint.id.as_str())
}

/// The types of the worker's GPUs, once each; `None` without a GPU.
fn gpus(placement: &Placement) -> Option<(&'static str, Value)> {
    let mut types: Vec<_> = placement.gpus.iter().map(|gpu| gpu.type_id.as_str()).collect();
    types.dedup();
    (!types.is_empty()).then(|| ("longshore.gpu", types.join(", ").into()))
}

fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::InQueue => "queued",
        JobState::InProgress => "running",
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::TimedOut => "timed_out",
    }
}

/// The kind of error of an end; `None` for an end that is none.
fn error_type(state: JobState) -> Option<&'static str> {
    matches!(state, JobState::Failed | JobState::TimedOut).then(|| state_name(state))
}

/// The first line of a reason, at most 200 bytes: the next ones are of the worker's log, which can hold payload.
fn short(reason: &str) -> &str {
    let line = reason.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(REASON_BYTES_MAX)]
}
