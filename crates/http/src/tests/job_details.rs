//! The life of a job, its payloads, and finding jobs.

use bytes::Bytes;
use http::HeaderValue;
use longshore_engine::{Outcome, TakeRequest};
use longshore_model::{JobId, KeyScope, Millis, WorkerId};
use serde_json::{Value, json};

use super::direct::{ADMIN, Direct, Reply, request};
use super::fixture::worker;
use crate::mint_key;

async fn submit(server: &Direct, body: &str) -> String {
    let made = server.ask("POST", "/v2/demo/run", body).await.json();
    made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

async fn take(server: &Direct) -> JobId {
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 0, address: None };
    let taken = server.engine.endpoint("demo").unwrap().workers().take(worker(), ask).await.unwrap();
    taken[0].row.id
}

async fn end(server: &Direct, job: JobId, outcome: Outcome) {
    server.engine.endpoint("demo").unwrap().workers().report(worker(), job, outcome).await.unwrap();
}

fn completed(output: &'static str) -> Outcome {
    Outcome::Completed { output: Some(Bytes::from_static(output.as_bytes())) }
}

async fn get(server: &Direct, path: &str) -> Value {
    let reply = server.ask("GET", path, "").await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.json()
}

/// A part of a payload.
async fn part(server: &Direct, path: &str, range: &str) -> Reply {
    let mut asked = request("GET", path, Some(ADMIN), "");
    asked.headers_mut().insert("range", HeaderValue::from_str(range).unwrap());
    server.send(asked).await
}

#[tokio::test(start_paused = true)]
async fn a_job_shows_its_life_from_its_submit_to_its_end() {
    let server = Direct::start().await;
    let body = r#"{"input":{"n":1},"policy":{"lowPriority":true,"ttl":60000,"executionTimeout":7000}}"#;
    let job = submit(&server, body).await;
    let path = format!("/v2/demo/jobs/{job}");
    let queued = get(&server, &path).await;
    assert_eq!((&queued["status"], &queued["position"]), (&json!("IN_QUEUE"), &json!(1)));
    assert_eq!(queued["policy"], json!({ "executionTimeout": 7000, "ttl": 60000, "lowPriority": true }));
    assert_eq!((&queued["mode"], &queued["key"]["id"]), (&json!("async"), &json!("admin")));
    assert_eq!((&queued["attempts"], &queued["startedAt"]), (&json!([]), &Value::Null));
    assert_eq!((&queued["version"], &queued["coldStart"]), (&json!(1), &Value::Null));
    assert!(queued["ttlAt"].is_string() && queued["expiresAt"].is_null());

    let taken = take(&server).await;
    let running = get(&server, &path).await;
    let attempt = &running["attempts"][0];
    assert_eq!(
        (&attempt["n"], &attempt["worker"], &attempt["end"]),
        (&json!(1), &json!("w-1"), &Value::Null)
    );

    end(&server, taken, completed("[1.0,1e400]")).await;
    let ended = get(&server, &path).await;
    assert_eq!((&ended["status"], &ended["outputBytes"]), (&json!("COMPLETED"), &json!(11)));
    assert_eq!((&ended["attempts"][0]["end"], &ended["chunks"]), (&json!("completed"), &json!(0)));
    assert!(ended["expiresAt"].is_string() && ended["ttlAt"].is_null() && ended["output"].is_null());
}

#[tokio::test(start_paused = true)]
async fn the_worker_of_an_attempt_is_known_after_its_end() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    let workers = server.engine.endpoint("demo").unwrap();
    // The name of a worker of which the files are stored, and that is not among those that run.
    let gone: WorkerId = "w-ended".parse().unwrap();
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 0, address: None };
    let taken = workers.workers().take(gone.clone(), ask).await.unwrap()[0].row.id;
    workers.workers().report(gone, taken, completed("1")).await.unwrap();
    let life = get(&server, &format!("/v2/demo/jobs/{job}")).await;
    assert_eq!((&life["attempts"][0]["gpu"], &life["version"]), (&json!("NVIDIA L4"), &json!(3)));
    assert_eq!(life["coldStart"], Value::Null, "the worker was there before the job");
}

/// Loses the worker that has taken the job.
async fn lose(server: &Direct, counts: bool, reason: &str) {
    let demo = server.engine.endpoint("demo").unwrap();
    demo.workers().lose(worker(), counts, reason.to_owned()).await.unwrap();
}

/// The `n`, `end` and `reason` of a job's attempts.
async fn attempts(server: &Direct, job: &str) -> Vec<(u64, Value, Value)> {
    let life = get(server, &format!("/v2/demo/jobs/{job}")).await;
    let attempts = life["attempts"].as_array().unwrap().iter();
    let one = |one: &Value| (one["n"].as_u64().unwrap(), one["end"].clone(), one["reason"].clone());
    attempts.map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_shows_its_attempts_with_their_workers_times_and_ends() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    take(&server).await;
    lose(&server, true, "its computer was switched off").await;
    let waiting = get(&server, &format!("/v2/demo/jobs/{job}")).await;
    let lost = &waiting["attempts"][0];
    assert_eq!((&lost["n"], &lost["worker"], &lost["end"]), (&json!(1), &json!("w-1"), &json!("workerLost")));
    assert_eq!(lost["reason"], "its computer was switched off");
    assert!(lost["takenAt"].is_string() && lost["endedAt"].is_string(), "{lost}");

    take(&server).await;
    lose(&server, false, "the endpoint needs fewer workers").await;
    let taken = take(&server).await;
    let former = [
        (1, json!("workerLost"), json!("its computer was switched off")),
        (2, json!("drained"), json!("the endpoint needs fewer workers")),
    ];
    let running = (3, Value::Null, Value::Null);
    assert_eq!(attempts(&server, &job).await, [former.clone().to_vec(), vec![running]].concat());
    end(&server, taken, completed("1")).await;
    let completed = (3, json!("completed"), Value::Null);
    assert_eq!(attempts(&server, &job).await, [former.to_vec(), vec![completed]].concat());
}

#[tokio::test(start_paused = true)]
async fn of_many_attempts_the_last_eight_are_shown() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    for n in 1..=11 {
        take(&server).await;
        lose(&server, false, &format!("stop {n}")).await;
    }
    let numbers = async || attempts(&server, &job).await.iter().map(|(n, ..)| *n).collect::<Vec<_>>();
    assert_eq!(numbers().await, [4, 5, 6, 7, 8, 9, 10, 11]);
    take(&server).await;
    assert_eq!(numbers().await, [5, 6, 7, 8, 9, 10, 11, 12]);
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_of_a_failed_job_stays_after_a_retry_by_a_client() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    for _ in 0..3 {
        take(&server).await;
        lose(&server, true, "exit code 137").await;
    }
    let lost = |n| (n, json!("workerLost"), json!("exit code 137"));
    assert_eq!(attempts(&server, &job).await, [lost(1), lost(2), lost(3)]);
    assert_eq!(server.ask("POST", &format!("/v2/demo/retry/{job}"), "").await.status, 200);
    assert_eq!(attempts(&server, &job).await, [lost(1), lost(2), lost(3)]);
    take(&server).await;
    assert_eq!(attempts(&server, &job).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_late_result_completes_the_attempt_that_was_given_up() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    let taken = take(&server).await;
    lose(&server, true, "its lease ended").await;
    end(&server, taken, completed("1")).await;
    assert_eq!(attempts(&server, &job).await, [(1, json!("completed"), Value::Null)]);
}

#[tokio::test(start_paused = true)]
async fn payloads_come_back_byte_for_byte_and_in_parts() {
    let server = Direct::start().await;
    let input = "{ \"seed\": 9007199254740993123, \"x\": 1.0,\n \"deep\": [[[1e400]]] }";
    let body = format!(r#"{{"webhook":"http://h/","input":{input},"s3Config":{{"accessSecret":"hush"}}}}"#);
    let job = submit(&server, &body).await;
    let paths = [format!("/v2/demo/jobs/{job}/input"), format!("/v2/demo/jobs/{job}/output")];
    let whole = server.ask("GET", &paths[0], "").await;
    assert_eq!((whole.status.as_u16(), &whole.body[..]), (200, input.as_bytes()));
    assert_eq!(whole.header("content-length"), Some(input.len().to_string().as_str()));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let none = server.ask("GET", &paths[1], "").await;
    assert_eq!((none.status.as_u16(), none.code().as_str()), (404, "no_output"));

    let taken = take(&server).await;
    end(&server, taken, completed("\"0123456789\"")).await;
    assert_eq!(server.ask("GET", &paths[1], "").await.body, "\"0123456789\"");
    let some = part(&server, &paths[1], "bytes=1-4").await;
    assert_eq!((some.status.as_u16(), &some.body[..]), (206, &b"0123"[..]));
    assert_eq!(some.header("content-range"), Some("bytes 1-4/12"));
    let none = part(&server, &paths[1], "bytes=12-").await;
    assert_eq!((none.status.as_u16(), none.header("content-range")), (416, Some("bytes */12")));
    assert_eq!(none.code(), "range_not_satisfiable");
    let gone = server.engine.mint_job(false);
    for part in ["", "/input", "/output"] {
        let reply = server.ask("GET", &format!("/v2/demo/jobs/{gone}{part}"), "").await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (404, "job_not_found"), "{part}");
    }
}

async fn ids(server: &Direct, query: &str) -> Vec<String> {
    let page = get(server, &format!("/v2/demo/requests?{query}")).await;
    let rows = page["requests"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_are_found_by_what_they_are() {
    let server = Direct::start().await;
    let first =
        submit(&server, r#"{"input":{"customer":"Harbour Ltd"},"s3Config":{"accessSecret":"tide"}}"#).await;
    let second = submit(&server, r#"{"input":{}}"#).await;
    let third = submit(&server, r#"{"input":{}}"#).await;
    let taken = take(&server).await;
    end(&server, taken, completed(r#"{"caption":"A crane"}"#)).await;
    let taken = take(&server).await;
    end(&server, taken, Outcome::Failed { error: "out of MEMORY".to_owned(), output: None }).await;
    for (query, expected) in [
        ("status=COMPLETED,FAILED", vec![&second, &first]),
        ("status=IN_QUEUE", vec![&third]),
        ("worker=w-1", vec![&second, &first]),
        ("worker=w-2", vec![]),
        ("key=admin", vec![&third, &second, &first]),
        ("key=0123456789abcdef", vec![]),
        ("retried=true", vec![]),
        ("minDelayMs=1", vec![]),
        ("since=2001-01-01T00:00:00Z", vec![&third, &second, &first]),
        ("until=2001-01-01T00:00:00Z", vec![]),
        ("order=asc", vec![&first, &second, &third]),
        ("order=asc&limit=2", vec![&first, &second]),
        ("order=asc&status=FAILED,CANCELLED", vec![&second]),
        ("version=1", vec![&third, &second, &first]),
        ("version=2", vec![]),
        ("input.customer=Harbour%20Ltd", vec![&first]),
        ("input.customer=Harbour", vec![]),
        ("input.customer=Harbour%20Ltd&q=crane", vec![&first]),
        ("input.customer=Harbour%20Ltd&q=memory", vec![]),
        ("q=harbour%20ltd", vec![&first]),
        ("q=CRANE", vec![&first]),
        ("q=memory", vec![&second]),
        ("q=memory&status=COMPLETED", vec![]),
        // A secret is not found by its text.
        ("q=tide", vec![]),
    ] {
        assert_eq!(ids(&server, query).await, expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
    for part in [&second[..13], &second[second.len() - 8..], &second] {
        assert!(ids(&server, &format!("id={part}")).await.contains(&second), "{part}");
    }
    let page = get(&server, "/v2/demo/requests?q=memory&counts=true").await;
    assert_eq!((&page["searched"], &page["of"], &page["complete"]), (&json!(3), &json!(3), &json!(true)));
    let counts = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"];
    let counts = counts.map(|state| page["counts"][state].as_u64().unwrap());
    assert_eq!(counts, [1, 0, 1, 1, 0, 0]);
    for query in [
        "status=DONE",
        "status=COMPLETED,",
        "key=x",
        "since=yesterday",
        "worker=a%20b",
        "minDelayMs=-1",
        "order=up",
        "version=x",
        "input.=1",
    ] {
        let reply = server.ask("GET", &format!("/v2/demo/requests?{query}"), "").await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "bad_parameter"), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_in_pages_finds_each_job_once() {
    let server = Direct::start().await;
    for n in 0..7 {
        submit(&server, &format!(r#"{{"input":{{"word":"{}"}}}}"#, if n % 2 == 0 { "odd" } else { "even" }))
            .await;
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&server, &format!("/v2/demo/requests?q=odd&limit=3&cursor={cursor}")).await;
        found.extend(page["requests"].as_array().unwrap().iter().map(|row| row["id"].clone()));
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let unique: std::collections::HashSet<_> = found.iter().map(Value::to_string).collect();
    assert_eq!((found.len(), unique.len()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn the_receiver_of_a_webhook_is_known_before_the_first_call() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{},"webhook":"http://127.0.0.1:9/path?token=secret"}"#).await;
    let seen = get(&server, &format!("/v2/demo/jobs/{job}")).await;
    assert_eq!((&seen["webhookReceiver"], &seen["webhooks"]), (&json!("http://127.0.0.1:9"), &json!([])));
    let job = submit(&server, r#"{"input":{}}"#).await;
    assert_eq!(get(&server, &format!("/v2/demo/jobs/{job}")).await["webhookReceiver"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_listed_for_those_who_may_read_it() {
    let server = Direct::start().await;
    assert_eq!(get(&server, "/v1/attention").await, json!([]));
    submit(&server, r#"{"input":{}}"#).await;
    let all = get(&server, "/v1/attention").await;
    let problem = &all[0];
    assert_eq!((&problem["code"], &problem["severity"]), (&json!("no_external_worker"), &json!("bad")));
    assert_eq!((&problem["endpoint"], &problem["jobs"]), (&json!(server.endpoint), &json!(1)));
    assert_eq!(problem["actions"][0]["do"], "showCommand");
    let minted = mint_key("k", vec![KeyScope::Read { endpoint_ids: vec![server.other] }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    let reply = server.send(request("GET", "/v1/attention", Some(&minted.text), "")).await;
    assert_eq!(reply.json(), json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_search_finds_names_and_ids_that_the_key_may_read() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    let found = get(&server, "/v1/search?q=DEM").await;
    assert_eq!(found["endpoints"][0]["id"], json!(server.endpoint));
    for text in [&job, &job[..8], &job[job.len() - 12..]] {
        let found = get(&server, &format!("/v1/search?q={text}")).await;
        assert_eq!(found["jobs"][0]["id"], json!(job), "{text}: {found}");
        assert_eq!((&found["searched"], &found["of"]), (&json!(1), &json!(1)));
    }
    let known: WorkerId = "w-Known".parse().unwrap();
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 0, address: None };
    server.engine.endpoint("demo").unwrap().workers().take(known, ask).await.unwrap();
    let found = get(&server, "/v1/search?q=-kno").await;
    assert_eq!(found["workers"][0]["id"], "w-Known");
    assert_eq!(found["workers"][0]["endpoint"], json!(server.endpoint));
    assert_eq!(get(&server, "/v1/search?q=kn").await["workers"], json!([]), "the text is too short");
    let minted = mint_key("k", vec![KeyScope::Jobs { endpoint_ids: vec![server.other] }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    let reply = server.send(request("GET", "/v1/search?q=-kno", Some(&minted.text), "")).await;
    assert_eq!(reply.json()["workers"], json!([]), "the key may not read the endpoint");
    let reply = server.send(request("GET", &format!("/v1/search?q={job}"), Some(&minted.text), "")).await;
    assert_eq!(
        reply.json(),
        json!({ "endpoints": [], "jobs": [], "workers": [], "keys": [], "searched": 0, "of": 0, "unanswered": 0 })
    );
    for query in ["", "?q=", "?q=%20"] {
        assert_eq!(server.ask("GET", &format!("/v1/search{query}"), "").await.code(), "bad_parameter");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_found_by_its_whole_id_behind_any_number_of_newer_ones() {
    let server = Direct::start().await;
    let job = submit(&server, r#"{"input":{}}"#).await;
    for _ in 0..10_000 {
        submit(&server, r#"{"input":{}}"#).await;
    }
    let found = get(&server, &format!("/v1/search?q={}", &job[..job.len() - 1])).await;
    assert_eq!((&found["searched"], &found["of"]), (&json!(10_000), &json!(10_001)));
    assert!(found["jobs"].as_array().unwrap().iter().all(|one| one["id"] != json!(job)));
    let found = get(&server, &format!("/v1/search?q={job}")).await;
    assert_eq!(found["jobs"][0]["id"], json!(job));
}

#[tokio::test(start_paused = true)]
async fn the_jobs_of_all_endpoints_are_one_list() {
    let server = Direct::start().await;
    let mut submitted = Vec::new();
    for n in 0..50 {
        let endpoint = if n % 3 == 0 { server.other } else { server.endpoint };
        let made = server.ask("POST", &format!("/v2/{endpoint}/run"), r#"{"input":{}}"#).await.json();
        submitted.push((made["id"].clone(), json!(endpoint)));
    }
    submitted.reverse();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&server, &format!("/v1/requests?limit=7&cursor={cursor}")).await;
        assert_eq!((&page["of"], &page["unanswered"]), (&json!(50), &json!(0)));
        let jobs = page["requests"].as_array().unwrap();
        assert!(jobs.len() == 7 || page["complete"] == json!(true), "{page}");
        listed.extend(jobs.iter().map(|job| (job["id"].clone(), job["endpointId"].clone())));
        let Some(next) = page["cursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    assert_eq!(listed, submitted);

    let cancelled = submitted[20].0.as_str().unwrap();
    server.ask("POST", &format!("/v2/{}/cancel/{cancelled}", submitted[20].1.as_str().unwrap()), "").await;
    let found = get(&server, "/v1/requests?status=CANCELLED,FAILED").await;
    assert_eq!((&found["requests"][0]["id"], &found["cursor"]), (&json!(cancelled), &Value::Null));
    assert_eq!(found["requests"].as_array().unwrap().len(), 1);

    let by_state = |queued: u64, cancelled: u64| json!({ "IN_QUEUE": queued, "IN_PROGRESS": 0, "COMPLETED": 0, "FAILED": 0, "CANCELLED": cancelled, "TIMED_OUT": 0 });
    let counted = get(&server, "/v1/requests?limit=1&counts=true").await;
    assert_eq!(counted["counts"], by_state(49, 1));
    assert_eq!(found["counts"], Value::Null, "they were not asked for");

    let minted = mint_key("k", vec![KeyScope::Read { endpoint_ids: vec![server.other] }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    let path = "/v1/requests?counts=true";
    let reply = server.send(request("GET", path, Some(&minted.text), "")).await.json();
    assert_eq!((&reply["of"], &reply["counts"]), (&json!(17), &by_state(17, 0)));
    assert!(reply["requests"].as_array().unwrap().iter().all(|job| job["endpointId"] == json!(server.other)));
    for query in [
        "limit=0",
        "limit=1001",
        "status=LOST",
        "cursor=x",
        "since=now",
        "version=1",
        "input.a=1",
        "order=asc",
    ] {
        assert_eq!(server.ask("GET", &format!("/v1/requests?{query}"), "").await.code(), "bad_parameter");
    }
}
