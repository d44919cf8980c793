//! Tests of spans made from facts, and of their delivery to a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use http::{Request, StatusCode};
use longshore_model::{
    Attempt, AttemptEnd, EndpointNo, Gpu, JobId, JobKey, JobState, Millis, Placement, WorkerId,
};

use super::span::{Nanos, Span, Value};
use super::*;
use crate::runtime::TokioRuntime;
use crate::supervisor::tests::an_endpoint;
use crate::webhooks::{TransportError, TransportFuture, TransportResponse};

fn sampling() -> Sampling {
    Sampling::of_ratio(1.0)
}

fn row(state: JobState) -> Box<JobRow> {
    let id = JobId::mint(Millis(1_000), 7, false);
    let queued = JobRow::queued(JobKey { endpoint: EndpointNo(1), seq: 1 }, id, Millis(1_000));
    let row = JobRow {
        state,
        attempt: Attempt(1),
        started_at: Millis(1_200),
        finished_at: Millis(1_900),
        ..queued
    };
    Box::new(JobRow { worker: "w1".parse().ok(), ..row })
}

fn span_of(row: Box<JobRow>, until: u64, span: JobSpan, worker: Option<StartedWorker>) -> Span {
    let fact = JobFact { row, until: Millis(until), span };
    Fact::Job { endpoint: Arc::new(an_endpoint()), worker, fact }.into_span(sampling())
}

fn attribute(span: &Span, name: &str) -> Option<Value> {
    span.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
}

fn started(started_at: u64, ready_at: Option<u64>) -> StartedWorker {
    let gpu = |device: &str| Gpu { device: device.to_owned(), type_id: "G1".to_owned(), memory_mib: 0 };
    let placement =
        Placement { started_at: Millis(started_at), gpus: vec![gpu("0"), gpu("1")], ..Placement::default() };
    StartedWorker { placement, is_ready: ready_at.is_some(), ready_at: ready_at.map(Millis) }
}

fn plain() -> JobSpan {
    JobSpan::Attempt { end: None, marks: AttemptMarks::default() }
}

#[test]
fn the_spans_of_a_job_are_one_trace_below_its_own_span() {
    let whole = span_of(row(JobState::Completed), 1_900, JobSpan::Whole, None);
    let queue = span_of(row(JobState::InProgress), 1_200, JobSpan::Queue, None);
    let attempt = span_of(row(JobState::Completed), 1_900, plain(), None);
    assert_eq!((whole.trace, whole.parent), (row(JobState::Completed).id.raw(), None));
    for part in [&queue, &attempt] {
        assert_eq!((part.trace, part.parent), (whole.trace, Some(whole.id)));
    }
    let names = [&whole, &queue, &attempt].map(|span| span.name.clone());
    assert_eq!(names, [format!("job {}", an_endpoint().id), "queue".to_owned(), "attempt 1".to_owned()]);
    let times = [&whole, &queue, &attempt].map(|span| (span.start, span.end));
    let ms = |from: u64, to: u64| (Nanos(from * 1_000_000), Nanos(to * 1_000_000));
    assert_eq!(times, [ms(1_000, 1_900), ms(1_000, 1_200), ms(1_200, 1_900)]);
    assert_eq!([whole.id, queue.id, attempt.id].into_iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn a_client_retry_is_a_second_span_of_the_same_trace() {
    let first = span_of(row(JobState::Failed), 1_900, JobSpan::Whole, None);
    let again = JobRow { retried_at: Millis(5_000), ..*row(JobState::Completed) };
    let second = span_of(Box::new(again), 6_000, JobSpan::Whole, None);
    assert_eq!((second.trace, second.start), (first.trace, Nanos(5_000_000_000)));
    assert_ne!(second.id, first.id);
    assert!(first.is_error && !second.is_error);
    assert_eq!(attribute(&first, "error.type"), Some("failed".into()));
}

#[test]
fn a_wait_for_a_worker_that_starts_is_linked_with_its_start() {
    let links = |worker| span_of(row(JobState::InProgress), 1_200, JobSpan::Queue, Some(worker)).links;
    let start = |at| vec![ids::worker_start(&"w1".parse().unwrap(), Millis(at))];
    // It was started before the job came and was ready after that, or is not known to be ready.
    assert_eq!(links(started(900, Some(1_100))), start(900));
    assert_eq!(links(started(900, None)), start(900));
    // It was ready before the job came.
    assert_eq!(links(started(800, Some(900))), []);
}

#[test]
fn an_attempt_tells_its_worker_and_what_happened() {
    let mut marks = AttemptMarks::default();
    (0..40).for_each(|at| marks.progress(Millis(1_300 + at)));
    for at in [1_250, 1_260] {
        marks.chunk(Millis(at));
    }
    let reason = "exited with code 1 after 3 s; its last log lines:\nsecret".to_owned();
    let span = span_of(
        row(JobState::InProgress),
        1_500,
        JobSpan::Attempt { end: Some((AttemptEnd::WorkerLost, reason)), marks },
        Some(started(900, None)),
    );
    assert_eq!(attribute(&span, "longshore.gpu"), Some("G1".into()));
    assert_eq!(attribute(&span, "longshore.worker"), Some("w1".into()));
    assert_eq!(attribute(&span, "error.type"), Some("worker_lost".into()));
    let mut events: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for event in &span.events {
        events.entry(event.name).or_default().push(event.at.0 / 1_000_000);
    }
    assert_eq!(events["first chunk"], [1_250]);
    assert_eq!((events["progress"].len(), events["progress"][31]), (32, 1_331));
    assert_eq!(events["lost"], [1_500]);
    let lost = span.events.last().unwrap();
    assert_eq!(
        lost.attributes,
        [("reason", Value::from("exited with code 1 after 3 s; its last log lines:"))]
    );
}

#[test]
fn an_attempt_that_is_repeated_tells_how_it_ended() {
    for (state, end, error, event) in [
        (JobState::InProgress, AttemptEnd::WorkerLost, Some("worker_lost"), "lost"),
        (JobState::Failed, AttemptEnd::WorkerLost, Some("worker_lost"), "lost"),
        (JobState::InProgress, AttemptEnd::Failed, Some("failed"), "requeued"),
        (JobState::InProgress, AttemptEnd::Drained, None, "requeued"),
        (JobState::InProgress, AttemptEnd::Undelivered, None, "requeued"),
    ] {
        let attempt = JobSpan::Attempt { end: Some((end, "why".to_owned())), marks: AttemptMarks::default() };
        let span = span_of(row(state), 1_500, attempt, None);
        assert_eq!(attribute(&span, "error.type"), error.map(Into::into), "{end:?}");
        assert_eq!((span.is_error, span.events.last().unwrap().name), (error.is_some(), event), "{end:?}");
    }
}

#[test]
fn a_job_deleted_before_its_end_has_expired() {
    let span = span_of(row(JobState::InQueue), 2_000, JobSpan::Whole, None);
    assert_eq!(attribute(&span, "longshore.job.state"), Some("expired".into()));
    assert!(span.is_error);
}

/// A collector whose responses are chosen by a test, and the number of requests that it got.
#[derive(Default)]
struct Collector {
    answers: Mutex<Vec<u16>>,
    requests: Mutex<Vec<Request<Bytes>>>,
    is_silent: AtomicBool,
}

impl WebhookTransport for Collector {
    fn post(&self, call: Request<Bytes>) -> TransportFuture<'_> {
        self.requests.lock().unwrap().push(call);
        Box::pin(async move {
            if self.is_silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let status = self.answers.lock().unwrap().pop().unwrap_or(200);
            if status == 0 {
                return Err(TransportError::NoResponse("refused".to_owned()));
            }
            Ok(TransportResponse { status: StatusCode::from_u16(status).unwrap(), body: Bytes::new() })
        })
    }
}

impl Collector {
    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn traces(collector: &Arc<Collector>, spans_max: usize) -> Traces {
    let settings = TraceSettings {
        endpoint: "http://h/v1/traces".parse().unwrap(),
        headers: HeaderMap::from_iter([("x-key".parse().unwrap(), "k".parse().unwrap())]),
        service: "s".to_owned(),
        sampling: sampling(),
        spans_max,
        timeout: Duration::from_secs(10),
    };
    Traces::start(TraceExport { settings, transport: Arc::clone(collector) as _ }, &TokioRuntime)
}

fn a_start() -> Fact {
    let worker: WorkerId = "w1".parse().unwrap();
    let (placement, endpoint) = (Placement::default(), Arc::new(an_endpoint()));
    Fact::WorkerStart { endpoint, worker, placement, ready_at: Millis(5) }
}

#[tokio::test(start_paused = true)]
async fn spans_are_sent_in_one_request() {
    let collector = Arc::new(Collector::default());
    let traces = traces(&collector, 100);
    (0..5).for_each(|_| traces.add(a_start()));
    traces.flush(Duration::from_secs(1)).await;
    let requests = collector.requests.lock().unwrap();
    assert_eq!((requests.len(), traces.dropped()), (1, 0));
    assert_eq!(requests[0].headers()["content-type"], "application/x-protobuf");
    assert_eq!(requests[0].headers()["x-key"], "k");
}

#[tokio::test(start_paused = true)]
async fn a_busy_collector_gets_the_request_again_and_a_refusing_one_does_not() {
    for (answers, requests, dropped) in
        [(vec![0, 503, 429], 4, 0), (vec![400], 1, 1), (vec![404], 1, 1), (vec![500, 503], 1, 1)]
    {
        let answers: Vec<u16> = answers.into_iter().rev().collect();
        let collector = Arc::new(Collector { answers: Mutex::new(answers.clone()), ..Collector::default() });
        let traces = traces(&collector, 100);
        traces.add(a_start());
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!((collector.requests(), traces.dropped()), (requests, dropped), "{answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_collector_costs_a_bound_of_spans_and_delays_nothing() {
    let collector = Arc::new(Collector::default());
    collector.is_silent.store(true, Ordering::Relaxed);
    let traces = traces(&collector, 10);
    traces.add(a_start());
    tokio::time::sleep(Duration::from_secs(1)).await;
    (0..25).for_each(|_| traces.add(a_start()));
    assert_eq!(traces.dropped(), 15);
    tokio::time::sleep(Duration::from_mins(2)).await;
    // The span of the first request was given up, and room is there again.
    assert!(traces.dropped() > 15);
    collector.is_silent.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let (dropped, requests) = (traces.dropped(), collector.requests());
    traces.add(a_start());
    traces.flush(Duration::from_secs(1)).await;
    assert_eq!((traces.dropped(), collector.requests()), (dropped, requests + 1));
}
