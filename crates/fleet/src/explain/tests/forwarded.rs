//! Why requests of a load-balancing endpoint wait.

use super::*;

/// A load-balancing endpoint, without a limit of concurrent requests.
fn a_balancing_endpoint() -> Endpoint {
    Endpoint {
        endpoint_type: longshore_model::EndpointType::Lb,
        lb: Some(longshore_model::LbSettings {
            max_concurrency: 2,
            ..longshore_model::LbSettings::default()
        }),
        ..an_endpoint()
    }
}

/// Three requests that wait.
fn waiting_requests() -> WaitingQueue {
    WaitingQueue { job: None, position: None, queued: 3, queued_normal: 3, ..a_queue() }
}

fn server(health: crate::WorkerHealth, last_check: &str) -> ServerHealth {
    ServerHealth { health, last_check: last_check.to_string(), rejecting_since: None }
}

#[test]
fn requests_wait_for_a_worker_that_becomes_healthy() {
    let endpoint = a_balancing_endpoint();
    let mut facts = facts(&endpoint, waiting_requests());
    let mut text = told(&facts);
    facts.fleet.workers = managed(1, false);
    facts.stage = Some(StartStage::Loading);
    facts.servers = vec![server(crate::WorkerHealth::Initializing, "GET /ping: 204 No Content")];
    text += &told(&facts);
    let cause = explain(&facts).cause;
    assert!(cause.details.contains(&("lastCheck", CauseDetail::Text("GET /ping: 204 No Content".into()))));
    facts.fleet.workers = managed(1, true);
    facts.servers = vec![server(crate::WorkerHealth::Unhealthy, "GET /ping: 500 Internal Server Error")];
    text += &told(&facts);
    facts.fleet.workers.clear();
    facts.servers.clear();
    facts.fleet.crash = Some(a_crash(CrashKind::NeverReady(600_000)));
    text += &told(&facts);
    facts.fleet.crash =
        Some(a_crash(CrashKind::Exited { code: Some(0), signal: None, because: None, was_ready: false }));
    text += &told(&facts);
    expect![[r#"
        worker_starting (0) A worker is about to start: The request came a moment ago.
        in_line (0) Requests wait in line: 3 requests are queued.
        worker_starting (0) A worker is starting: 1 worker has been starting for 12 s: it loads. The last check said `GET /ping: 204 No Content`.
        in_line (0) Requests wait in line: 3 requests are queued.
        workers_unhealthy! (0) Workers are not healthy: 1 worker runs and is not healthy: the last check said `GET /ping: 500 Internal Server Error`. A worker that is not healthy for 10 min (`startPatienceMs`) is replaced.
        worker_starting (0) A worker is about to start: The request came a moment ago.
        in_line (0) Requests wait in line: 3 requests are queued.
        start_failed! (2) A worker does not become ready: It was not healthy within 10 min (`startPatienceMs`) and was ended. The next try is in 22 s.
        in_line (0) Requests wait in line: 3 requests are queued.
        workers_crash! (2) Every worker crashes while it starts: 6 workers in a row ended with code 0 after 0.5 s, the last 40 s ago. Its program ended by itself: it must serve HTTP on the port in `PORT`. The next try is in 22 s.
        in_line (0) Requests wait in line: 3 requests are queued.
    "#]].assert_eq(&text);
}

#[test]
fn requests_wait_for_room_or_for_nothing() {
    let endpoint = Endpoint { workers_max: 1, ..a_balancing_endpoint() };
    let busy = WaitingQueue { workers: workers(WorkerPhase::Running, 1), running: 2, ..waiting_requests() };
    let mut busy = facts(&endpoint, busy);
    busy.fleet.workers = managed(1, true);
    busy.servers = vec![server(crate::WorkerHealth::Healthy, "GET /ping: 200 OK")];
    let mut text = told(&busy);
    busy.queue.as_mut().unwrap().jobs_max = 3;
    text += &told(&busy);
    let room = Endpoint { workers_max: 2, scaler_value: 60, ..endpoint.clone() };
    text += &told(&WaitFacts { endpoint: &room, ..busy.clone() });
    let idle = WaitingQueue { queued: 0, queued_normal: 0, running: 2, ..waiting_requests() };
    busy.draining_since = Some(NOW - 60_000);
    text += &told(&WaitFacts { queue: Some(idle), ..busy.clone() });
    expect![[r#"
        all_busy (1) All workers are busy, and no more may start: The only worker is busy, and `workersMax` is 1. A worker gets 2 requests (`lb.maxConcurrency`); 3 requests wait.
        all_busy (1) All workers are busy, and no more may start: The only worker is busy, and `workersMax` is 1. A worker gets 2 requests (`lb.maxConcurrency`); 3 requests wait.
        queue_full (0) The queue is full: 3 requests are queued (`lb.queueMax`); further ones are refused.
        scaler_waits (0) The scaler adds a worker later: A worker is added once a request has waited 60 s (`scalerValue` is 60 s); the oldest one has waited 1.2 s.
        in_line (0) Requests wait in line: 3 requests are queued.
        queue_full (0) The queue is full: 3 requests are queued (`lb.queueMax`); further ones are refused.
        not_waiting (0) No request waits: No request is queued. 2 requests are running.
        draining! (0) The server drains: For 60 s, it has refused new requests with 503, until `longshore drain --end`, or until it is restarted.
    "#]].assert_eq(&text);
}

#[test]
fn a_worker_that_may_never_be_healthy_is_told_without_a_request_that_waits() {
    let endpoint = a_balancing_endpoint();
    let idle = WaitingQueue { queued: 0, queued_normal: 0, running: 0, ..waiting_requests() };
    let mut facts = facts(&endpoint, idle);
    facts.fleet.workers = managed(1, false);
    facts.servers = vec![server(crate::WorkerHealth::Starting, "GET /ping: 404 Not Found")];
    // A server that starts may answer so for a moment.
    facts.servers[0].rejecting_since = Some(NOW - 9_999);
    let mut text = told(&facts);
    facts.servers[0].rejecting_since = Some(NOW - 10_000);
    text += &told(&facts);
    assert_eq!(problem(&explain(&facts)).map(|(severity, _)| severity), Some(Severity::Bad));
    facts.servers[0] = server(crate::WorkerHealth::Starting, "GET /ping: Connection refused");
    facts.fleet.workers[0].started_at = NOW - 299_999;
    assert_eq!(problem(&explain(&facts)), None);
    facts.fleet.workers[0].started_at = NOW - 300_000;
    text += &told(&facts);
    assert_eq!(problem(&explain(&facts)).map(|(severity, _)| severity), Some(Severity::Warn));
    facts.fleet.workers[0].started_at = NOW - 70_000;
    facts.fleet.starts = StartTimes { count: 3, p50_ms: 9_000, p95_ms: 24_000 };
    assert_eq!(problem(&explain(&facts)), None);
    facts.fleet.starts.p95_ms = 23_000;
    text += &told(&facts);
    expect![[r#"
        not_waiting (0) No request waits: No request is queued, and none runs.
        not_waiting (0) No request waits: No request is queued, and none runs.
        workers_unhealthy! (0) Workers are not healthy: 1 worker runs and is not healthy: the last check said `GET /ping: 404 Not Found`. A worker that is not healthy for 10 min (`startPatienceMs`) is replaced.
        not_waiting (0) No request waits: No request is queued, and none runs.
        worker_starting (0) A worker is starting: 1 worker has been starting for 5 min. It is replaced if it is not healthy within 10 min (`startPatienceMs`). The last check said `GET /ping: Connection refused`.
        not_waiting (0) No request waits: No request is queued, and none runs.
        worker_starting (0) A worker is starting: 1 worker has been starting for 70 s. A start usually takes 9 s (p50 of 3). It is replaced if it is not healthy within 10 min (`startPatienceMs`). The last check said `GET /ping: Connection refused`.
    "#]].assert_eq(&text);
}
