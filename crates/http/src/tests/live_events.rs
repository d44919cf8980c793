//! `/v1/events`: what its readers are told, and when the stream ends.

mod reader;
mod readers_agree;

use std::time::Duration;

use longshore_engine::Outcome;
use longshore_model::{KeyScope, Millis};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::direct::{ADMIN, Direct, request};
use super::fixture::worker;
use crate::mint_key;
use reader::{EventsReader, ToldEvent, complete, submit, take};

#[tokio::test(start_paused = true)]
async fn a_reader_is_told_of_each_job_and_of_the_counts() {
    let server = Direct::start().await;
    let mut reader = EventsReader::of(&server).await;
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
    let mut reader = EventsReader::of(&server).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events?endpoint=demo", ADMIN, None).await;
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
    let deleted = |name| move |event: &ToldEvent| event.name == name && event.data["deleted"] == json!(true);
    let told = reader.until(deleted("endpoint")).await;
    assert_eq!(told.data, json!({ "id": server.endpoint, "deleted": true }));
    let told = reader.until(deleted("worker")).await;
    assert_eq!(told.data, json!({ "id": "w-1", "endpointId": server.endpoint, "deleted": true }));
}

/// Adds the numbers of the events up to one with which `is_complete` holds.
async fn gather(
    reader: &mut EventsReader,
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
    let mut reader = EventsReader::open(&server, path, ADMIN, None).await;
    let mut of_jobs = EventsReader::open(&server, path, &minted.text, None).await;
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
    let mut reader = EventsReader::of(&server).await;
    let is_gone = |event: &ToldEvent| event.name == "attention" && event.data["deleted"] == json!(true);
    let job = submit(&server).await;
    let problem = reader.named("attention").await;
    assert_eq!(problem.data["code"], "no_external_worker");
    server.ask("POST", &format!("/v2/demo/cancel/{job}"), "").await;
    let _other = EventsReader::of(&server).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events", &minted.text, None).await;
    let mut of_manager = EventsReader::of(&server).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events?topics=stats", ADMIN, None).await;
    let is_idle = |event: &ToldEvent| event.data["busy"] == json!(0);
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
    let mut reader = EventsReader::open(&server, &path, ADMIN, None).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events?topics=webhooks,bulk", ADMIN, None).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    submit(&server).await;
    let last = reader.named("jobs").await.id;
    drop(reader);
    let missed = [submit(&server).await, submit(&server).await];
    sleep(Duration::from_secs(50)).await;
    let mut reader = EventsReader::open(&server, "/v1/events?topics=jobs", ADMIN, Some(last)).await;
    let hello = reader.next().await.unwrap();
    assert_eq!((hello.id, &hello.data["resumed"]), (last, &json!(true)));
    let told = reader.named("jobs").await;
    let ids: Vec<_> = told.data["changed"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, [json!(missed[1]), json!(missed[0])]);
    let last = reader.last;
    drop(reader);
    sleep(Duration::from_secs(70)).await;
    for last in [last, last + 1_000_000, 1, 0] {
        let mut reader = EventsReader::open(&server, "/v1/events", ADMIN, Some(last)).await;
        assert_eq!(reader.next().await.unwrap().data["resumed"], json!(false), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_keeps_its_place() {
    let server = Direct::start().await;
    let mut quiet = EventsReader::open(&server, "/v1/events?topics=audit", ADMIN, None).await;
    quiet.next().await.unwrap();
    let mut other = EventsReader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    submit(&server).await;
    let told = other.named("jobs").await.id;
    // A comment every 15 s moves the place of a reader that gets no event.
    let text = quiet.piece().await.unwrap();
    assert!(text.ends_with("\n: keep-alive\n\n"), "{text}");
    let at: u64 = text.strip_prefix("id: ").unwrap().split('\n').next().unwrap().parse().unwrap();
    assert!(at >= told, "{at} {told}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_is_told_of_the_gap() {
    let server = Direct::start().await;
    let mut slow = EventsReader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
    let hello = slow.next().await.unwrap();
    let mut fast = EventsReader::open(&server, "/v1/events?topics=jobs", ADMIN, None).await;
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
    let mut reader = EventsReader::open(&server, "/v1/events", &jobs.text, None).await;
    submit(&server).await;
    server.ask("PATCH", "/v1/endpoints/other", r#"{"workersMax":7}"#).await;
    let made = server.ask("POST", "/v2/other/run", r#"{"input":{}}"#).await.json();
    reader.next().await.unwrap();
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &ToldEvent| event.name == "jobs") {
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
        readers.push(EventsReader::of(&server).await);
    }
    let refused = server.ask("GET", "/v1/events", "").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "too_many_readers"));
    readers.pop();
    readers.push(EventsReader::of(&server).await);
}
