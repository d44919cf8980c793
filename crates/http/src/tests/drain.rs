//! `/v1/server` and its drain.

use longshore_engine::TakeRequest;
use serde_json::Value;
use tokio::time::timeout;

use super::fixture::{Fixture, worker};
use super::wire::DEADLINE;

async fn server(fixture: &Fixture) -> Value {
    let answer = fixture.ask("GET /v1/server", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The number of jobs that a short take gets.
async fn taken(fixture: &Fixture) -> usize {
    let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 50, address: None };
    fixture.endpoint.workers().take(worker(), request).await.unwrap().len()
}

#[tokio::test]
async fn a_draining_server_accepts_jobs_and_hands_out_none() {
    let fixture = Fixture::start().await;
    let running = fixture.running().await;
    let before = server(&fixture).await;
    assert_eq!((&before["state"], &before["reason"]), (&Value::from("READY"), &Value::Null));
    assert_eq!((&before["busyWorkers"], &before["managedWorkers"]), (&Value::from(1), &Value::from(0)));
    assert_eq!(before["version"], env!("CARGO_PKG_VERSION"));

    let drained = fixture.ask("POST /v1/server/drain", "").await;
    assert_eq!((drained.status, &drained.json()["state"]), (200, &Value::from("DRAINING")), "{drained:?}");
    let queued = fixture.submit().await;
    assert_eq!(taken(&fixture).await, 0);
    fixture.complete(running, "1").await;
    assert_eq!(
        (fixture.state(running).await, fixture.state(queued).await),
        ("COMPLETED".into(), "IN_QUEUE".into())
    );
    // A change of the endpoint does not end the pause, and a second drain is the first.
    fixture.ask("PATCH /v1/endpoints/demo", r#"{"maxRetries":1}"#).await;
    let again = fixture.ask("POST /v1/server/drain", "").await.json();
    assert_eq!(again["drainingSince"], drained.json()["drainingSince"]);
    assert_eq!((&again["busyWorkers"], taken(&fixture).await), (&Value::from(0), 0));
    let ready = fixture.server.ask("GET /readyz", b"").await;
    assert!(ready.status == 503 && ready.text().contains("draining since"), "{ready:?}");
    let verbose = fixture.server.ask("GET /readyz?verbose", b"").await;
    assert!(verbose.status == 503 && verbose.text().contains("failed drain: "), "{verbose:?}");

    let created = r#"{"name":"e","slug":"later","templateId":"T","provider":"external"}"#;
    let template =
        fixture.ask("GET /v1/endpoints/demo", "").await.json()["templateId"].as_str().unwrap().to_owned();
    fixture.ask("POST /v1/endpoints", &created.replace('T', &template)).await;
    let later = fixture.engine.endpoint("later").unwrap();
    fixture.ask("POST /v2/later/run", r#"{"input":{}}"#).await;
    let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 50, address: None };
    assert!(
        later.workers().take(worker(), request).await.unwrap().is_empty(),
        "an endpoint of the drain's time"
    );

    let (ended, taken) =
        tokio::join!(fixture.ask("DELETE /v1/server/drain", ""), timeout(DEADLINE, fixture.take()));
    assert_eq!((ended.status, taken.unwrap().row.id), (204, queued));
    assert_eq!(server(&fixture).await["state"], "READY");
    assert_eq!(fixture.server.ask("GET /readyz", b"").await.status, 200);
}
