//! Deliveries to a real receiver on a real socket.

mod many;
mod telling;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_model::{
    Attempt, EndpointNo, JobEnd, JobId, JobKey, JobRow, JobState, Millis, Submitter, WebhookEvent,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::log::{DeliveryState, MemoryWebhookLog};
use super::signing::Secrets;
use super::*;
use crate::runtime::TokioRuntime;
use crate::supervisor::tests::an_endpoint;

/// A test that waits for longer than this waits for nothing.
const DEADLINE: Duration = Duration::from_mins(2);

fn start(settings: WebhookSettings) -> WebhookHandle<Endpoint> {
    start_with_log(settings, Arc::new(MemoryWebhookLog::default()))
}

fn start_with_log(settings: WebhookSettings, log: Arc<dyn WebhookLog>) -> WebhookHandle<Endpoint> {
    let post = Arc::new(HttpTransport::new(&settings));
    WebhookHandle::spawn(settings, &TokioRuntime, post, log)
}

/// A job that ended well and owes a call.
pub(super) fn completed() -> JobSnapshot {
    numbered(1)
}

fn numbered(seq: u64) -> JobSnapshot {
    let row = JobRow {
        key: JobKey { endpoint: EndpointNo(1), seq },
        id: JobId::mint(Millis(1), u128::from(seq), false),
        state: JobState::Completed,
        low_priority: false,
        never_taken: false,
        ttl_pinned: false,
        webhook: true,
        webhook_pending: true,
        retries: 0,
        redeliveries: 0,
        attempt: Attempt(1),
        order: 0,
        created_at: Millis(100),
        enqueued_at: Millis(100),
        started_at: Millis(105),
        finished_at: Millis(125),
        delete_at: Millis::MAX,
        ttl_ms: 86_400_000,
        execution_timeout_ms: 600_000,
        input_bytes: 2,
        worker: "w1".parse().ok(),
        idempotency: None,
        submitter: Submitter::default(),
        carried: None,
    };
    JobSnapshot { row, now: Millis(130), output: None, error: None, room: crate::BudgetPermit::default() }
}

/// An endpoint as deliveries see it: jobs with their webhooks, and what was recorded about them.
#[derive(Clone)]
struct Endpoint {
    jobs: Arc<Mutex<HashMap<JobId, (JobSnapshot, Bytes)>>>,
    records: Arc<watch::Sender<Vec<Record>>>,
    record: Arc<Mutex<longshore_model::Endpoint>>,
    secrets: Arc<Mutex<Secrets>>,
    born: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Attempted(JobId, u32),
    Settled(JobId),
}

impl WebhookSource for Endpoint {
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
        self.records.send_modify(|records| records.push(Record::Attempted(job, attempts)));
        Ok(())
    }

    async fn settle_webhook(&self, job: JobId, _: JobEnd) -> Result<(), EndpointError> {
        if let Some(entry) = self.jobs.lock().unwrap().get_mut(&job) {
            entry.0.row.webhook_pending = false;
        }
        self.records.send_modify(|records| records.push(Record::Settled(job)));
        Ok(())
    }

    fn endpoint(&self) -> Arc<longshore_model::Endpoint> {
        Arc::new(self.record.lock().unwrap().clone())
    }

    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        self.secrets.lock().unwrap().sign(id, now, body)
    }

    fn now(&self) -> Millis {
        Millis(self.born.elapsed().as_millis() as u64)
    }
}

impl Endpoint {
    fn new() -> Self {
        let record =
            longshore_model::Endpoint { webhook_events: WebhookEvent::ENDS.to_vec(), ..an_endpoint() };
        Self {
            jobs: Arc::default(),
            records: Arc::new(watch::channel(Vec::new()).0),
            record: Arc::new(Mutex::new(record)),
            secrets: Arc::default(),
            born: Instant::now(),
        }
    }

    /// A job that ended and reports to `url`.
    fn owe(&self, seq: u64, url: &str) -> PendingCall<Self> {
        let job = numbered(seq);
        let members =
            format!(r#""input":{{"seq":{seq}}},"webhook":"{url}","s3Config":{{"accessSecret":"hush"}}"#);
        let (id, key, end) = (job.row.id, job.row.key, job.row.pending_end().expect("it ended"));
        self.jobs.lock().unwrap().insert(id, (job, members.into()));
        PendingCall { handle: self.clone(), job: id, key, end, attempts: 0, due_at: Millis(0) }
    }

    /// The job runs, and is this far.
    fn set_progress(&self, job: JobId, value: u32) {
        let mut jobs = self.jobs.lock().unwrap();
        let snapshot = &mut jobs.get_mut(&job).unwrap().0;
        snapshot.row.state = JobState::InProgress;
        snapshot.output = Some(value.to_string().into());
    }

    async fn settled(&self, count: usize) -> Vec<Record> {
        let mut records = self.records.subscribe();
        let is_settled = |record: &&Record| matches!(record, Record::Settled(_));
        let wait = records.wait_for(|records| records.iter().filter(is_settled).count() >= count);
        let all = tokio::time::timeout(DEADLINE, wait).await;
        all.expect("settled in time").expect("the endpoint lives").clone()
    }
}

/// What a receiver does with each call in turn; the last one goes on for ever.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    Redirect(SocketAddr),
    Text(&'static str),
    HangUp,
    /// These bytes one by one, 20 ms apart, and no end.
    Slowly(&'static str),
    /// A body without an end, as fast as it is taken.
    Endless,
    Silence,
}

struct Receiver {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let (log, answers) = (calls.clone(), answers.to_vec());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone(), answers.clone()));
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

/// One connection with any number of requests.
async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<String>>>, answers: Vec<Answer>) {
    let mut bytes = Vec::new();
    loop {
        let Some(request) = read_request(&mut stream, &mut bytes).await else { return };
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request);
            log.len() - 1
        };
        let head = match answers.get(number).or(answers.last()) {
            Some(Answer::Status(status)) => format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok"),
            Some(Answer::Redirect(to)) => {
                format!("HTTP/1.1 307 X\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n")
            }
            Some(Answer::Text(text)) => {
                format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{text}", text.len())
            }
            Some(Answer::HangUp) => return,
            Some(Answer::Slowly(text)) => return say_slowly(&mut stream, text).await,
            Some(Answer::Endless) => return say_endlessly(&mut stream).await,
            Some(Answer::Silence) | None => std::future::pending().await,
        };
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn say_slowly(stream: &mut TcpStream, text: &str) {
    for byte in text.bytes().chain(std::iter::repeat(b'.')) {
        if stream.write_all(&[byte]).await.is_err() {
            return;
        }
        wait_between_bytes().await;
    }
}

/// How slow a receiver is, is what is tested.
async fn wait_between_bytes() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn say_endlessly(stream: &mut TcpStream) {
    let mut text = b"HTTP/1.1 200 X\r\n\r\n".to_vec();
    while stream.write_all(&text).await.is_ok() {
        text = vec![b'x'; 65_536];
    }
}

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

/// Fast, and allowed to call this machine. An answer may be late on a busy machine: it is waited for.
fn settings() -> WebhookSettings {
    WebhookSettings {
        allow_private: true,
        retries: WebhookRetries { delay: Duration::from_millis(30), ..WebhookRetries::default() },
        timeout: DEADLINE,
        ..WebhookSettings::default()
    }
}

#[tokio::test]
async fn a_receiver_that_accepts_is_called_once_with_the_record() {
    let receiver = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let due = endpoint.owe(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Record::Settled(due.job)]);
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
async fn a_receiver_that_accepts_the_third_time_is_called_three_times() {
    let receiver = Receiver::start(&[Answer::Status(500), Answer::Status(204), Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let due = endpoint.owe(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    let records = endpoint.settled(1).await;
    let job = due.job;
    assert_eq!(records, [Record::Attempted(job, 1), Record::Attempted(job, 2), Record::Settled(job)]);
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn a_receiver_that_never_accepts_is_given_up_after_three_attempts() {
    let receiver = Receiver::start(&[Answer::Status(503)]).await;
    let endpoint = Endpoint::new();
    let due = endpoint.owe(1, &receiver.url());
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    let job = due.job;
    assert_eq!(
        endpoint.settled(1).await,
        [Record::Attempted(job, 1), Record::Attempted(job, 2), Record::Settled(job)]
    );
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn attempts_made_before_a_restart_count() {
    let receiver = Receiver::start(&[Answer::Status(503)]).await;
    let endpoint = Endpoint::new();
    let due = PendingCall { attempts: 2, ..endpoint.owe(1, &receiver.url()) };
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Record::Settled(due.job)]);
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_silent_receiver_and_a_closed_port_are_failed_attempts() {
    let silent = Receiver::start(&[Answer::Silence]).await;
    // Ours, so that nobody else listens there.
    let port = TcpSocket::new_v4().unwrap();
    port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = port.local_addr().unwrap();
    let endpoint = Endpoint::new();
    let webhooks = start(WebhookSettings { timeout: Duration::from_secs(1), ..settings() });
    webhooks.enqueue(endpoint.owe(1, &silent.url()));
    webhooks.enqueue(endpoint.owe(2, &format!("http://{closed}/")));
    let records = endpoint.settled(2).await;
    assert_eq!(records.len(), 6, "{records:?}");
    assert_eq!(silent.calls().len(), 3);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Receiver::start(&[Answer::Status(200)]).await;
    let receiver = Receiver::start(&[Answer::Redirect(target.address)]).await;
    let endpoint = Endpoint::new();
    let webhooks = start(settings());
    webhooks.enqueue(endpoint.owe(1, &receiver.url()));
    endpoint.settled(1).await;
    assert_eq!((receiver.calls().len(), target.calls().len()), (3, 0));
}

#[tokio::test]
async fn a_private_address_is_not_called_unless_allowed_and_not_tried_again() {
    let receiver = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let webhooks = start(WebhookSettings { allow_private: false, ..settings() });
    webhooks.enqueue(endpoint.owe(1, &receiver.url()));
    let port = receiver.address.port();
    webhooks.enqueue(endpoint.owe(2, &format!("http://localhost:{port}/")));
    webhooks.enqueue(endpoint.owe(3, &format!("http://[::ffff:127.0.0.1]:{port}/")));
    assert_eq!(endpoint.settled(3).await.len(), 3, "of each one attempt is noted, with which it is settled");
    assert_eq!(receiver.calls().len(), 0);
}

#[tokio::test]
async fn a_silent_receiver_delays_nobody_else() {
    let silent = Receiver::start(&[Answer::Silence]).await;
    let lively = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    // The silent one would hold every call that may be made at a time, and its calls come first.
    let crowd = WebhookSettings {
        calls_max: 8,
        calls_per_host_max: 4,
        timeout: Duration::from_hours(1),
        ..settings()
    };
    let webhooks = start(crowd);
    let by_name = silent.url().replace("127.0.0.1", "localhost");
    for seq in 0..50 {
        webhooks.enqueue(endpoint.owe(seq, &by_name));
    }
    for seq in 100..150 {
        webhooks.enqueue(endpoint.owe(seq, &lively.url()));
    }
    endpoint.settled(50).await;
    assert_eq!(lively.calls().len(), 50);
    assert!(silent.calls().len() <= 4);
}

#[tokio::test]
async fn many_calls_to_one_host_all_arrive_within_tight_limits() {
    let receiver = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let tight = WebhookSettings { calls_max: 3, calls_per_host_max: 2, bytes_max: 600, ..settings() };
    let webhooks = start(tight);
    for seq in 0..200 {
        let host = if seq % 2 == 0 { "127.0.0.1" } else { "localhost" };
        webhooks.enqueue(endpoint.owe(seq, &receiver.url().replace("127.0.0.1", host)));
    }
    assert_eq!(endpoint.settled(200).await.len(), 200);
    assert_eq!(receiver.calls().len(), 200);
}

#[tokio::test]
async fn a_call_that_is_no_longer_owed_is_not_made() {
    let receiver = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let webhooks = start(settings());
    let retried = endpoint.owe(1, &receiver.url());
    endpoint.jobs.lock().unwrap().get_mut(&retried.job).unwrap().0.row.state = JobState::InQueue;
    let deleted = endpoint.owe(2, &receiver.url());
    endpoint.jobs.lock().unwrap().remove(&deleted.job);
    let broken = endpoint.owe(3, "nowhere");
    let ended_again = endpoint.owe(5, &receiver.url());
    endpoint.jobs.lock().unwrap().get_mut(&ended_again.job).unwrap().0.row.attempt = Attempt(2);
    let owed = endpoint.owe(4, &receiver.url());
    for due in [retried, deleted, broken.clone(), ended_again, owed.clone()] {
        webhooks.enqueue(due);
    }
    let records = endpoint.settled(2).await;
    assert!(records.contains(&Record::Settled(broken.job)) && records.contains(&Record::Settled(owed.job)));
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_newer_debt_of_the_same_job_replaces_the_older_one() {
    let receiver = Receiver::start(&[Answer::Status(500), Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let retries = WebhookRetries { delay: Duration::from_hours(1), ..WebhookRetries::default() };
    let webhooks = start(WebhookSettings { retries, ..settings() });
    let due = endpoint.owe(1, &receiver.url());
    webhooks.enqueue(due.clone());
    let mut records = endpoint.records.subscribe();
    let first = records.wait_for(|records| records.contains(&Record::Attempted(due.job, 1)));
    tokio::time::timeout(DEADLINE, first).await.expect("an attempt").expect("an endpoint");
    webhooks.enqueue(due.clone());
    endpoint.settled(1).await;
    assert_eq!(receiver.calls().len(), 2);
}

#[tokio::test]
async fn a_time_that_a_clock_far_ahead_has_set_is_not_waited_for() {
    let receiver = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let due = PendingCall { due_at: Millis(7_200_000), ..endpoint.owe(1, &receiver.url()) };
    let webhooks = start(settings());
    webhooks.enqueue(due.clone());
    assert_eq!(endpoint.settled(1).await, [Record::Settled(due.job)]);
}

#[tokio::test]
async fn how_the_call_for_an_earlier_end_went_changes_nothing_for_the_next() {
    let receiver = Receiver::start(&[Answer::Silence, Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let timeout = Duration::from_secs(2);
    let webhooks = start(WebhookSettings { calls_per_host_max: 1, timeout, ..settings() });
    let failed = endpoint.owe(1, &receiver.url());
    webhooks.enqueue(failed.clone());
    let deadline = Instant::now() + DEADLINE;
    while receiver.calls().is_empty() {
        assert!(Instant::now() < deadline, "it is called in time");
        tokio::task::yield_now().await;
    }
    endpoint.jobs.lock().unwrap().get_mut(&failed.job).unwrap().0.row.attempt = Attempt(2);
    let end = JobEnd { attempt: Attempt(2), ..failed.end };
    webhooks.enqueue(PendingCall { end, ..failed.clone() });
    assert_eq!(endpoint.settled(1).await, [Record::Settled(failed.job)]);
    assert_eq!(receiver.calls().len(), 2);
}
