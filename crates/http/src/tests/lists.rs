//! `health` and `requests`, and the probes of the server.

use super::fixture::Fixture;

#[tokio::test]
async fn health_counts_jobs_and_workers() {
    let fixture = Fixture::start().await;
    let empty = fixture.ask("GET /v2/demo/health", "").await;
    assert_eq!(
        empty.text(),
        r#"{"jobs":{"completed":0,"failed":0,"inProgress":0,"inQueue":0,"retried":0},"workers":{"idle":0,"initializing":0,"ready":0,"running":0,"throttled":0,"unhealthy":0}}"#
    );
    let completed = fixture.running().await;
    fixture.complete(completed, "1").await;
    let failed = fixture.running().await;
    fixture.fail(failed, "e").await;
    fixture.running().await;
    fixture.submit().await;
    let health = fixture.ask("GET /sdk/v2/demo/health\ncontent-type: application/json", "").await.json();
    let jobs = serde_json::json!({"completed": 1, "failed": 1, "inProgress": 1, "inQueue": 1, "retried": 0});
    assert_eq!((&health["jobs"], &health["workers"]["running"]), (&jobs, &1.into()));
}

#[tokio::test]
async fn requests_lists_jobs_newest_first_in_pages() {
    let fixture = Fixture::start().await;
    let completed = fixture.running().await;
    fixture.complete(completed, "[1.0]").await;
    fixture.next_millisecond().await;
    let running = fixture.running().await;
    fixture.next_millisecond().await;
    let queued = fixture.submit().await;
    let answer = fixture.ask("GET /v2/demo/requests", "").await;
    let list = answer.json();
    let ids: Vec<_> = list["requests"].as_array().unwrap().iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(ids, [queued, running, completed].map(|job| job.to_string()));
    assert!(list["cursor"].is_null() && answer.text().contains(r#""output":[1.0]"#));
    let times = |at: usize| {
        let entry = &list["requests"][at];
        ["createdAt", "startedAt", "completedAt"].map(|name| entry[name].as_str().map(str::len))
    };
    let iso = Some("2026-11-21T02:51:48.007Z".len());
    assert_eq!(times(0), [iso, None, None]);
    assert_eq!(times(1), [iso, iso, None]);
    assert_eq!(times(2), [iso, iso, iso]);

    let page = fixture.ask("GET /v2/demo/requests?limit=2", "").await.json();
    let cursor = page["cursor"].as_str().unwrap();
    let rest = fixture.ask(&format!("GET /v2/demo/requests?limit=2&cursor={cursor}"), "").await.json();
    assert_eq!(page["requests"].as_array().unwrap().len(), 2);
    assert_eq!(rest["requests"][0]["id"], completed.to_string());

    let waiting = fixture.ask("GET /v2/demo/requests?status=IN_QUEUE&cursor=", "").await.json();
    assert_eq!(waiting["requests"].as_array().unwrap().len(), 1);
    assert_eq!(waiting["requests"][0]["id"], queued.to_string());
}

#[tokio::test]
async fn requests_checks_its_parameters() {
    let fixture = Fixture::start().await;
    for query in ["limit=0", "limit=1001", "limit=x", "status=in_queue", "cursor=x"] {
        let refusal = fixture.refusal(&format!("GET /v2/demo/requests?{query}"), "").await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn requests_shows_no_secrets() {
    let fixture = Fixture::start().await;
    let body = r#"{"input":{},"s3Config":{"accessSecret":"hunter2"},"webhook":"http://127.0.0.1:1/hunter3"}"#;
    assert_eq!(fixture.ask("POST /v2/demo/run", body).await.status, 200);
    let text = fixture.ask("GET /v2/demo/requests", "").await.text().to_owned();
    assert!(!text.contains("hunter"), "{text}");
}

#[tokio::test]
async fn probes_need_no_key() {
    let fixture = Fixture::start().await;
    let alive = fixture.server.ask("GET /healthz", b"").await;
    assert_eq!((alive.status, alive.text()), (200, r#"{"status":"ok"}"#));
    assert!(fixture.engine.is_ready());
    assert_eq!(fixture.server.ask("GET /readyz", b"").await.status, 200);
}
