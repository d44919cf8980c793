//! `run` and `runsync`.

use std::time::Instant;

use tokio::time::timeout;

use super::fixture::{Fixture, with_key};
use super::wire::DEADLINE;

/// A body of known length.
fn body_of(bytes: usize) -> String {
    let around = r#"{"input":{"a":""}}"#.len();
    format!(r#"{{"input":{{"a":"{}"}}}}"#, "x".repeat(bytes - around))
}

#[tokio::test]
async fn run_answers_an_id_and_a_state_and_nothing_else() {
    let fixture = Fixture::start().await;
    for mount in ["/v2", "/sdk/v2"] {
        let answer = fixture.ask(&format!("POST {mount}/demo/run"), r#"{"input":{"a":1}}"#).await;
        assert_eq!(answer.status, 200);
        let record = answer.json();
        let id = record["id"].as_str().unwrap();
        assert_eq!(answer.text(), format!(r#"{{"id":"{id}","status":"IN_QUEUE"}}"#));
        // A UUID of version 7.
        assert_eq!((id.len(), &id[14..15]), (36, "7"));
    }
}

#[tokio::test]
async fn an_endpoint_answers_to_its_id_and_its_slug() {
    let fixture = Fixture::start().await;
    let id = fixture.endpoint.record().id;
    for path in [format!("/v2/{id}/run"), "/v2/demo/run".to_owned(), format!("//v2//{id}/run/")] {
        let answer = fixture.ask(&format!("POST {path}\ncontent-type: text/plain"), r#"{"input":{}}"#).await;
        assert_eq!(answer.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_worker_sees_what_was_sent_but_for_the_servers_own_members() {
    let fixture = Fixture::start().await;
    let sent = r#"{"input":{"n":[1.0,1e400,18446744073709551617]},"id":"mine","s3Config":{"accessId":"a"},"status":"x","extra": 1}"#;
    fixture.ask("POST /v2/demo/run", sent).await;
    let seen = fixture.take().await;
    assert_eq!(
        seen.members,
        r#""input":{"n":[1.0,1e400,18446744073709551617]},"s3Config":{"accessId":"a"},"extra":1"#
    );
    fixture.ask("POST /v2/demo/run", r#"{ "input": { } , "policy" : {"ttl":10000} }"#).await;
    assert_eq!(fixture.take().await.members, r#""input": { } , "policy" : {"ttl":10000}"#);
}

#[tokio::test]
async fn a_policy_reaches_the_job() {
    let fixture = Fixture::start().await;
    let policy = r#"{"input":{},"policy":{"executionTimeout":7000,"ttl":20000,"lowPriority":true}}"#;
    fixture.ask("POST /v2/demo/run", policy).await;
    let row = fixture.take().await.row;
    assert_eq!((row.execution_timeout_ms, row.ttl_ms, row.low_priority), (7_000, 20_000, true));
    fixture.ask("POST /v2/demo/run", r#"{"input":{}}"#).await;
    let row = fixture.take().await.row;
    assert_eq!((row.execution_timeout_ms, row.ttl_ms, row.low_priority), (600_000, 86_400_000, false));
}

#[tokio::test]
async fn a_body_that_is_wrong_is_400_and_changes_nothing() {
    let fixture = Fixture::start().await;
    for (body, code) in [
        ("", "bad_json"),
        ("x", "bad_json"),
        ("[]", "bad_json"),
        ("{}", "missing_input"),
        (r#"{"input":"x"}"#, "bad_input"),
        (r#"{"input":{},"policy":{"ttl":9999}}"#, "bad_policy"),
        (r#"{"input":{},"policy":{"executionTimeout":4999}}"#, "bad_policy"),
        (r#"{"input":{},"webhook":"example.com/x"}"#, "bad_webhook"),
    ] {
        for operation in ["run", "runsync"] {
            let refusal = fixture.refusal(&format!("POST /v2/demo/{operation}"), body).await;
            assert_eq!(refusal, (400, code.to_owned()), "{body}");
        }
    }
    let health = fixture.ask("GET /v2/demo/health", "").await.json();
    assert_eq!(health["jobs"]["inQueue"], 0);
}

#[tokio::test]
async fn run_takes_10_mb_and_runsync_20() {
    let fixture = Fixture::start().await;
    for (operation, bytes_max) in [("run", 10_000_000), ("runsync?wait=1000", 20_000_000)] {
        let head = format!("POST /v2/demo/{operation}");
        let answer = fixture.ask(&head, &body_of(bytes_max)).await;
        assert_eq!(answer.status, 200, "{operation}");
        let answer = fixture.ask(&head, &body_of(bytes_max + 1)).await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"), "{operation}");
    }
}

#[tokio::test]
async fn runsync_answers_the_result() {
    let fixture = Fixture::start().await;
    for bytes in [100, 1_000_000] {
        let body = body_of(bytes);
        let asked = fixture.ask("POST /v2/demo/runsync", &body);
        let worked = async {
            let job = fixture.take().await.row.id;
            assert!(job.is_sync());
            fixture.complete(job, "[1.0, 1e400]").await;
            job
        };
        let (answer, job) = tokio::join!(asked, worked);
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains(r#""output":[1.0, 1e400]"#), "{}", answer.text());
        assert!(answer.text().starts_with(&format!(r#"{{"id":"sync-{}"#, &job.to_string()[5..])));
        assert!(answer.text().contains(r#""status":"COMPLETED""#));
    }
}

#[tokio::test]
async fn runsync_answers_200_with_the_job_as_it_is_when_its_wait_passed() {
    let fixture = Fixture::start().await;
    let began = Instant::now();
    let answer = fixture.ask("POST /v2/demo/runsync?wait=1000", r#"{"input":{}}"#).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &"IN_QUEUE".into()));
    assert!(began.elapsed().as_millis() >= 1_000);
    for wait in ["999", "300001", "x", "", "-1"] {
        let refusal = fixture.refusal(&format!("POST /v2/demo/runsync?wait={wait}"), r#"{"input":{}}"#).await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()), "{wait}");
    }
}

#[tokio::test]
async fn a_failed_job_is_200_too() {
    let fixture = Fixture::start().await;
    let asked = fixture.ask("POST /v2/demo/runsync", r#"{"input":{}}"#);
    let worked = async {
        let job = fixture.take().await.row.id;
        fixture.fail(job, "no \"luck\"").await;
    };
    let (answer, ()) = tokio::join!(asked, worked);
    let record = answer.json();
    assert_eq!(
        (answer.status, &record["status"], &record["error"]),
        (200, &"FAILED".into(), &"no \"luck\"".into())
    );
    assert_eq!(record.get("output"), None);
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_job() {
    let fixture = Fixture::start().await;
    let submit = async |key: &str, body: &str| {
        fixture.ask(&format!("POST /v2/demo/run\nidempotency-key: {key}"), body).await
    };
    let first = submit("k", r#"{"input":{"a":1}}"#).await.json();
    let again = submit("k", r#"{"input":{"a":1}}"#).await.json();
    assert_eq!(first["id"], again["id"]);
    let other = submit("k2", r#"{"input":{"a":1}}"#).await.json();
    assert_ne!(first["id"], other["id"]);
    let reused = submit("k", r#"{"input":{"a":2}}"#).await;
    assert_eq!((reused.status, reused.code().as_str()), (409, "idempotency_key_reused"));
    let longest = submit(&"k".repeat(255), r#"{"input":{}}"#).await;
    assert_eq!(longest.status, 200);
    let longer = submit(&"k".repeat(256), r#"{"input":{}}"#).await;
    assert_eq!((longer.status, longer.code().as_str()), (400, "bad_idempotency_key"));
    // The response shows the job as it is now.
    let job = fixture.take().await.row.id;
    fixture.complete(job, "1").await;
    let again = submit("k", r#"{"input":{"a":1}}"#).await.json();
    assert_eq!((&again["id"], &again["status"]), (&first["id"], &"COMPLETED".into()));
}

#[tokio::test]
async fn a_second_idempotency_key_is_ambiguous() {
    let fixture = Fixture::start().await;
    // On the fast path, through the router, and where a job is submitted without the header.
    let routes = [
        "/v2/demo/run",
        "/v2/demo/runsync",
        "/sdk/v2/demo/run",
        "/v2/demo/openai/v1/models",
        "/v1/endpoints",
    ];
    for route in routes {
        for second in ["other", "first"] {
            let head = format!("POST {route}\nidempotency-key: first\nidempotency-key: {second}");
            let answer = fixture.ask(&head, r#"{"input":{}}"#).await;
            // Errors of the OpenAI routes have the code inside of `error`.
            let is_told =
                ["doubled_header", "`Idempotency-Key`"].iter().all(|part| answer.text().contains(part));
            assert!(answer.status == 400 && is_told, "{head}: {answer:?}");
        }
    }
    let health = fixture.ask("GET /v2/demo/health", "").await.json();
    assert_eq!(health["jobs"]["inQueue"], 0, "{health}");
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_the_job() {
    let fixture = Fixture::start().await;
    let mut wire = fixture.server.connect().await;
    wire.send(&with_key("POST /v2/demo/runsync"), Some(br#"{"input":{}}"#)).await;
    let job = fixture.take().await.row.id;
    drop(wire);
    fixture.complete(job, "1").await;
    assert_eq!(fixture.state(job).await, "COMPLETED");
}

#[tokio::test]
async fn a_full_queue_is_429() {
    let fixture = Fixture::with(&crate::HttpSettings::default(), r#","maxQueueLength":1"#).await;
    fixture.submit().await;
    let answer = fixture.ask("POST /v2/demo/run", r#"{"input":{}}"#).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "queue_full"));
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test]
async fn many_submits_on_one_connection_come_in_order() {
    let fixture = Fixture::start().await;
    let mut wire = fixture.server.connect().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        let head = with_key("POST /v2/demo/run");
        let asked = wire.ask(&head, br#"{"input":{}}"#);
        let answer = timeout(DEADLINE, asked).await.unwrap();
        ids.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    for id in ids {
        let job = fixture.take().await.row.id;
        assert_eq!(job.to_string(), id);
        fixture.complete(job, "1").await;
    }
}
