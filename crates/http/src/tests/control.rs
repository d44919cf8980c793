//! `cancel`, `retry`, `purge-queue`.

use super::fixture::Fixture;

#[tokio::test]
async fn a_cancel_ends_a_queued_and_a_running_job() {
    let fixture = Fixture::start().await;
    let running = fixture.running().await;
    let queued = fixture.submit().await;
    for (job, body) in [(running, ""), (queued, "{}")] {
        let head = format!("POST /v2/demo/cancel/{job}\ncontent-type: application/json");
        let answer = fixture.ask(&head, body).await;
        assert_eq!(
            (answer.status, answer.text()),
            (200, format!(r#"{{"id":"{job}","status":"CANCELLED"}}"#).as_str())
        );
        assert_eq!(fixture.state(job).await, "CANCELLED");
    }
    let record = fixture.ask(&format!("GET /v2/demo/status/{queued}"), "").await;
    assert_eq!(record.text(), format!(r#"{{"id":"{queued}","status":"CANCELLED"}}"#));
}

#[tokio::test]
async fn a_terminal_state_is_final() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.complete(job, "1").await;
    let answer = fixture.ask(&format!("POST /sdk/v2/demo/cancel/{job}"), "").await;
    assert_eq!(
        (answer.status, answer.text()),
        (200, format!(r#"{{"id":"{job}","status":"COMPLETED"}}"#).as_str())
    );
    fixture.fail(job, "late").await;
    assert_eq!(fixture.state(job).await, "COMPLETED");
}

#[tokio::test]
async fn only_a_failed_or_timed_out_job_can_be_retried() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let head = format!("POST /v2/demo/retry/{job}");
    let refused = (400, "job_not_retryable".to_owned());
    assert_eq!(fixture.refusal(&head, "").await, refused);
    fixture.fail(job, "e").await;
    let answer = fixture.ask(&head, "").await;
    assert_eq!(
        (answer.status, answer.text()),
        (200, format!(r#"{{"id":"{job}","status":"IN_QUEUE"}}"#).as_str())
    );
    assert_eq!(fixture.refusal(&head, "").await, refused);
    let taken = fixture.take().await;
    assert_eq!((taken.row.id, taken.members.as_ref()), (job, br#""input":{}"#.as_slice()));
    let record = fixture.ask(&format!("GET /v2/demo/status/{job}"), "").await.json();
    assert_eq!((record.get("error"), record.get("output")), (None, None));
    fixture.complete(job, "1").await;
    assert_eq!(fixture.refusal(&head, "").await, refused);
    let cancelled = fixture.submit().await;
    fixture.ask(&format!("POST /v2/demo/cancel/{cancelled}"), "").await;
    assert_eq!(fixture.refusal(&format!("POST /v2/demo/retry/{cancelled}"), "").await, refused);
}

#[tokio::test]
async fn a_purge_removes_queued_jobs_alone() {
    let fixture = Fixture::start().await;
    let running = fixture.running().await;
    let queued = [fixture.submit().await, fixture.submit().await];
    let answer = fixture.ask("POST /v2/demo/purge-queue", "").await;
    assert_eq!((answer.status, answer.text()), (200, r#"{"removed":2,"status":"completed"}"#));
    assert_eq!(fixture.state(running).await, "IN_PROGRESS");
    for job in queued {
        assert_eq!(fixture.state(job).await, "CANCELLED");
    }
    let answer = fixture.ask("POST /sdk/v2/demo/purge-queue", "{}").await;
    assert_eq!(answer.text(), r#"{"removed":0,"status":"completed"}"#);
}
