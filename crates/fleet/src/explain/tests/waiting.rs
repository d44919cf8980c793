//! Jobs that wait for busy workers, the scaler or a version, and remarks and estimates.

use super::*;

#[test]
fn busy_workers_are_the_cause_if_no_more_may_start() {
    let endpoint = an_endpoint();
    let queue = WaitingQueue {
        position: Some(42),
        queued: 50,
        queued_normal: 50,
        workers: workers(WorkerPhase::Running, 3),
        ..a_queue()
    };
    let mut facts = facts(&endpoint, queue);
    facts.fleet.workers = managed(3, true);
    facts.finishes = FinishRate { count: 630, per_hour: 7_560, slow_per_hour: 7_200, fast_per_hour: 8_000 };
    check(
        &facts,
        &expect![[r#"
            all_busy (1) All workers are busy, and no more may start: All 3 workers are busy, and `workersMax` is 3. 41 jobs are ahead; 2.1 finish a second.
            starts in 16567 to 23592 ms
        "#]],
    );
    facts.finishes.count = 4;
    assert_eq!(explain(&facts).estimate, None, "four jobs are too few");
}

#[test]
fn the_scaler_waits_for_a_delay_or_a_number_of_jobs() {
    let mut endpoint = an_endpoint();
    let queue = WaitingQueue { workers: workers(WorkerPhase::Running, 1), running: 1, ..a_queue() };
    let mut told_by = |scaler_type| {
        endpoint.scaler_type = scaler_type;
        let mut facts = facts(&endpoint, queue.clone());
        facts.fleet.workers = managed(1, true);
        told(&facts)
    };
    expect![[r#"
        scaler_waits (0) The scaler adds a worker later: A worker is added once a job has waited 4 s (`scalerValue` is 4 s); the oldest one has waited 1.2 s.
    "#]].assert_eq(&told_by(ScalerType::QueueDelay));
    expect![[r#"
        scaler_waits (0) There are enough workers for the scaler: It wants one worker for 4 jobs (`scalerValue`): 2 jobs are queued or running, for 1 worker.
    "#]].assert_eq(&told_by(ScalerType::RequestCount));
}

#[test]
fn jobs_of_low_priority_start_no_worker() {
    let endpoint = an_endpoint();
    let job = Some(WaitingJob { low_priority: true, ..a_job() });
    let queue = WaitingQueue { job, queued_normal: 0, oldest_normal_since: None, ..a_queue() };
    check(
        &facts(&endpoint, queue),
        &expect![[r#"
            low_priority (0) Only low-priority jobs wait, which start no worker: It runs when a worker is there for other jobs.
        "#]],
    );
}

#[test]
fn a_change_of_version_and_a_retry_are_told() {
    let endpoint = Endpoint { version: 4, workers_max: 3, ..an_endpoint() };
    let mut known =
        facts(&endpoint, WaitingQueue { workers: workers(WorkerPhase::Draining, 2), ..a_queue() });
    known.fleet.workers =
        managed(3, true).into_iter().map(|it| ManagedWorker { version: 3, is_leaving: true, ..it }).collect();
    check(
        &known,
        &expect![[r#"
            version_change (0) Workers of an older version finish first: Workers of version 3 finish their jobs; those of version 4 start as they go (0 of 3).
        "#]],
    );
    let reason = "worker w was killed by signal 9 after 3 s; its last log lines:\nbye";
    let requeue = Some(Requeue { at: NOW - 3_000, reason: reason.into() });
    let job = |retries, requeue| Some(WaitingJob { retries, requeue, ..a_job() });
    let endpoint = an_endpoint();
    let mut text = String::new();
    for job in [job(1, requeue.clone()), job(1, None), job(0, requeue)] {
        let asking = workers(WorkerPhase::Idle, 1);
        text += &told(&facts(&endpoint, WaitingQueue { job, workers: asking, ..a_queue() }));
    }
    expect![[r#"
        retrying (0) It is tried again: Its last try failed 3 s ago: worker w was killed by signal 9 after 3 s. This is try 2 of 3, from the front of the queue.
        starts in 0 to 0 ms
        retrying (0) It is tried again: Its last try failed 1.2 s ago: the reason is no longer known. This is try 2 of 3, from the front of the queue.
        starts in 0 to 0 ms
        retrying (0) It is delivered again: It was put back 3 s ago: worker w was killed by signal 9 after 3 s. It is at the front of the queue.
        starts in 0 to 0 ms
    "#]].assert_eq(&text);
}

#[test]
fn a_job_whose_input_could_not_be_read_says_when_it_is_tried_again() {
    let endpoint = an_endpoint();
    let reason = "its input could not be read from the disk, or its worker had disconnected";
    let requeue = Some(Requeue { at: NOW - 3_000, reason: reason.into() });
    let job = WaitingJob { requeue, deferred_until: Some(NOW + 5_000), ..a_job() };
    let asking = || workers(WorkerPhase::Idle, 1);
    let mut text = String::new();
    for deferred_until in [job.deferred_until, Some(NOW)] {
        let job = Some(WaitingJob { deferred_until, ..job.clone() });
        text += &told(&facts(&endpoint, WaitingQueue { job, workers: asking(), ..a_queue() }));
    }
    expect![[r#"
        retrying (0) It is delivered again later: It was put back 3 s ago: its input could not be read from the disk, or its worker had disconnected. The next try is in 5 s.
        starts in 5000 to 5000 ms
        retrying (0) It is delivered again: It was put back 3 s ago: its input could not be read from the disk, or its worker had disconnected. It is at the front of the queue.
        starts in 0 to 0 ms
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_end_of_the_ttl_and_a_full_queue_are_remarks() {
    let endpoint = Endpoint { workers_max: 0, ..an_endpoint() };
    let job = Some(WaitingJob { delete_at: NOW + 180_000, ..a_job() });
    check(
        &facts(&endpoint, WaitingQueue { job, queued: 100, ..a_queue() }),
        &expect![[r#"
            paused! (1) The endpoint is paused: `workersMax` is 0.
            ttl_near (0) Its ttl ends soon: It is deleted in 3 min, when its ttl ends.
            queue_full (0) The queue is full: 100 jobs are queued (`maxQueueLength`); further ones are refused.
        "#]],
    );
}

#[test]
fn a_draining_server_hands_out_nothing() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    facts.draining_since = Some(NOW - 90_000);
    check(
        &facts,
        &expect![[r#"
        draining! (0) The server drains: For 90 s, it has handed out no job. Jobs are kept until `longshore drain --end`, or until it is restarted.
    "#]],
    );
}

#[test]
fn a_version_whose_jobs_run_half_as_long_again_is_named() {
    let endpoint = Endpoint { version: 4, workers_max: 0, ..an_endpoint() };
    let times = |version, p50_ms| RunTimes { version, jobs: 64, p50_ms };
    let mut facts = facts(&endpoint, a_queue());
    facts.runs = Some(VersionRunTimes { since: NOW, present: times(4, 3_100), before: times(3, 1_200) });
    check(
        &facts,
        &expect![[r#"
            paused! (1) The endpoint is paused: `workersMax` is 0.
            slow_since_version (0) Jobs run longer since the last change: Half of the last 64 jobs of version 4 ran 3.1 s or longer; of version 3, half ran 1.2 s or longer.
        "#]],
    );
    let codes = |present, before| {
        let runs = VersionRunTimes { since: NOW, present: times(4, present), before: times(3, before) };
        let also = explain(&WaitFacts { runs: Some(runs), ..facts.clone() }).also;
        also.iter().any(|cause| cause.code == CauseCode::SlowSinceVersion)
    };
    assert!(codes(1_500, 1_000));
    assert!(!codes(1_499, 1_000));
    // Of a few milliseconds, the double is noise.
    assert!(!codes(100, 1) && codes(101, 1));
    // The settings have changed again, and no job has ended since.
    let changed = Endpoint { version: 5, ..endpoint.clone() };
    assert!(explain(&WaitFacts { endpoint: &changed, ..facts.clone() }).also.is_empty());
}

#[test]
fn a_start_comes_before_the_jobs_ahead_in_the_estimate() {
    let endpoint = Endpoint { workers_max: 1, ..an_endpoint() };
    let mut facts = facts(&endpoint, WaitingQueue { position: Some(11), queued: 11, ..a_queue() });
    facts.fleet.workers = managed(1, false);
    facts.fleet.starts = StartTimes { count: 5, p50_ms: 20_000, p95_ms: 30_000 };
    facts.finishes = FinishRate { count: 50, per_hour: 3_600, slow_per_hour: 1_800, fast_per_hour: 7_200 };
    // The worker has been starting for 12 s, and 10 jobs, 2.5 fewer or more, end at 1 s or 2 s each.
    let estimate = explain(&facts).estimate;
    assert_eq!(estimate, Some(WaitEstimate { min_ms: 8_000 + 3_735, max_ms: 18_000 + 25_058 }));
}

#[test]
fn nothing_is_estimated_of_a_start_that_outlasts_the_others_or_cannot_begin() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    facts.fleet.starts = StartTimes { count: 5, p50_ms: 5_000, p95_ms: 12_000 };
    assert_eq!(explain(&facts).estimate, Some(WaitEstimate { min_ms: 5_000, max_ms: 12_000 }));
    facts.fleet.workers = managed(2, false);
    assert_eq!(explain(&facts).estimate, Some(WaitEstimate { min_ms: 0, max_ms: 0 }));
    facts.fleet.workers[0].started_at = NOW - 2_000;
    facts.fleet.workers[1].started_at = NOW - 60_000;
    assert_eq!(explain(&facts).estimate, Some(WaitEstimate { min_ms: 3_000, max_ms: 10_000 }));
    facts.fleet.workers[0].started_at = Millis(0);
    assert_eq!(explain(&facts).estimate, None);
    facts.fleet.workers.clear();
    facts.no_room = Some("the memory is promised".into());
    assert_eq!(explain(&facts).estimate, None);
    facts.no_room = None;
    facts.queue.as_mut().unwrap().queued_normal = 0;
    assert_eq!(explain(&facts).estimate, None);
}

#[test]
fn a_full_machine_is_told_with_what_is_missing() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    facts.fleet.throttled_since = Some(NOW - 4_000);
    facts.no_room = Some("the server runs 2 workers, and `workers_max_total` is 2".into());
    check(
        &facts,
        &expect![[r#"
            machine_full (0) There is no room for a worker: The server runs 2 workers, and `workers_max_total` is 2.
        "#]],
    );
}
