//! `status` and `status-sync`.

use bytes::Bytes;
use longshore_engine::Outcome;

use super::fixture::{Fixture, worker};

fn keys(record: &serde_json::Value) -> Vec<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_record_grows_with_its_job() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    let status = async |method: &str| fixture.ask(&format!("{method} /v2/demo/status/{job}"), "").await;
    assert_eq!(status("GET").await.text(), format!(r#"{{"id":"{job}","status":"IN_QUEUE"}}"#));

    fixture.take().await;
    let record = status("POST").await.json();
    assert_eq!(keys(&record), ["delayTime", "executionTime", "id", "status", "workerId"]);
    assert_eq!((&record["status"], &record["workerId"]), (&"IN_PROGRESS".into(), &"w-1".into()));

    fixture.endpoint.workers().progress(worker(), job, Bytes::from_static(b"\"half\"")).await.unwrap();
    assert_eq!(status("GET").await.json()["output"], "half");

    fixture.complete(job, r#"{"big": 18446744073709551617, "f":1.0,"e":1e400}"#).await;
    let answer = status("GET").await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains(r#""output":{"big": 18446744073709551617, "f":1.0,"e":1e400}"#));
    let record = fixture.ask(&format!("GET /sdk/v2/demo/status/{job}/?unknown=1"), "").await;
    assert_eq!(record.text(), answer.text());
}

#[tokio::test]
async fn a_waiting_job_tells_its_place_where_that_is_asked_for() {
    let fixture = Fixture::start().await;
    let (first, second) = (fixture.submit().await, fixture.submit().await);
    let place = async |operation: &str, job| {
        let record = fixture.ask(&format!("GET /v2/demo/{operation}{job}position=true"), "").await.json();
        (record["status"].as_str().unwrap().to_owned(), record["position"].as_u64())
    };
    let waits = |position| ("IN_QUEUE".to_owned(), Some(position));
    assert_eq!(place("status/", format!("{first}?")).await, waits(1));
    assert_eq!(place("status/", format!("{second}?")).await, waits(2));
    assert_eq!(place("status/", format!("{second}?ttl=60000&")).await, waits(2));
    assert_eq!(place("status-sync/", format!("{second}?wait=1000&")).await, waits(2));

    assert_eq!(fixture.take().await.row.id, first);
    assert_eq!(place("status/", format!("{first}?")).await, ("IN_PROGRESS".to_owned(), None));
    assert_eq!(place("status/", format!("{second}?")).await, waits(1));
    let plain = fixture.ask(&format!("GET /v2/demo/status/{second}?position=false"), "").await;
    assert_eq!(plain.text(), format!(r#"{{"id":"{second}","status":"IN_QUEUE"}}"#));
}

#[tokio::test]
async fn a_result_without_output_shows_none() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.endpoint.workers().report(worker(), job, Outcome::Completed { output: None }).await.unwrap();
    let record = fixture.ask(&format!("GET /v2/demo/status/{job}"), "").await.json();
    assert_eq!(keys(&record), ["delayTime", "executionTime", "id", "status", "workerId"]);
}

#[tokio::test]
async fn an_error_comes_with_what_there_is_of_an_output() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let outcome = Outcome::Failed { error: "e".to_owned(), output: Some(Bytes::from_static(b"[1]")) };
    fixture.endpoint.workers().report(worker(), job, outcome).await.unwrap();
    let record = fixture.ask(&format!("GET /v2/demo/status/{job}"), "").await.json();
    assert_eq!(
        (&record["status"], &record["error"], &record["output"][0]),
        (&"FAILED".into(), &"e".into(), &1.into())
    );
}

#[tokio::test]
async fn a_large_output_comes_whole() {
    let fixture = Fixture::start().await;
    let asked = fixture.ask("POST /v2/demo/runsync", r#"{"input":{}}"#);
    let output = format!("\"{}\"", "y".repeat(19_000_000));
    let worked = async {
        let job = fixture.take().await.row.id;
        let output = Some(Bytes::from(output.clone()));
        fixture.endpoint.workers().report(worker(), job, Outcome::Completed { output }).await.unwrap();
        job
    };
    let (answer, job) = tokio::join!(asked, worked);
    assert_eq!(answer.json()["output"].as_str().unwrap().len(), 19_000_000);
    let answer = fixture.ask(&format!("GET /v2/demo/status/{job}"), "").await;
    assert!(answer.text().contains(&output));
}

#[tokio::test]
async fn an_unknown_job_is_404() {
    let fixture = Fixture::start().await;
    let other = "0190163d-8694-739b-aea5-966c26f8ad90";
    for job in [other, &format!("sync-{other}"), "x", "undefined", "a%2Fb"] {
        for operation in ["status", "status-sync", "stream"] {
            let refusal = fixture.refusal(&format!("GET /v2/demo/{operation}/{job}"), "").await;
            assert_eq!(refusal, (404, "job_not_found".to_owned()), "{operation} {job}");
        }
        for operation in ["cancel", "retry"] {
            let refusal = fixture.refusal(&format!("POST /v2/demo/{operation}/{job}"), "").await;
            assert_eq!(refusal, (404, "job_not_found".to_owned()), "{operation} {job}");
        }
    }
    // A job of another endpoint is unknown here; so is an id without its prefix.
    let job = fixture.ask("POST /v2/demo/runsync?wait=1000", r#"{"input":{}}"#).await.json();
    let bare = job["id"].as_str().unwrap().strip_prefix("sync-").unwrap().to_owned();
    assert_eq!(fixture.refusal(&format!("GET /v2/demo/status/{bare}"), "").await.0, 404);
}

#[tokio::test]
async fn a_ttl_in_the_query_deletes_the_job_then() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    for ttl in ["999", "604800001", "x"] {
        let refusal = fixture.refusal(&format!("GET /v2/demo/status/{job}?ttl={ttl}"), "").await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()));
    }
    let answer = fixture.ask(&format!("GET /v2/demo/status/{job}?ttl=604800000"), "").await;
    assert_eq!(answer.json()["status"], "IN_QUEUE");
    let answer = fixture.ask(&format!("GET /v2/demo/status/{job}?ttl=1000"), "").await;
    assert_eq!(answer.json()["status"], "IN_QUEUE");
    fixture.until_status_is(job, 404).await;
}

#[tokio::test]
async fn status_sync_is_held_until_the_job_is_terminal() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    for method in ["GET", "POST"] {
        let head = format!("{method} /v2/demo/status-sync/{job}?wait=1000");
        assert_eq!(fixture.ask(&head, "").await.json()["status"], "IN_PROGRESS");
    }
    for wait in ["999", "300001"] {
        let refusal = fixture.refusal(&format!("GET /v2/demo/status-sync/{job}?wait={wait}"), "").await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()));
    }
    let head = format!("GET /v2/demo/status-sync/{job}");
    let asked = fixture.ask(&head, "");
    let (answer, ()) = tokio::join!(asked, fixture.complete(job, "7"));
    assert_eq!(answer.json()["output"], 7);
    assert_eq!(fixture.ask(&head, "").await.json()["output"], 7);
}
