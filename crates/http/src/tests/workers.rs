//! The worker protocol over a socket. Numbers are those of the traps in the protocol's description.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{HOLD_MS, Server};
use super::wire::Wire;

/// Longer than any test takes on a busy computer.
const LONG_HOLD_MS: u64 = 25_000;

#[tokio::test]
async fn a_worker_takes_a_job_and_brings_its_result() {
    let server = Server::start().await;
    let job = server.run(r#"{"input": {"n": 1.0, "big": 12345678901234567890123}, "extra": [1]}"#).await;
    let taken = server.worker("GET job-take/w1?gpu=X&job_in_progress=0", b"").await;
    assert_eq!((taken.status, taken.header("content-type")), (200, Some("application/json")));
    assert!(
        taken.text().contains(r#""input": {"n": 1.0, "big": 12345678901234567890123}"#),
        "{}",
        taken.text()
    );
    let object = taken.json();
    assert_eq!((&object["id"], &object["status"]), (&json!(job), &json!("IN_PROGRESS")));
    assert!(object["delayTime"].is_u64());
    assert_eq!(object["extra"], json!([1]));
    server.report(&format!("job-done/w1/{job}"), r#"{"output": {"x": 1.0}}"#).await;
    let record = server.client(&format!("GET status/{job}"), "").await;
    assert!(record.text().contains(r#""output":{"x": 1.0}"#), "{}", record.text());
    assert_eq!(record.json()["status"], "COMPLETED");
}

#[tokio::test]
async fn asking_for_the_head_of_an_answer_takes_no_job() {
    let server = Server::start().await;
    let job = server.run(r#"{"input": {}}"#).await;
    for question in ["job-take", "job-take-batch", "job-stop"] {
        let mut wire = server.served().connect().await;
        let head = server.worker_head(&format!("HEAD {question}/w1?batch_size=2&job_in_progress=0"));
        wire.send(&head, None).await;
        let answer = wire.answer(true).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")), "{question}");
    }
    assert_eq!(server.record(&job).await["status"], "IN_QUEUE");
}

#[tokio::test]
async fn trap_1_and_3_reports_are_json_bytes_with_any_content_type() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let body = r#"{"output": {"loss": NaN, "max": [Infinity, -Infinity], "digits": 1.50, "text": "NaN"}}"#;
    server.report(&format!("job-done/w1/{job}"), body).await;
    let record = server.client(&format!("GET status/{job}"), "").await;
    let expected = r#""output":{"loss": null, "max": [null, null], "digits": 1.50, "text": "NaN"}"#;
    assert!(record.text().contains(expected), "{}", record.text());
}

#[tokio::test]
async fn trap_2_a_result_of_thirty_megabytes_fails_the_job_and_tells_why() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let body = format!(r#"{{"output": "{}"}}"#, "x".repeat(30_000_000));
    server.report(&format!("job-done/w1/{job}"), body).await;
    let record = server.record(&job).await;
    assert_eq!(record["status"], "FAILED");
    assert!(record["error"].as_str().unwrap().contains("10000000"), "{record}");
}

#[tokio::test]
async fn a_report_over_the_limit_of_request_bodies_fails_the_job_too() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let mut wire = server.served().connect().await;
    let head = server.worker_head(&format!("POST job-done/w1/{job}"));
    wire.send(&format!("{head}\ncontent-length: 64000001\nexpect: 100-continue"), None).await;
    let mut answer = wire.answer(false).await;
    if answer.status == 100 {
        answer = wire.answer(false).await;
    }
    assert_eq!(answer.status, 200);
    let record = server.record(&job).await;
    assert_eq!(record["status"], "FAILED");
    let error = "the worker's report has 64000001 bytes, the limit is 64000000: upload it to storage and return a link";
    assert_eq!(record["error"], error);
}

#[tokio::test]
async fn trap_4_tokens_come_raw_or_as_bearer_and_keys_are_no_tokens() {
    let server = Server::start().await;
    let line = "GET ping/w1";
    for good in [server.token.clone(), format!("Bearer {}", server.token), format!("bearer {}", server.token)]
    {
        assert_eq!(server.served().ask(&server.head(line, &good), b"").await.status, 200, "{good}");
    }
    for bad in [
        "",
        "Bearer",
        "Bearer the operators key",
        "the operators key",
        "lsw_x",
        &format!("{}x", server.token),
    ] {
        let answer = server.served().ask(&server.head(line, bad), b"").await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{bad}");
    }
    let other = json!({ "provider": "external", "template": { "name": "u" } });
    let other = server.manage("POST /v1/endpoints", &other).await.json();
    let line = format!("GET /v2/{}/ping/w1\nauthorization: {}", other["id"].as_str().unwrap(), server.token);
    assert_eq!(server.served().ask(&line, b"").await.status, 401);
    // The token permits nothing else.
    let answer = server.served().ask(&server.head("GET health", &server.token), b"").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn trap_5_templates_without_a_question_mark_work() {
    let server = Server::start().await;
    let job = server.run(r#"{"input": {}}"#).await;
    let taken = server.worker("GET job-take/w1&job_in_progress=0", b"").await;
    assert_eq!(taken.json()["id"], job.as_str());
    let answer = server.worker(&format!("POST job-done/w1/{job}&isStream=false"), br#"{"output": 1}"#).await;
    assert_eq!((answer.status, server.record(&job).await["status"].clone()), (200, json!("COMPLETED")));
    let jobs = [server.run(r#"{"input": {}}"#).await, server.run(r#"{"input": {}}"#).await];
    let taken = server.worker("GET job-take-batch/w1&batch_size=2&job_in_progress=0", b"").await.json();
    assert_eq!([&taken[0]["id"], &taken[1]["id"]], [jobs[0].as_str(), jobs[1].as_str()]);
}

#[tokio::test]
async fn trap_7_nothing_is_said_only_after_a_hold_and_refusals_after_a_pause() {
    let server = Server::start().await;
    for line in ["GET job-take/w1", "GET job-take-batch/w1?batch_size=5", "GET job-stop/w1"] {
        let began = Instant::now();
        let answer = server.worker(line, b"").await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{line}");
        assert!(began.elapsed() >= Duration::from_millis(HOLD_MS), "{line}");
    }
    for line in ["GET job-take/w1", "GET job-stop/w1"] {
        let began = Instant::now();
        assert_eq!(server.served().ask(&server.head(line, "wrong"), b"").await.status, 401);
        assert!(began.elapsed() >= Duration::from_secs(1), "{line}");
    }
    let began = Instant::now();
    let answer = server.worker("GET job-take/w%20x", b"").await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_worker_id"));
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_parked_worker_gets_a_job_the_moment_it_comes() {
    let server = Server::holding(LONG_HOLD_MS).await;
    let mut parked = server.served().connect().await;
    parked.send(&server.worker_head("GET job-take/w1"), None).await;
    until(async || server.health().await["workers"]["idle"] == 1).await;
    let job = server.run(r#"{"input": {}}"#).await;
    assert_eq!(parked.answer(false).await.json()["id"], job.as_str());
}

#[tokio::test]
async fn trap_8_a_poll_whose_client_is_gone_gets_no_job() {
    let server = Server::holding(LONG_HOLD_MS).await;
    let mut gone = server.served().connect().await;
    gone.send(&server.worker_head("GET job-take/w1"), None).await;
    until(async || server.health().await["workers"]["idle"] == 1).await;
    drop(gone);
    let mut present = server.served().connect().await;
    present.send(&server.worker_head("GET job-take/w2"), None).await;
    until(async || server.health().await["workers"]["idle"] == 2).await;
    let job = server.run(r#"{"input": {}}"#).await;
    assert_eq!(present.answer(false).await.json()["id"], job.as_str());
}

#[tokio::test]
async fn trap_12_15_16_reports_that_count_for_nothing_are_answered_200() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let unknown = "01901234-5678-7fff-bfff-ffffffffffff";
    for path in [
        format!("job-done/w1/{unknown}"),
        "job-done/w1/not-an-id".to_owned(),
        "job-done/w%20x/y".to_owned(),
        format!("job-stream/w1/{unknown}"),
        "job-stream/w1/$ID".to_owned(),
        format!("job-done/stranger/{unknown}"),
    ] {
        server.report(&path, r#"{"output": "foreign"}"#).await;
    }
    assert_eq!(server.record(&job).await["status"], "IN_PROGRESS");
    let path = format!("job-done/w1/{job}");
    server.report(&path, r#"{"output": "first"}"#).await;
    let over = server.record(&job).await;
    for late in
        [r#"{"output": "second"}"#, r#"{"error": "late"}"#, r#"{"status": "IN_PROGRESS", "output": 1}"#, "{"]
    {
        server.report(&path, late).await;
    }
    server.report(&format!("job-stream/w1/{job}"), r#"{"output": "late"}"#).await;
    assert_eq!(server.record(&job).await, over);
    assert_eq!(over["output"], "first");
}

#[tokio::test]
async fn trap_13_slashes_too_many_are_tolerated() {
    let server = Server::start().await;
    let job = server.run(r#"{"input": {}}"#).await;
    assert_eq!(server.worker("GET //job-take//w1/?x=1", b"").await.json()["id"], job.as_str());
    server.report(&format!("job-done//w1/{job}/"), r#"{"output": 1}"#).await;
    assert_eq!(server.record(&job).await["status"], "COMPLETED");
}

#[tokio::test]
async fn trap_14_chunks_are_told_from_results_by_path() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    for chunk in ["0", "null", r#""a""#, r#"{"t": 1.0}"#] {
        server.report(&format!("job-stream/w1/{job}"), format!(r#"{{"output": {chunk}}}"#)).await;
    }
    assert_eq!(server.record(&job).await["status"], "IN_PROGRESS");
    let done = format!("POST job-done/w1/{job}?&isStream=true");
    assert_eq!(server.worker(&done, br#"{"output": []}"#).await.status, 200);
    let chunks = server.client(&format!("GET stream/{job}"), "").await.json();
    assert_eq!(chunks, json!([{"output": 0}, {"output": null}, {"output": "a"}, {"output": {"t": 1.0}}]));
    assert_eq!(server.record(&job).await["status"], "COMPLETED");
}

#[tokio::test]
async fn trap_17_errors_have_many_shapes_and_nothing_is_success() {
    let server = Server::start().await;
    for (body, status, error, output) in [
        (r#"{"error": {"message": "m"}}"#, "FAILED", json!(r#"{"message": "m"}"#), Value::Null),
        (r#"{"error": "text", "output": {"part": 1}}"#, "FAILED", json!("text"), json!({"part": 1})),
        (r#"{"error": "{\"error_type\": \"E\"}"}"#, "FAILED", json!(r#"{"error_type": "E"}"#), Value::Null),
        ("{}", "COMPLETED", Value::Null, Value::Null),
        (r#"{"output": 7, "error": ""}"#, "COMPLETED", Value::Null, json!(7)),
    ] {
        let job = server.running("w1").await;
        server.report(&format!("job-done/w1/{job}"), body).await;
        let record = server.record(&job).await;
        assert_eq!(
            (&record["status"], &record["error"], &record["output"]),
            (&json!(status), &error, &output)
        );
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_read_fails_its_job_and_says_why() {
    let server = Server::start().await;
    for (body, part) in [
        (&b"output=1"[..], "cannot be read"),
        (b"", "cannot be read"),
        (b"[1]", "a JSON object with `output` or `error`"),
        (b"{\"output\": \"\xff\"}", "cannot be read"),
    ] {
        let job = server.running("w1").await;
        server.report(&format!("job-done/w1/{job}"), body).await;
        let record = server.record(&job).await;
        assert_eq!(record["status"], "FAILED");
        assert!(record["error"].as_str().unwrap().contains(part), "{record}");
    }
}

#[tokio::test]
async fn progress_is_seen_until_the_result_comes() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    server
        .report(&format!("job-done/w1/{job}"), r#"{"status": "IN_PROGRESS", "output": {"step": 1.0}}"#)
        .await;
    let record = server.record(&job).await;
    assert_eq!((&record["status"], &record["output"]), (&json!("IN_PROGRESS"), &json!({"step": 1.0})));
    server.report(&format!("job-done/w1/{job}"), "{}").await;
    let record = server.record(&job).await;
    assert_eq!((&record["status"], &record["output"]), (&json!("COMPLETED"), &Value::Null));
}

#[tokio::test]
async fn trap_18_an_external_worker_that_asks_to_be_replaced_and_is_not_goes_on() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    server.report(&format!("job-done/w1/{job}"), r#"{"output": 1, "stopPod": true}"#).await;
    assert_eq!(server.record(&job).await["status"], "COMPLETED");
    // The server does not replace an external worker, so a worker that asks for it stays.
    let next = server.run(r#"{"input": {}}"#).await;
    assert_eq!(server.worker("GET job-take/w1", b"").await.json()["id"], next.as_str());
}

#[tokio::test]
async fn trap_19_a_cancelled_job_is_on_the_stop_channel() {
    let server = Server::holding(LONG_HOLD_MS).await;
    let job = server.running("w1").await;
    let mut stops = server.served().connect().await;
    stops.send(&server.worker_head("GET job-stop/w1?gpu=X"), None).await;
    server.client(&format!("POST cancel/{job}"), "").await;
    assert_eq!(stops.answer(false).await.json(), json!({ "jobsToStop": [job] }));
}

#[tokio::test]
async fn trap_20_one_job_is_an_object_and_a_batch_is_an_array() {
    let server = Server::start().await;
    let job = server.run(r#"{"input": {}}"#).await;
    let taken = server.worker("GET job-take/w1?batch_size=5", b"").await.json();
    assert_eq!((&taken["id"], &taken["input"]), (&json!(job), &json!({})));
    let job = server.run(r#"{"input": {}}"#).await;
    let taken = server.worker("GET job-take-batch/w1?batch_size=9&job_in_progress=1", b"").await.json();
    assert_eq!(taken.as_array().unwrap().len(), 1);
    assert_eq!((&taken[0]["id"], &taken[0]["input"]), (&json!(job), &json!({})));
}

#[tokio::test]
async fn trap_33_a_failed_self_check_takes_the_worker_out() {
    let server = Server::holding(LONG_HOLD_MS).await;
    let mut question = open_question(&server, "w1").await;
    let ping = "GET ping/w1?status=unhealthy&check=_network_check&reason=RuntimeError%3A%20no%20route";
    assert_eq!(server.worker(ping, b"").await.status, 200);
    assert_eq!(question.answer(false).await.status, 204);
    let job = server.run(r#"{"input": {}}"#).await;
    assert_eq!(server.worker("GET job-take/w2", b"").await.json()["id"], job.as_str());
}

#[tokio::test]
async fn a_long_chunk_of_any_kind_is_split() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let text = "é".repeat(800_000);
    server.report(&format!("job-stream/w1/{job}"), json!({ "output": text }).to_string()).await;
    server.report(&format!("job-stream/w1/{job}"), r#"{"output": "end"}"#).await;
    let chunks = server.client(&format!("GET stream/{job}?offset=0"), "").await.json();
    let chunks: Vec<_> =
        chunks.as_array().unwrap().iter().map(|chunk| chunk["output"].as_str().unwrap()).collect();
    assert_eq!(chunks.len(), 3);
    assert!(chunks.iter().all(|chunk| chunk.len() <= 1_000_000));
    assert_eq!(chunks.concat(), text + "end");
    let object = json!({ "output": { "text": "x".repeat(2_500_000), "n": 1.0 }, "metrics": { "m": 2 } });
    server.report(&format!("job-stream/w1/{job}"), object.to_string()).await;
    let number = format!("{{\"output\": {}}}", "7".repeat(1_500_000));
    server.report(&format!("job-stream/w1/{job}"), number).await;
    let chunks = server.client(&format!("GET stream/{job}?offset=3"), "").await.json();
    let chunks = chunks.as_array().unwrap();
    assert_eq!(chunks.len(), 5);
    assert!(chunks.iter().all(|chunk| chunk.to_string().len() <= 1_000_000));
    assert_eq!((&chunks[0]["output"]["n"], &chunks[0]["metrics"]), (&json!(1.0), &json!({ "m": 2 })));
    let texts = chunks[..3].iter().map(|chunk| chunk["output"]["text"].as_str().unwrap());
    assert_eq!(texts.collect::<String>(), "x".repeat(2_500_000));
    let digits = chunks[3..].iter().map(|chunk| chunk["output"].as_str().unwrap());
    assert_eq!(digits.collect::<String>(), "7".repeat(1_500_000));
    assert_eq!(server.record(&job).await["status"], "IN_PROGRESS");
}

#[tokio::test]
async fn metrics_of_a_chunk_are_shown_wherever_it_is() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    for body in [
        r#"{"output": "a", "metrics": {"n": 1.0, "x": NaN}}"#,
        r#"{"output": {"output": ["b"], "metrics": {"deep": {"m": 1e400}}}}"#,
        r#"{"output": "c", "metrics": 3}"#,
        r#"{"output": {"output": 1, "metrics": {}, "more": 1}}"#,
    ] {
        server.report(&format!("job-stream/w1/{job}"), body).await;
    }
    let chunks = r#"[{"output":"a","metrics":{"n": 1.0, "x": null}},{"output":["b"],"metrics":{"deep": {"m": 1e400}}},{"output":"c"},{"output":{"output": 1, "metrics": {}, "more": 1}}]"#;
    assert_eq!(server.client(&format!("GET stream/{job}?offset=0"), "").await.text(), chunks);
    assert_eq!(server.client(&format!("GET stream/{job}"), "").await.text(), chunks);
    server.report(&format!("job-done/w1/{job}"), r#"{"output": [{"output": "a", "metrics": {}}]}"#).await;
    let record = server.record(&job).await;
    assert_eq!(
        record["output"],
        json!([{ "output": "a", "metrics": {} }]),
        "the output is what the worker says"
    );
}

/// A worker's take that the server holds open; the worker counts as idle.
async fn open_question(server: &Server, worker: &str) -> Wire {
    let mut question = server.served().connect().await;
    question.send(&server.worker_head(&format!("GET job-take/{worker}?gpu=X")), None).await;
    until(async || server.health().await["workers"]["idle"] == 1).await;
    question
}

/// Waits for `condition`; a wait that is too long fails the test.
async fn until(condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + super::wire::DEADLINE;
    while !condition().await {
        assert!(Instant::now() < deadline, "the condition never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
