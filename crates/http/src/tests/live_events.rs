//! `/v1/events`: what its readers are told, and when the stream ends.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use longshore_engine::{Outcome, TakeRequest};
use longshore_hostile::cases;
use longshore_model::{JobId, KeyScope, Millis};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

use super::direct::{ADMIN, Direct, request};
use super::fixture::worker;
use crate::mint_key;

/// In the tests' time, which passes only while nothing happens.
const DEADLINE: Duration = Duration::from_secs(100);

/// One event as a reader gets it.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    name: String,
    id: u64,
    data: Value,
}

/// A response of `/v1/events`.
struct Reader {
    body: Body,
    text: String,
    last: u64,
}

impl Reader {
    async fn open(server: &Direct, path: &str, key: &str, last: Option<u64>) -> Self {
        let mut asked = request("GET", path, Some(key), "");
        if let Some(last) = last {
            asked.headers_mut().insert("last-event-id", last.to_string().parse().unwrap());
        }
        let response = server.edge.clone().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new(), last: 0 }
    }

    async fn of(server: &Direct) -> Self {
        Self::open(server, "/v1/events", ADMIN, None).await
    }

    /// The next event; `None` if the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                if let Some(event) = self.parse(&block) {
                    return Some(event);
                }
                continue;
            }
            let frame = timeout(DEADLINE, self.body.frame()).await.expect("an event comes in time")?;
            let piece: Bytes = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The event of a block of lines; `None` if it has no data.
    fn parse(&mut self, block: &str) -> Option<Event> {
        let fields: BTreeMap<_, _> = block.lines().filter_map(|line| line.split_once(": ")).collect();
        self.last = fields["id"].parse().unwrap();
        let data = serde_json::from_str(fields.get("data")?).unwrap();
        Some(Event { name: fields["event"].to_owned(), id: self.last, data })
    }

    /// The next event for which `is_it` holds.
    async fn until(&mut self, is_it: impl Fn(&Event) -> bool) -> Event {
        let reading = async {
            loop {
                let event = self.next().await.expect("the stream goes on");
                if is_it(&event) {
                    return event;
                }
            }
        };
        timeout(DEADLINE, reading).await.expect("the event comes in time")
    }

    async fn named(&mut self, name: &str) -> Event {
        self.until(|event| event.name == name).await
    }
}

async fn submit(server: &Direct) -> String {
    let made = server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    made["id"].as_str().unwrap().to_owned()
}

async fn take(server: &Direct) -> Option<JobId> {
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 0, address: None };
    let taken = server.engine.endpoint("demo").unwrap().workers().take(worker(), ask).await.unwrap();
    taken.first().map(|job| job.row.id)
}

async fn complete(server: &Direct, job: JobId) {
    let outcome = Outcome::Completed { output: Some(Bytes::from_static(b"1")) };
    server.engine.endpoint("demo").unwrap().workers().report(worker(), job, outcome).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_told_of_each_job_and_of_the_counts() {
    let server = Direct::start().await;
    let mut reader = Reader::of(&server).await;
    let hello = reader.next().await.unwrap();
    assert_eq!((hello.name.as_str(), &hello.data["resumed"]), ("hello", &json!(false)));
    assert_eq!(hello.data["seq"], json!(hello.id));
    let job = submit(&server).await;
    let told = reader.named("jobs").await;
    assert_eq!(told.data["endpoint"], json!(server.endpoint));
    assert_eq!((&told.data["counts"]["queued"], &told.data["more"]), (&json!(1), &json!(0)));
    let row = &told.data["changed"][0];
    assert_eq!((&row["id"], &row["status"]), (&json!(job), &json!("IN_QUEUE")));
    let listed = server.ask("GET", "/v2/demo/requests", "").await.json()["requests"][0].clone();
    for name in ["createdAt", "owner", "key"] {
        assert_eq!(row[name], listed[name], "{name}");
    }
    let taken = take(&server).await.unwrap();
    let told = reader.named("jobs").await;
    assert_eq!(
        (&told.data["counts"]["running"], &told.data["changed"][0]["worker"]),
        (&json!(1), &json!("w-1"))
    );
    complete(&server, taken).await;
    let told = reader.named("jobs").await;
    assert_eq!(told.data["changed"][0]["status"], "COMPLETED");
    assert_eq!(told.data["counts"]["completed"], json!(1));
    let counted = server.ask("GET", "/v2/demo/requests?counts=true", "").await.json();
    assert_eq!((&told.data["states"], &told.data["states"]["COMPLETED"]), (&counted["counts"], &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn many_changes_become_few_small_events() {
    let server = Direct::start().await;
    let mut reader = Reader::of(&server).await;
    let began = Instant::now();
    for _ in 0..300 {
        submit(&server).await;
    }
    let (mut events, mut told) = (0, 0);
    while told < 300 {
        let event = reader.named("jobs").await;
        let rows = event.data["changed"].as_array().unwrap().len() as u64;
        assert!(rows <= 100, "{rows} rows");
        told += rows + event.data["more"].as_u64().unwrap();
        events += 1;
    }
    let ticks = began.elapsed().as_millis() / 250 + 1;
    assert!(events <= ticks, "{events} events in {ticks} ticks");
}

#[tokio::test(start_paused = true)]
async fn the_numbers_the_workers_and_the_settings_are_told_when_they_change() {
    let server = Direct::start().await;
    let mut reader = Reader::open(&server, "/v1/events?endpoint=demo", ADMIN, None).await;
    let all = reader.named("stats").await;
    assert_eq!((&all.data["queued"], &all.data["idle"]), (&json!(0), &json!(0)));
    submit(&server).await;
    let changed = reader.until(|event| event.data.get("queued") == Some(&json!(1))).await;
    // The clock of the engine stands still.
    let (id, now) = (server.endpoint, server.engine.now().0);
    let expected = json!({ "endpoint": id, "slug": "demo", "queued": 1, "oldestAt": now, "finished": 0.0 });
    assert_eq!((changed.name.as_str(), changed.data), ("stats", expected));
    take(&server).await.unwrap();
    let told = reader.named("worker").await;
    assert_eq!((&told.data["id"], &told.data["status"]), (&json!("w-1"), &json!("RUNNING")));
    assert!(told.data.get("env").is_none());
    server.ask("PATCH", "/v1/endpoints/demo", r#"{"workersMax":7}"#).await;
    let told = reader.named("endpoint").await;
    assert_eq!((&told.data["id"], &told.data["workersMax"]), (&json!(server.endpoint), &json!(7)));
    server.ask("DELETE", "/v1/endpoints/demo", "").await;
    let deleted = |name| move |event: &Event| event.name == name && event.data["deleted"] == json!(true);
    let told = reader.until(deleted("endpoint")).await;
    assert_eq!(told.data, json!({ "id": server.endpoint, "deleted": true }));
    let told = reader.until(deleted("worker")).await;
    assert_eq!(told.data, json!({ "id": "w-1", "endpointId": server.endpoint, "deleted": true }));
}

/// Adds the numbers of the events up to one with which `is_complete` holds.
async fn gather(
    reader: &mut Reader,
    is_complete: impl Fn(&Map<String, Value>) -> bool,
) -> Map<String, Value> {
    let mut told = Map::new();
    while !is_complete(&told) {
        let event = reader.named("stats").await;
        told.extend(event.data.as_object().unwrap().clone());
    }
    told
}

#[tokio::test(start_paused = true)]
async fn the_times_rates_and_starts_are_told_and_what_is_of_workers_only_to_keys_that_read_the_endpoint() {
    let server = Direct::start().await;
    let minted =
        mint_key("k", vec![KeyScope::Jobs { endpoint_ids: vec![server.endpoint] }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record.clone()).await.unwrap();
    let path = "/v1/events?topics=stats&endpoint=demo";
    let mut reader = Reader::open(&server, path, ADMIN, None).await;
    let mut of_jobs = Reader::open(&server, path, &minted.text, None).await;
    let before = gather(&mut reader, |told| told.contains_key("starts")).await;
    for name in ["oldestAt", "delayP50", "delayP95", "runP50", "runP95", "failedShare", "starts", "startP50"]
    {
        assert_eq!(before[name], Value::Null, "{name}");
    }
    for _ in 0..3 {
        submit(&server).await;
    }
    for _ in 0..2 {
        let job = take(&server).await.unwrap();
        complete(&server, job).await;
    }
    let job = take(&server).await.unwrap();
    let outcome = Outcome::Failed { error: "e".to_owned(), output: None };
    server.engine.endpoint("demo").unwrap().workers().report(worker(), job, outcome).await.unwrap();
    submit(&server).await;
    let rate =
        reader.until(|event| event.data["finished"].as_f64() > Some(0.0)).await.data["finished"].clone();
    assert!(rate.as_f64() <= Some(1.5), "three jobs in 2 s or more: {rate}");
    server.engine.sample_history(&server.history);

    let is_told = |told: &Map<String, Value>| told.get("failedShare").is_some_and(Value::is_number);
    let mut told = gather(&mut reader, is_told).await;
    told.extend(gather(&mut reader, |told| told.contains_key("starts")).await);
    // No time passes for jobs, and their worker was not started by the server.
    for (name, value) in [("delayP95", 0), ("runP50", 0), ("runP95", 0), ("starts", 0)] {
        assert_eq!(told[name], json!(value), "{name}");
    }
    assert_eq!(told["failedShare"], json!(0.3333));
    let told = gather(&mut of_jobs, |told| is_told(told) && told["finished"] == json!(0.0)).await;
    assert_eq!((&told["delayP50"], &told["oldestAt"]), (&json!(0), &json!(server.engine.now().0)));
    assert!(["starts", "startP50"].iter().all(|name| !told.contains_key(*name)), "{told:?}");
    // A job waits, and nothing changes.
    let more = timeout(Duration::from_mins(1), of_jobs.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_problem_that_has_gone_is_told_although_a_reader_joins_and_although_the_endpoint_is_deleted() {
    let server = Direct::start().await;
    let mut reader = Reader::of(&server).await;
    let is_gone = |event: &Event| event.name == "attention" && event.data["deleted"] == json!(true);
    let job = submit(&server).await;
    let problem = reader.named("attention").await;
    assert_eq!(problem.data["code"], "no_external_worker");
    server.ask("POST", &format!("/v2/demo/cancel/{job}"), "").await;
    let _other = Reader::of(&server).await;
    assert_eq!(reader.until(is_gone).await.data["id"], problem.data["id"]);

    submit(&server).await;
    reader.named("attention").await;
    server.ask("DELETE", "/v1/endpoints/demo", "").await;
    assert_eq!(reader.until(is_gone).await.data["id"], problem.data["id"]);
}

#[tokio::test(start_paused = true)]
async fn the_actions_of_a_problem_are_told_to_keys_that_may_do_them() {
    let server = Direct::start().await;
    let endpoint_ids = vec![server.endpoint];
    let minted = mint_key("k", vec![KeyScope::Read { endpoint_ids }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    let mut reader = Reader::open(&server, "/v1/events", &minted.text, None).await;
    let mut of_manager = Reader::of(&server).await;
    submit(&server).await;
    let (read, managed) = (reader.named("attention").await, of_manager.named("attention").await);
    assert_eq!(managed.data["actions"][0]["do"], "showCommand");
    assert_eq!(read.data["actions"], json!([]));
    assert_eq!((&read.data["id"], &read.data["text"]), (&managed.data["id"], &managed.data["text"]));
}

#[tokio::test(start_paused = true)]
async fn what_was_read_between_two_looks_is_told_although_it_has_changed_back() {
    let server = Direct::start().await;
    submit(&server).await;
    let first = take(&server).await.unwrap();
    complete(&server, first).await;
    let mut reader = Reader::open(&server, "/v1/events?topics=stats", ADMIN, None).await;
    let is_idle = |event: &Event| event.data["busy"] == json!(0);
    reader.until(is_idle).await;
    submit(&server).await;
    let second = take(&server).await.unwrap();
    assert_eq!(server.ask("GET", "/v2/demo/health", "").await.json()["workers"]["running"], 1);
    complete(&server, second).await;
    reader.until(is_idle).await;
}

#[tokio::test(start_paused = true)]
async fn one_job_can_be_followed_by_itself() {
    let server = Direct::start().await;
    let (job, other) = (submit(&server).await, submit(&server).await);
    let path = format!("/v1/events?job=demo/{job}");
    let mut reader = Reader::open(&server, &path, ADMIN, None).await;
    assert_eq!(reader.next().await.unwrap().name, "hello");
    assert_eq!(take(&server).await.unwrap().to_string(), job);
    let told = reader.next().await.unwrap();
    assert_eq!((told.name.as_str(), &told.data["id"]), ("job", &json!(job)));
    assert_eq!(
        (&told.data["status"], &told.data["endpoint"]),
        (&json!("IN_PROGRESS"), &json!(server.endpoint))
    );
    server.ask("POST", &format!("/v2/demo/cancel/{other}"), "").await;
    complete(&server, job.parse().unwrap()).await;
    let told = reader.next().await.unwrap();
    assert_eq!((&told.data["id"], &told.data["status"]), (&json!(job), &json!("COMPLETED")));
    for wrong in ["demo", "demo/x", "/"] {
        let reply = server.ask("GET", &format!("/v1/events?job={wrong}"), "").await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "bad_parameter"), "{wrong}");
    }
    let reply = server.ask("GET", &format!("/v1/events?job=none/{job}"), "").await;
    assert_eq!(reply.status, 404);
}

#[tokio::test(start_paused = true)]
async fn webhooks_and_bulk_tasks_are_told() {
    let server = Direct::start().await;
    let mut reader = Reader::open(&server, "/v1/events?topics=webhooks,bulk", ADMIN, None).await;
    assert_eq!(reader.next().await.unwrap().name, "hello");
    let body = r#"{"input":{},"webhook":"http://127.0.0.1:9/"}"#;
    let job = server.ask("POST", "/v2/demo/run", body).await.json()["id"].clone();
    let task = server.ask("POST", "/v2/demo/bulk", r#"{"do":"cancel","filter":{}}"#).await.json();
    let told = reader.until(|event| event.name == "bulk" && event.data["state"] == "completed").await;
    assert_eq!((&told.data["id"], &told.data["done"]), (&task["id"], &json!(1)));
    let path = format!("/v2/demo/bulk/{}", task["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, "").await.status, 200);
    let told = reader.until(|event| event.name == "bulk" && event.data["deleted"] == true).await;
    assert_eq!((&told.data["id"], &told.data["endpoint"]), (&task["id"], &json!(server.endpoint)));
    let told = reader.named("webhook").await;
    assert_eq!((&told.data["job"], &told.data["endpoint"]), (&job, &json!(server.endpoint)));
}

#[tokio::test(start_paused = true)]
async fn a_reader_comes_back_to_where_it_was() {
    let server = Direct::start().await;
    let mut reader = Reader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    submit(&server).await;
    let last = reader.named("jobs").await.id;
    drop(reader);
    let missed = [submit(&server).await, submit(&server).await];
    sleep(Duration::from_secs(50)).await;
    let mut reader = Reader::open(&server, "/v1/events?topics=jobs", ADMIN, Some(last)).await;
    let hello = reader.next().await.unwrap();
    assert_eq!((hello.id, &hello.data["resumed"]), (last, &json!(true)));
    let told = reader.named("jobs").await;
    let ids: Vec<_> = told.data["changed"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, [json!(missed[1]), json!(missed[0])]);
    let last = reader.last;
    drop(reader);
    sleep(Duration::from_secs(70)).await;
    for last in [last, last + 1_000_000, 1, 0] {
        let mut reader = Reader::open(&server, "/v1/events", ADMIN, Some(last)).await;
        assert_eq!(reader.next().await.unwrap().data["resumed"], json!(false), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_keeps_its_place() {
    let server = Direct::start().await;
    let mut quiet = Reader::open(&server, "/v1/events?topics=audit", ADMIN, None).await;
    quiet.next().await.unwrap();
    let mut other = Reader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    submit(&server).await;
    let told = other.named("jobs").await.id;
    // A comment every 15 s moves the place of a reader that gets no event.
    let piece = timeout(DEADLINE, quiet.body.frame()).await.unwrap().unwrap().unwrap().into_data().unwrap();
    let text = std::str::from_utf8(&piece).unwrap();
    assert!(text.ends_with("\n: keep-alive\n\n"), "{text}");
    let at: u64 = text.strip_prefix("id: ").unwrap().split('\n').next().unwrap().parse().unwrap();
    assert!(at >= told, "{at} {told}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_is_told_of_the_gap() {
    let server = Direct::start().await;
    let mut slow = Reader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    let hello = slow.next().await.unwrap();
    let mut fast = Reader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    let mut bytes = 0;
    while bytes < 300 * 1024 {
        for _ in 0..100 {
            submit(&server).await;
        }
        bytes += fast.named("jobs").await.data.to_string().len();
        server.ask("POST", "/v2/demo/purge-queue", "").await;
        bytes += fast.named("jobs").await.data.to_string().len();
    }
    // What came a moment ago is not late.
    sleep(Duration::from_secs(3)).await;
    let gap = slow.until(|event| event.name != "jobs").await;
    assert_eq!(gap.name, "gap");
    let (from, to) = (gap.data["from"].as_u64().unwrap(), gap.data["to"].as_u64().unwrap());
    assert!(from > hello.id && to >= from && gap.id == to, "{gap:?}");
    let job = submit(&server).await;
    assert_eq!(slow.named("jobs").await.data["changed"][0]["id"], json!(job));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_told_what_it_may_read_until_it_is_revoked() {
    let server = Direct::start().await;
    let key = async |scope: KeyScope| {
        let minted = mint_key("k", vec![scope], Millis(0)).unwrap();
        server.engine.keys().put(minted.record.clone()).await.unwrap();
        minted
    };
    let jobs = key(KeyScope::Jobs { endpoint_ids: vec![server.other] }).await;
    let mut reader = Reader::open(&server, "/v1/events", &jobs.text, None).await;
    submit(&server).await;
    server.ask("PATCH", "/v1/endpoints/other", r#"{"workersMax":7}"#).await;
    let made = server.ask("POST", "/v2/other/run", r#"{"input":{}}"#).await.json();
    reader.next().await.unwrap();
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Event| event.name == "jobs") {
        seen.push(reader.next().await.unwrap());
    }
    for event in &seen {
        assert_eq!(event.data["endpoint"], json!(server.other), "{event:?}");
        assert!(["jobs", "stats"].contains(&event.name.as_str()), "{event:?}");
    }
    assert_eq!(seen.last().unwrap().data["changed"][0]["id"], made["id"]);

    // Naming an endpoint takes the right to read it.
    for (path, status) in [("/v1/events?endpoint=demo", 401), ("/v1/events?endpoint=other", 200)] {
        let reply = server.send(request("GET", path, Some(&jobs.text), "")).await;
        assert_eq!(reply.status, status, "{path}");
    }
    assert_eq!(server.ask("GET", "/v1/events?endpoint=none", "").await.status, 404);
    assert_eq!(server.ask("GET", "/v1/events?topics=jobs,none", "").await.code(), "bad_parameter");

    let began = Instant::now();
    server.engine.keys().delete(&jobs.record.id, |_| true).await.unwrap();
    while reader.next().await.is_some() {}
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_readers_is_bounded() {
    let server = Direct::start().await;
    let mut readers = Vec::new();
    for _ in 0..250 {
        readers.push(Reader::of(&server).await);
    }
    let refused = server.ask("GET", "/v1/events", "").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "too_many_readers"));
    readers.pop();
    readers.push(Reader::of(&server).await);
}

/// What a page shows: the state of each job, and the counts.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    jobs: BTreeMap<String, String>,
    counts: Value,
}

impl Shown {
    fn apply(&mut self, event: &Event) {
        if event.name != "jobs" {
            return;
        }
        assert_eq!(event.data["more"], 0, "this test makes few changes");
        self.counts = event.data["counts"].clone();
        for row in event.data["changed"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap().to_owned();
            match row["status"].as_str() {
                Some(status) => drop(self.jobs.insert(id, status.to_owned())),
                None => drop(self.jobs.remove(&id)),
            }
        }
    }

    /// Applies every event up to the one with the number `until`.
    async fn read(&mut self, reader: &mut Reader, until: u64) {
        while reader.last < until {
            match reader.next().await.unwrap() {
                event if event.name == "hello" => {}
                event => self.apply(&event),
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit,
    Take,
    Complete,
    Fail,
    CancelFirst,
    Purge,
    Wait,
    Leave,
    ComeBack,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::{CancelFirst, ComeBack, Complete, Fail, Leave, Purge, Submit, Take, Wait};
    prop::sample::select(vec![
        Submit,
        Submit,
        Submit,
        Take,
        Take,
        Complete,
        Fail,
        CancelFirst,
        Purge,
        Wait,
        Leave,
        ComeBack,
    ])
}

/// Does a step that changes jobs, or lets time pass.
async fn act(server: &Direct, step: Step, running: &mut Vec<JobId>) {
    match step {
        Step::Submit => drop(submit(server).await),
        Step::Take => running.extend(take(server).await),
        Step::Complete => {
            if let Some(job) = running.pop() {
                complete(server, job).await;
            }
        }
        Step::Fail => {
            if let Some(job) = running.pop() {
                let outcome = Outcome::Failed { error: "e".to_owned(), output: None };
                let demo = server.engine.endpoint("demo").unwrap();
                demo.workers().report(worker(), job, outcome).await.unwrap();
            }
        }
        Step::CancelFirst => {
            let list = server.ask("GET", "/v2/demo/requests", "").await.json();
            if let Some(id) = list["requests"][0]["id"].as_str() {
                server.ask("POST", &format!("/v2/demo/cancel/{id}"), "").await;
            }
        }
        Step::Purge => drop(server.ask("POST", "/v2/demo/purge-queue", "").await),
        Step::Wait => sleep(Duration::from_millis(300)).await,
        Step::Leave | Step::ComeBack => {}
    }
}

/// Runs the steps; one reader leaves and comes back, another one never leaves. Both end with the state of the server.
async fn readers_agree(steps: Vec<Step>) {
    let server = Direct::start().await;
    let path = "/v1/events?topics=jobs&endpoint=demo";
    let mut stays = Reader::open(&server, path, ADMIN, None).await;
    let mut leaves = Some(Reader::open(&server, path, ADMIN, None).await);
    let (mut shown_by_stays, mut shown_by_leaves) = (Shown::default(), Shown::default());
    let (mut last, mut running) = (leaves.as_mut().unwrap().next().await.unwrap().id, Vec::new());
    stays.next().await.unwrap();
    for step in steps {
        match step {
            Step::Leave => {
                if let Some(reader) = leaves.take() {
                    last = reader.last.max(last);
                }
            }
            Step::ComeBack => {
                if leaves.is_none() {
                    let mut reader = Reader::open(&server, path, ADMIN, Some(last)).await;
                    assert_eq!(reader.next().await.unwrap().data["resumed"], json!(true));
                    leaves = Some(reader);
                }
            }
            step => act(&server, step, &mut running).await,
        }
        // What has come so far is read.
        if let Some(reader) = &mut leaves {
            while let Ok(Some(event)) = timeout(Duration::ZERO, reader.next()).await {
                shown_by_leaves.apply(&event);
            }
        }
    }
    let mark = submit(&server).await;
    let end = loop {
        let event = stays.named("jobs").await;
        shown_by_stays.apply(&event);
        if shown_by_stays.jobs.contains_key(&mark) {
            break event.id;
        }
    };
    let mut reader = match leaves {
        Some(reader) => reader,
        None => Reader::open(&server, path, ADMIN, Some(last)).await,
    };
    shown_by_leaves.read(&mut reader, end).await;
    assert_eq!(shown_by_leaves, shown_by_stays);
    let page = server.ask("GET", "/v2/demo/requests?limit=100", "").await.json();
    let rows = page["requests"].as_array().unwrap().iter();
    let server_has: BTreeMap<_, _> = rows
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(shown_by_stays.jobs, server_has);
    let health = server.ask("GET", "/v2/demo/health", "").await.json();
    assert_eq!(shown_by_stays.counts["queued"], health["jobs"]["inQueue"]);
    assert_eq!(shown_by_stays.counts["running"], health["jobs"]["inProgress"]);
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_reader_that_comes_back_ends_with_the_state_of_one_that_never_left(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(readers_agree(steps));
    }
}
