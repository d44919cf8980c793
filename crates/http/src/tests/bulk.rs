//! Bulk tasks: what they select, do and refuse.

use std::time::Duration;

use longshore_model::JobId;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::fixture::Fixture;
use super::wire::DEADLINE;

/// Creates a task, and returns it when it has ended.
async fn ended(server: &Fixture, body: &Value) -> Value {
    let created = server.ask("POST /v2/demo/bulk", &body.to_string()).await;
    assert_eq!(created.status, 202, "{created:?}");
    let path = format!("GET /v2/demo/bulk/{}", created.json()["id"].as_str().unwrap());
    let over = async {
        loop {
            let task = server.ask(&path, "").await.json();
            if task["state"] != "running" {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, over).await.unwrap()
}

fn numbers(task: &Value) -> (u64, u64, u64) {
    let number = |name: &str| task[name].as_u64().unwrap();
    (number("matches"), number("done"), number("failed"))
}

async fn failed(server: &Fixture) -> JobId {
    let job = server.running().await;
    server.fail(job, "out of memory").await;
    job
}

#[tokio::test]
async fn all_waiting_jobs_are_cancelled_in_batches() {
    let server = Fixture::start().await;
    let running = server.running().await;
    let mut waiting = Vec::new();
    for _ in 0..250 {
        waiting.push(server.submit().await);
    }
    let body = json!({ "do": "cancel", "filter": { "status": "IN_QUEUE" }, "dryRun": true });
    let dry = server.ask("POST /v2/demo/bulk", &body.to_string()).await;
    assert_eq!(dry.status, 202);
    let dry = dry.json();
    assert_eq!((&dry["id"], &dry["matches"], &dry["counted"]), (&Value::Null, &json!(250), &json!(true)));
    assert_eq!(server.state(waiting[0]).await, "IN_QUEUE");
    let task = ended(&server, &json!({ "do": "cancel", "filter": { "status": "IN_QUEUE" } })).await;
    assert_eq!((&task["state"], numbers(&task)), (&json!("completed"), (250, 250, 0)));
    assert!(task["endedAt"].is_string() && task["by"] == "admin", "{task}");
    assert_eq!(server.state(waiting[249]).await, "CANCELLED");
    assert_eq!(server.state(running).await, "IN_PROGRESS");
    // The same once more has nothing to do.
    let again = ended(&server, &json!({ "do": "cancel", "filter": { "status": "IN_QUEUE" } })).await;
    assert_eq!(numbers(&again), (0, 0, 0));
    let list = server.ask("GET /v2/demo/bulk", "").await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(list[0]["id"], again["id"]);
}

#[tokio::test]
async fn failed_jobs_are_retried_once_by_filter_or_by_id() {
    let server = Fixture::start().await;
    let one = failed(&server).await;
    let other = failed(&server).await;
    let done = server.running().await;
    server.complete(done, "1").await;
    let gone = server.engine.mint_job(false);
    let ids = json!({ "do": "retry", "ids": [one, one, done, gone] });
    let task = ended(&server, &ids).await;
    assert_eq!(numbers(&task), (3, 1, 2));
    assert_eq!(server.state(one).await, "IN_QUEUE");
    assert_eq!(server.state(done).await, "COMPLETED");
    let task = ended(&server, &json!({ "do": "retry", "filter": { "q": "OUT OF mem" } })).await;
    assert_eq!(numbers(&task), (1, 1, 0));
    assert_eq!(server.state(other).await, "IN_QUEUE");
}

#[tokio::test]
async fn ended_jobs_are_deleted_and_others_stay() {
    let server = Fixture::start().await;
    let job = failed(&server).await;
    let waiting = server.submit().await;
    let task = ended(&server, &json!({ "do": "delete", "filter": {} })).await;
    assert_eq!(numbers(&task), (1, 1, 0));
    server.until_status_is(job, 404).await;
    assert_eq!(server.state(waiting).await, "IN_QUEUE");
    let path = format!("/v2/demo/bulk/{}", task["id"].as_str().unwrap());
    // An ended task is forgotten.
    assert_eq!(server.ask(&format!("DELETE {path}"), "").await.status, 200);
    let refused = server.refusal(&format!("GET {path}"), "").await;
    assert_eq!(refused, (404, "bulk_task_not_found".to_owned()));
}

#[tokio::test]
async fn a_wrong_request_names_what_is_wrong_and_changes_nothing() {
    let server = Fixture::start().await;
    let waiting = server.submit().await;
    let many = vec![waiting.to_string(); 1_001];
    for (body, named) in [
        (json!({}), "`do`"),
        (json!({ "do": "drop", "filter": {} }), "`do`"),
        (json!({ "do": "cancel" }), "`filter`"),
        (json!({ "do": "cancel", "filter": {}, "ids": [] }), "`filter`"),
        (json!({ "do": "cancel", "filter": [] }), "`filter`"),
        (json!({ "do": "cancel", "filter": { "stauts": "FAILED" } }), "`filter.stauts`"),
        (json!({ "do": "cancel", "filter": { "status": "LOST" } }), "`status`"),
        (json!({ "do": "cancel", "filter": { "status": "FAILED" } }), "`filter.status`"),
        (json!({ "do": "cancel", "filter": { "since": "now" } }), "`filter.since`"),
        (json!({ "do": "cancel", "filter": { "minDelayMs": -1 } }), "`filter.minDelayMs`"),
        (json!({ "do": "cancel", "filter": { "worker": "a/b" } }), "`worker`"),
        (json!({ "do": "cancel", "filter": { "q": "x".repeat(201) } }), "`q`"),
        // With the value of an unset variable, all jobs would match.
        (json!({ "do": "cancel", "filter": { "worker": "" } }), "`filter.worker`"),
        (json!({ "do": "cancel", "filter": { "error": " " } }), "`filter.error`"),
        (json!({ "do": "cancel", "filter": { "input": {} } }), "`filter.input`"),
        (json!({ "do": "cancel", "filter": { "key": null } }), "`filter.key`"),
        (json!({ "do": "cancel", "ids": [] }), "`ids`"),
        (json!({ "do": "cancel", "ids": many }), "`ids`"),
        (json!({ "do": "cancel", "ids": [waiting, "x"] }), "`ids[1]`"),
        (json!({ "do": "cancel", "filter": {}, "dryRun": 1 }), "`dryRun`"),
        (json!({ "do": "cancel", "filter": {}, "sure": true }), "`sure`"),
    ] {
        let answer = server.ask("POST /v2/demo/bulk", &body.to_string()).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.text().contains(named), "{body}: {}", answer.text());
    }
    assert_eq!(server.refusal("POST /v2/demo/bulk", "{").await, (400, "bad_json".to_owned()));
    let unknown = format!("/v2/demo/bulk/{}", server.engine.mint_job(false));
    for method in ["GET", "DELETE"] {
        for path in [unknown.as_str(), "/v2/demo/bulk/x"] {
            let refused = server.refusal(&format!("{method} {path}"), "").await;
            assert_eq!(refused, (404, "bulk_task_not_found".to_owned()), "{method} {path}");
        }
    }
    assert_eq!(server.state(waiting).await, "IN_QUEUE");
    assert_eq!(server.ask("GET /v2/demo/bulk", "").await.json(), json!([]));
}
