//! Deliveries to receivers on sockets of this computer.

mod content;
mod many;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_model::{Attempt, EndpointNo, JobEnd, JobId, JobKey, JobRow, JobState, Millis, WebhookEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::log::{DeliveryState, MemoryWebhookLog};
use super::signing::Secrets;
use super::*;
use crate::EventCounts;
use crate::runtime::TokioRuntime;
use crate::supervisor::tests::an_endpoint;

/// Longest wait of a test for a condition; then the test fails.
const DEADLINE: Duration = Duration::from_mins(2);

fn start(settings: WebhookSettings) -> WebhookHandle<FakeEndpoint> {
    start_with_log(settings, Arc::new(MemoryWebhookLog::default()))
}

fn start_with_log(settings: WebhookSettings, log: Arc<dyn WebhookLog>) -> WebhookHandle<FakeEndpoint> {
    let transport = Arc::new(HttpTransport::new(&settings));
    WebhookHandle::spawn(settings, &TokioRuntime, transport, log)
}

/// A completed job with a pending call.
pub(super) fn completed() -> JobSnapshot {
    numbered(1)
}

/// A completed job with a pending call, the `seq`th of its endpoint.
fn numbered(seq: u64) -> JobSnapshot {
    let key = JobKey { endpoint: EndpointNo(1), seq };
    let id = JobId::mint(Millis(1), u128::from(seq), false);
    let row = JobRow {
        state: JobState::Completed,
        never_taken: false,
        webhook: true,
        webhook_pending: true,
        attempt: Attempt(1),
        started_at: Millis(105),
        finished_at: Millis(125),
        worker: "w1".parse().ok(),
        ..JobRow::queued(key, id, Millis(100))
    };
    JobSnapshot {
        row,
        now: Millis(130),
        output: None,
        output_bytes: None,
        error: None,
        room: crate::BudgetPermit::default(),
    }
}

/// An endpoint without a queue: holds jobs with their members, and records what deliveries store about their calls.
#[derive(Clone)]
struct FakeEndpoint {
    jobs: Arc<Mutex<HashMap<JobId, (JobSnapshot, Bytes)>>>,
    recorded: Arc<watch::Sender<Vec<Recorded>>>,
    resource: Arc<Mutex<longshore_model::Endpoint>>,
    secrets: Arc<Mutex<Secrets>>,
    counts: Arc<EventCounts>,
    /// How many more times the endpoint says that no call may be made.
    refusals: Arc<AtomicU32>,
    started: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// What a delivery stored about a call.
enum Recorded {
    /// The job, and the number of attempts so far.
    Attempted(JobId, u32),
    Settled(JobId),
}

impl WebhookSource for FakeEndpoint {
    async fn status(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        Ok(self.jobs.lock().unwrap().get(&job).ok_or(EndpointError::Deleted)?.0.clone())
    }

    async fn members(&self, job: JobId) -> Result<Bytes, EndpointError> {
        Ok(self.jobs.lock().unwrap().get(&job).ok_or(EndpointError::Deleted)?.1.clone())
    }

    async fn webhook_attempted(
        &self,
        job: JobId,
        _: JobEnd,
        attempts: u32,
        _: Millis,
    ) -> Result<(), EndpointError> {
        self.recorded.send_modify(|recorded| recorded.push(Recorded::Attempted(job, attempts)));
        Ok(())
    }

    fn count_attempt(&self, outcome: WebhookOutcome) {
        self.counts.called(outcome);
    }

    async fn settle_webhook(&self, job: JobId, _: JobEnd) -> Result<(), EndpointError> {
        if let Some(entry) = self.jobs.lock().unwrap().get_mut(&job) {
            entry.0.row.webhook_pending = false;
        }
        self.recorded.send_modify(|recorded| recorded.push(Recorded::Settled(job)));
        Ok(())
    }

    fn endpoint(&self) -> Arc<longshore_model::Endpoint> {
        Arc::new(self.resource.lock().unwrap().clone())
    }

    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        self.secrets.lock().unwrap().sign(id, now, body)
    }

    fn now(&self) -> Millis {
        Millis(self.started.elapsed().as_millis() as u64)
    }

    fn may_act(&self) -> bool {
        let less = |refusals: u32| refusals.checked_sub(1);
        self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }
}

impl FakeEndpoint {
    fn new() -> Self {
        let resource =
            longshore_model::Endpoint { webhook_events: WebhookEvent::ENDS.to_vec(), ..an_endpoint() };
        Self {
            jobs: Arc::default(),
            recorded: Arc::new(watch::channel(Vec::new()).0),
            resource: Arc::new(Mutex::new(resource)),
            secrets: Arc::default(),
            counts: Arc::default(),
            refusals: Arc::default(),
            started: Instant::now(),
        }
    }

    /// Adds a completed job with the webhook `url` and returns its pending call.
    fn pending_call(&self, seq: u64, url: &str) -> PendingCall<Self> {
        let job = numbered(seq);
        let members =
            format!(r#""input":{{"seq":{seq}}},"webhook":"{url}","s3Config":{{"accessSecret":"hush"}}"#);
        let (id, key, end) = (job.row.id, job.row.key, job.row.pending_end().expect("it ended"));
        self.jobs.lock().unwrap().insert(id, (job, members.into()));
        PendingCall { handle: self.clone(), job: id, key, end, attempts: 0, due_at: Millis(0) }
    }

    /// Makes the job a running one with this progress value.
    fn set_progress(&self, job: JobId, value: u32) {
        let mut jobs = self.jobs.lock().unwrap();
        let snapshot = &mut jobs.get_mut(&job).unwrap().0;
        snapshot.row.state = JobState::InProgress;
        snapshot.output = Some(value.to_string().into());
    }

    /// Waits until `count` calls are settled, and returns everything that is recorded.
    async fn settled(&self, count: usize) -> Vec<Recorded> {
        let mut recorded = self.recorded.subscribe();
        let is_settled = |record: &&Recorded| matches!(record, Recorded::Settled(_));
        let wait = recorded.wait_for(|recorded| recorded.iter().filter(is_settled).count() >= count);
        let all = tokio::time::timeout(DEADLINE, wait).await;
        all.expect("the calls are settled in time").expect("the endpoint exists").clone()
    }
}

/// What a receiver does with a call. A receiver has a list of these, one per call; the last one repeats.
#[derive(Clone, Copy)]
enum Behaviour {
    Status(u16),
    Redirect(SocketAddr),
    Text(&'static str),
    /// Closes the connection without a response.
    Disconnect,
    /// Sends these bytes one by one, 20 ms apart, then `.` without end.
    Slow(&'static str),
    /// Sends a body without end, as fast as it is read.
    Endless,
    /// Sends no response and keeps the connection open.
    Silent,
}

/// An HTTP server that records the requests it gets.
struct Receiver {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(behaviours: &[Behaviour]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let (log, behaviours) = (calls.clone(), behaviours.to_vec());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone(), behaviours.clone()));
            }
        });
        Self { address, calls }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?token=t", self.address)
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

/// Serves the requests of one connection.
async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<String>>>, behaviours: Vec<Behaviour>) {
    let mut bytes = Vec::new();
    loop {
        let Some(request) = read_request(&mut stream, &mut bytes).await else { return };
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request);
            log.len() - 1
        };
        let head = match behaviours.get(number).or(behaviours.last()) {
            Some(Behaviour::Status(status)) => format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok"),
            Some(Behaviour::Redirect(to)) => {
                format!("HTTP/1.1 307 X\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n")
            }
            Some(Behaviour::Text(text)) => {
                format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{text}", text.len())
            }
            Some(Behaviour::Disconnect) => return,
            Some(Behaviour::Slow(text)) => return send_slowly(&mut stream, text).await,
            Some(Behaviour::Endless) => return send_endlessly(&mut stream).await,
            Some(Behaviour::Silent) | None => std::future::pending().await,
        };
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn send_slowly(stream: &mut TcpStream, text: &str) {
    for byte in text.bytes().chain(std::iter::repeat(b'.')) {
        if stream.write_all(&[byte]).await.is_err() {
            return;
        }
        wait_between_bytes().await;
    }
}

/// The slowness of the receiver is what the test is about.
async fn wait_between_bytes() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn send_endlessly(stream: &mut TcpStream) {
    let mut text = b"HTTP/1.1 200 X\r\n\r\n".to_vec();
    while stream.write_all(&text).await.is_ok() {
        text = vec![b'x'; 65_536];
    }
}

/// Reads one request; `None` when the client closed the connection. `bytes` holds what was read beyond it.
async fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
            if bytes.len() >= end + 4 + length {
                let request: Vec<u8> = bytes.drain(..end + 4 + length).collect();
                return String::from_utf8(request).ok();
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Settings with short delays that permit private addresses. The timeout is long, since a busy computer responds late.
fn settings() -> WebhookSettings {
    WebhookSettings {
        allow_private: true,
        retries: WebhookRetries { delay: Duration::from_millis(30), ..WebhookRetries::default() },
        timeout: DEADLINE,
        ..WebhookSettings::default()
    }
}

#[tokio::test]
async fn a_receiver_that_accepts_is_called_once_with_the_job() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let due = endpoint.pending_call(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Recorded::Settled(due.job)]);
    let calls = receiver.calls();
    assert_eq!(calls.len(), 1);
    let (head, body) = calls[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook?token=t HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/json"), "{head}");
    assert!(head.contains(concat!("User-Agent: longshore/", env!("CARGO_PKG_VERSION"))), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["id"], due.job.to_string());
    assert_eq!(body["input"]["seq"], 1);
    assert_eq!(body["webhook"], receiver.url());
    assert!(body.get("s3Config").is_none());
}

#[tokio::test]
async fn no_call_is_made_while_another_node_may_own_the_job() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    endpoint.refusals.store(2, Ordering::Relaxed);
    let due = endpoint.pending_call(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Recorded::Settled(due.job)], "a refusal is no attempt");
    assert_eq!((receiver.calls().len(), endpoint.refusals.load(Ordering::Relaxed)), (1, 0));
}

#[tokio::test]
async fn a_receiver_that_accepts_the_third_attempt_is_called_three_times() {
    let receiver =
        Receiver::start(&[Behaviour::Status(500), Behaviour::Status(204), Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let due = endpoint.pending_call(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    let recorded = endpoint.settled(1).await;
    let job = due.job;
    assert_eq!(recorded, [Recorded::Attempted(job, 1), Recorded::Attempted(job, 2), Recorded::Settled(job)]);
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn a_call_that_is_never_accepted_is_given_up_after_three_attempts() {
    let receiver = Receiver::start(&[Behaviour::Status(503)]).await;
    let endpoint = FakeEndpoint::new();
    let due = endpoint.pending_call(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    let job = due.job;
    assert_eq!(
        endpoint.settled(1).await,
        [Recorded::Attempted(job, 1), Recorded::Attempted(job, 2), Recorded::Settled(job)]
    );
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn attempts_made_before_a_restart_count() {
    let receiver = Receiver::start(&[Behaviour::Status(503)]).await;
    let endpoint = FakeEndpoint::new();
    let due = PendingCall { attempts: 2, ..endpoint.pending_call(1, &receiver.url()) };
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Recorded::Settled(due.job)]);
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_silent_receiver_and_a_closed_port_are_failed_attempts() {
    let silent = Receiver::start(&[Behaviour::Silent]).await;
    // Bound by this test and not listening, so that no other process listens there.
    let port = TcpSocket::new_v4().unwrap();
    port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = port.local_addr().unwrap();
    let endpoint = FakeEndpoint::new();
    let webhooks = start(WebhookSettings { timeout: Duration::from_secs(1), ..settings() });
    webhooks.enqueue(endpoint.pending_call(1, &silent.url()));
    webhooks.enqueue(endpoint.pending_call(2, &format!("http://{closed}/")));
    let recorded = endpoint.settled(2).await;
    assert_eq!(recorded.len(), 6, "{recorded:?}");
    assert_eq!(silent.calls().len(), 3);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Receiver::start(&[Behaviour::Status(200)]).await;
    let receiver = Receiver::start(&[Behaviour::Redirect(target.address)]).await;
    let endpoint = FakeEndpoint::new();
    let webhooks = start(settings());
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    endpoint.settled(1).await;
    assert_eq!((receiver.calls().len(), target.calls().len()), (3, 0));
}

#[tokio::test]
async fn a_private_address_is_not_called_without_the_setting_and_not_retried() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let webhooks = start(WebhookSettings { allow_private: false, ..settings() });
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    let port = receiver.address.port();
    webhooks.enqueue(endpoint.pending_call(2, &format!("http://localhost:{port}/")));
    webhooks.enqueue(endpoint.pending_call(3, &format!("http://[::ffff:127.0.0.1]:{port}/")));
    assert_eq!(endpoint.settled(3).await.len(), 3, "each call is settled after one attempt");
    assert_eq!(receiver.calls().len(), 0);
}

#[tokio::test]
async fn a_silent_receiver_delays_no_other_receiver() {
    let silent = Receiver::start(&[Behaviour::Silent]).await;
    let responding = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    // The calls to the silent receiver come first, and there are more of them than `calls_max`.
    let crowded = WebhookSettings {
        calls_max: 8,
        calls_per_host_max: 4,
        timeout: Duration::from_hours(1),
        ..settings()
    };
    let webhooks = start(crowded);
    let by_name = silent.url().replace("127.0.0.1", "localhost");
    for seq in 0..50 {
        webhooks.enqueue(endpoint.pending_call(seq, &by_name));
    }
    for seq in 100..150 {
        webhooks.enqueue(endpoint.pending_call(seq, &responding.url()));
    }
    endpoint.settled(50).await;
    assert_eq!(responding.calls().len(), 50);
    assert!(silent.calls().len() <= 4);
}

#[tokio::test]
async fn many_calls_to_one_host_all_arrive_within_tight_limits() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let tight = WebhookSettings { calls_max: 3, calls_per_host_max: 2, bytes_max: 600, ..settings() };
    let webhooks = start(tight);
    for seq in 0..200 {
        let host = if seq % 2 == 0 { "127.0.0.1" } else { "localhost" };
        webhooks.enqueue(endpoint.pending_call(seq, &receiver.url().replace("127.0.0.1", host)));
    }
    assert_eq!(endpoint.settled(200).await.len(), 200);
    assert_eq!(receiver.calls().len(), 200);
}

#[tokio::test]
async fn a_call_that_is_not_pending_is_not_made() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let webhooks = start(settings());
    let retried = endpoint.pending_call(1, &receiver.url());
    endpoint.jobs.lock().unwrap().get_mut(&retried.job).unwrap().0.row.state = JobState::InQueue;
    let deleted = endpoint.pending_call(2, &receiver.url());
    endpoint.jobs.lock().unwrap().remove(&deleted.job);
    let broken = endpoint.pending_call(3, "nowhere");
    let ended_again = endpoint.pending_call(5, &receiver.url());
    endpoint.jobs.lock().unwrap().get_mut(&ended_again.job).unwrap().0.row.attempt = Attempt(2);
    let pending = endpoint.pending_call(4, &receiver.url());
    for due in [retried, deleted, broken.clone(), ended_again, pending.clone()] {
        webhooks.enqueue(due);
    }
    let recorded = endpoint.settled(2).await;
    for settled in [broken, pending] {
        assert!(recorded.contains(&Recorded::Settled(settled.job)), "{recorded:?}");
    }
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_newer_call_of_the_same_job_replaces_the_older_one() {
    let receiver = Receiver::start(&[Behaviour::Status(500), Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let retries = WebhookRetries { delay: Duration::from_hours(1), ..WebhookRetries::default() };
    let webhooks = start(WebhookSettings { retries, ..settings() });
    let due = endpoint.pending_call(1, &receiver.url());
    webhooks.enqueue(due.clone());
    let mut recorded = endpoint.recorded.subscribe();
    let first = recorded.wait_for(|recorded| recorded.contains(&Recorded::Attempted(due.job, 1)));
    tokio::time::timeout(DEADLINE, first).await.expect("an attempt").expect("an endpoint");
    webhooks.enqueue(due.clone());
    endpoint.settled(1).await;
    assert_eq!(receiver.calls().len(), 2);
}

#[tokio::test]
async fn a_due_time_set_under_a_clock_far_ahead_is_shortened_to_the_longest_delay() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let due = PendingCall { due_at: Millis(7_200_000), ..endpoint.pending_call(1, &receiver.url()) };
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Recorded::Settled(due.job)]);
}

#[tokio::test]
async fn the_result_of_the_call_for_an_earlier_end_changes_nothing_for_the_next() {
    let receiver = Receiver::start(&[Behaviour::Silent, Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let timeout = Duration::from_secs(5);
    let webhooks = start(WebhookSettings { calls_per_host_max: 1, timeout, ..settings() });
    let failed = endpoint.pending_call(1, &receiver.url());
    webhooks.enqueue(failed.clone());
    let deadline = Instant::now() + DEADLINE;
    while receiver.calls().is_empty() {
        assert!(Instant::now() < deadline, "the receiver is called in time");
        tokio::task::yield_now().await;
    }
    endpoint.jobs.lock().unwrap().get_mut(&failed.job).unwrap().0.row.attempt = Attempt(2);
    let end = JobEnd { attempt: Attempt(2), ..failed.end };
    webhooks.enqueue(PendingCall { end, ..failed.clone() });
    assert_eq!(endpoint.settled(1).await, [Recorded::Settled(failed.job)]);
    assert_eq!(receiver.calls().len(), 2);
}
