//! Workers that crash, hang, start or are external.

use super::*;

#[test]
fn crashes_are_told_with_their_number_and_kind() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    let exited = |code, signal, because: Option<&str>, was_ready| CrashKind::Exited {
        code,
        signal,
        because: because.map(String::from),
        was_ready,
    };
    let mut text = String::new();
    for kind in [
        exited(Some(1), None, None, false),
        exited(None, Some(9), None, false),
        exited(None, Some(9), Some("killed: out of memory, the limit is 2 GiB (memoryBytes)"), true),
        exited(Some(0), None, None, false),
        CrashKind::NotStarted(
            "worker x was not started: cannot start `nope`: No such file or directory".into(),
        ),
        CrashKind::NoEnvironment,
        CrashKind::NeverReady(600_000),
    ] {
        for count in [6, 1] {
            facts.fleet.crash = Some(CrashFacts { count, ..a_crash(kind.clone()) });
            text += told(&facts).lines().next().unwrap();
            text += "\n";
        }
    }
    expect![[r#"
        workers_crash! (2) Every worker crashes while it starts: 6 workers in a row ended with code 1 after 0.5 s, the last 40 s ago. The next try is in 22 s.
        workers_crash! (2) A worker crashed while it started: 1 worker ended with code 1 after 0.5 s, 40 s ago. The next try is in 22 s.
        workers_crash! (2) Every worker crashes while it starts: 6 workers in a row were ended by signal 9 after 0.5 s, the last 40 s ago. The next try is in 22 s.
        workers_crash! (2) A worker crashed while it started: 1 worker was ended by signal 9 after 0.5 s, 40 s ago. The next try is in 22 s.
        workers_crash! (2) Workers crash: 6 workers in a row were killed: out of memory, the limit is 2 GiB (memoryBytes) after 0.5 s, the last 40 s ago. The next try is in 22 s.
        workers_crash! (2) A worker crashed: 1 worker was killed: out of memory, the limit is 2 GiB (memoryBytes) after 0.5 s, 40 s ago. The next try is in 22 s.
        workers_crash! (2) Every worker crashes while it starts: 6 workers in a row ended with code 0 after 0.5 s, the last 40 s ago. Its program ended by itself: the handler must call `runpod.serverless.start(…)`. The next try is in 22 s.
        workers_crash! (2) A worker crashed while it started: 1 worker ended with code 0 after 0.5 s, 40 s ago. Its program ended by itself: the handler must call `runpod.serverless.start(…)`. The next try is in 22 s.
        start_failed! (1) A worker cannot be started: Cannot start `nope`: No such file or directory. The next try is in 22 s.
        start_failed! (1) A worker cannot be started: Cannot start `nope`: No such file or directory. The next try is in 22 s.
        start_failed! (2) A worker cannot be started: its Python environment cannot be made: The attempt ended after 0.5 s. The next try is in 22 s.
        start_failed! (2) A worker cannot be started: its Python environment cannot be made: The attempt ended after 0.5 s. The next try is in 22 s.
        start_failed! (2) A worker does not become ready: It asked for no job within 10 min (`startPatienceMs`) and was ended. The next try is in 22 s.
        start_failed! (2) A worker does not become ready: It asked for no job within 10 min (`startPatienceMs`) and was ended. The next try is in 22 s.
    "#]].assert_eq(&text);
    facts.fleet.crash =
        Some(CrashFacts { next_try_at: NOW - 1, ..a_crash(exited(Some(1), None, None, false)) });
    facts.fleet.workers = managed(1, false);
    check(
        &facts,
        &expect![[r#"
            workers_crash! (2) Every worker crashes while it starts: 6 workers in a row ended with code 1 after 0.5 s, the last 40 s ago. The next try has begun.
            worker_starting (0) A worker is starting: 1 worker has been starting for 12 s.
        "#]],
    );
    assert_eq!(explain(&facts).cause.log_tail, ["one", "two"]);
}

#[test]
fn after_a_crash_without_work_the_next_job_starts_a_worker() {
    let endpoint = an_endpoint();
    let none = WaitingQueue { job: None, position: None, queued: 0, queued_normal: 0, ..a_queue() };
    let mut facts = facts(&endpoint, none);
    facts.fleet.crash = Some(a_crash(CrashKind::NotStarted("cannot start `nope`".into())));
    check(
        &facts,
        &expect![[r#"
            not_waiting (0) No job waits: No job is queued, and none runs.
            start_failed! (0) A worker cannot be started: Cannot start `nope`. A worker starts with the next job.
        "#]],
    );
    let wants_one = Endpoint { workers_min: 1, ..an_endpoint() };
    facts.endpoint = &wants_one;
    check(
        &facts,
        &expect![[r#"
            not_waiting (0) No job waits: No job is queued, and none runs.
            start_failed! (1) A worker cannot be started: Cannot start `nope`. The next try is in 22 s.
        "#]],
    );
    let paused = Endpoint { workers_max: 0, ..an_endpoint() };
    facts.endpoint = &paused;
    check(
        &facts,
        &expect![[r#"
            not_waiting (0) No job waits: No job is queued, and none runs.
            paused! (1) The endpoint is paused: `workersMax` is 0.
            start_failed! (0) A worker cannot be started: Cannot start `nope`.
        "#]],
    );
}

#[test]
fn a_start_that_may_hang_says_when_its_worker_is_replaced() {
    let endpoint = Endpoint { start_patience_ms: 20_000, ..an_endpoint() };
    let mut facts = facts(&endpoint, a_queue());
    facts.fleet.workers = managed(1, false);
    facts.stage = Some(StartStage::Loading);
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is starting: 1 worker has been starting for 12 s: it loads. It is replaced if it asks for no job within 20 s (`startPatienceMs`).
        "#]],
    );
    facts.stage = Some(StartStage::Creating);
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is starting: 1 worker has been starting for 12 s: it creates its container.
        "#]],
    );
}

#[test]
fn a_crash_is_no_reason_while_another_worker_is_ready() {
    let endpoint = Endpoint { workers_max: 1, ..an_endpoint() };
    let mut facts =
        facts(&endpoint, WaitingQueue { workers: workers(WorkerPhase::Running, 1), running: 1, ..a_queue() });
    facts.fleet.workers = managed(1, true);
    facts.fleet.crash = Some(a_crash(CrashKind::NoEnvironment));
    check(
        &facts,
        &expect![[r#"
            all_busy (1) All workers are busy, and no more may start: The only worker is busy, and `workersMax` is 1. No job is ahead; none has finished in the last 5 min.
        "#]],
    );
}

#[test]
fn crashes_beside_a_ready_worker_are_told_while_more_workers_are_wanted() {
    let endpoint = Endpoint { workers_max: 3, ..an_endpoint() };
    let queue = WaitingQueue { workers: workers(WorkerPhase::Running, 1), running: 1, ..a_queue() };
    let mut facts =
        facts(&endpoint, WaitingQueue { position: Some(9), queued: 9, queued_normal: 9, ..queue });
    facts.fleet.workers = managed(1, true);
    facts.fleet.crash = Some(a_crash(CrashKind::NeverReady(600_000)));
    check(
        &facts,
        &expect![[r#"
        scaler_waits (0) The scaler adds a worker later: A worker is added once a job has waited 4 s (`scalerValue` is 4 s); the oldest one has waited 1.2 s.
        in_line (0) Other jobs are before it: 8 jobs are ahead; none has finished in the last 5 min.
        start_failed (2) Another worker cannot start: It asked for no job within 10 min (`startPatienceMs`) and was ended. The next try is in 22 s.
    "#]],
    );
    let (severity, cause) =
        problem(&explain(&facts)).map(|(severity, cause)| (severity, cause.code)).unwrap();
    assert_eq!((severity, cause), (Severity::Warn, CauseCode::StartFailed), "jobs run meanwhile");
    facts.fleet.crash = Some(CrashFacts { count: 1, ..a_crash(CrashKind::NoEnvironment) });
    assert!(problem(&explain(&facts)).is_none(), "one crash alone shows nothing about the next start");
}

#[test]
fn a_worker_that_gets_no_room_is_not_said_to_be_tried() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    facts.fleet.crash = Some(CrashFacts { next_try_at: NOW, ..a_crash(CrashKind::NeverReady(600_000)) });
    facts.no_room = Some("the server runs 2 workers, and `workers_max_total` is 2".into());
    check(
        &facts,
        &expect![[r#"
        machine_full (0) There is no room for a worker: The server runs 2 workers, and `workers_max_total` is 2.
        start_failed! (1) A worker does not become ready: It asked for no job within 10 min (`startPatienceMs`) and was ended.
    "#]],
    );
}

#[test]
fn external_workers_are_missing_busy_or_silent() {
    let endpoint = Endpoint { provider: Provider::External, ..an_endpoint() };
    check(
        &facts(&endpoint, a_queue()),
        &expect![[r#"
            no_external_worker! (1) No worker is there: Workers of this endpoint are external: you start them, and none has asked for a job since the server started 60 min ago.
        "#]],
    );
    let young = Endpoint { created_at: NOW - 60_000, ..endpoint.clone() };
    check(
        &facts(&young, a_queue()),
        &expect![[r#"
            no_external_worker! (1) No worker is there: Workers of this endpoint are external: you start them, and none has asked for a job since it was made 60 s ago.
        "#]],
    );
    let gone = WaitingQueue {
        workers: workers(WorkerPhase::Draining, 1),
        last_take_at: Some(NOW - 90_000),
        ..a_queue()
    };
    check(
        &facts(&endpoint, gone),
        &expect![[r#"
            no_external_worker! (1) No worker is there: Workers of this endpoint are external: you start them, and none has asked for a job for 90 s.
        "#]],
    );
    let busy = WaitingQueue { workers: workers(WorkerPhase::Running, 2), ..a_queue() };
    check(
        &facts(&endpoint, busy),
        &expect![[r#"
            all_busy (0) All workers are busy: All 2 workers are busy. No job is ahead; none has finished in the last 5 min.
        "#]],
    );
    let silent = vec![WorkerContact { phase: WorkerPhase::Idle, silent_ms: Some(40_000) }; 2];
    check(
        &facts(&endpoint, WaitingQueue { workers: silent, ..a_queue() }),
        &expect![[r#"
            worker_silent (0) Workers do not ask for jobs: 2 workers are ready but have not asked for a job for 40 s: their handlers may be blocking.
        "#]],
    );
}

#[test]
fn a_start_is_told_with_its_stage_and_its_usual_time() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is about to start: The job came a moment ago.
        "#]],
    );
    facts.fleet.workers = managed(1, false);
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is starting: 1 worker has been starting for 12 s.
        "#]],
    );
    facts.stage = Some(StartStage::Packages);
    facts.fleet.starts = StartTimes { count: 14, p50_ms: 31_000, p95_ms: 50_000 };
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is starting: 1 worker has been starting for 12 s: it installs packages. A start usually takes 31 s (p50 of 14).
            starts in 19000 to 38000 ms
        "#]],
    );
    facts.fleet.workers = managed(2, false);
    facts.stage = Some(StartStage::Environment);
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker is starting: 2 workers have been starting for 12 s: the first makes its Python environment. A start usually takes 31 s (p50 of 14).
            starts in 19000 to 38000 ms
        "#]],
    );
    let only = Endpoint { workers_max: 1, ..an_endpoint() };
    facts.endpoint = &only;
    facts.fleet.workers = vec![ManagedWorker { is_leaving: true, ..managed(1, true).remove(0) }];
    check(
        &facts,
        &expect![[r#"
            worker_starting (0) A worker has to end first: `workersMax` is 1: 1 worker ends, and then another one starts.
            starts in 31000 to 50000 ms
        "#]],
    );
}
