//! Each cause from the facts that bring it about, with its sentences.

use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use expect_test::{Expect, expect};
use longshore_model::{
    ComputeType, Endpoint, EndpointId, EndpointNo, JobState, Millis, Provider, ScalerType, StartStage,
    TemplateId, WorkerPhase,
};

use super::*;

/// The time of every question.
const NOW: Millis = Millis(1_700_000_000_000);

fn an_endpoint() -> Endpoint {
    Endpoint {
        id: EndpointId::mint(1),
        no: EndpointNo(1),
        name: "hello".into(),
        slug: None,
        models: vec![],
        template_id: TemplateId::mint(2),
        workers_min: 0,
        workers_max: 3,
        paused_from: None,
        idle_timeout_s: 5,
        idle_timeout_max_s: 3_600,
        start_patience_ms: 600_000,
        scaler_type: ScalerType::QueueDelay,
        scaler_value: 4,
        execution_timeout_ms: 600_000,
        max_retries: 2,
        retry_on: vec![],
        result_retention_ms: 1,
        sync_result_retention_ms: 1,
        max_queue_length: None,
        stop_grace_ms: None,
        stream_shape: None,
        provider: Provider::Process,
        max_concurrency: 1,
        webhook: None,
        webhook_events: vec![],
        durability: longshore_model::Durability::Synced,
        flashboot: true,
        compute_type: ComputeType::Cpu,
        gpu_count: 1,
        gpu_type_ids: vec![],
        allowed_cuda_versions: vec![],
        min_cuda_version: None,
        cpu_flavor_ids: vec![],
        data_center_ids: vec![],
        network_volume_id: None,
        network_volume_ids: vec![],
        vcpu_count: 2,
        memory_bytes: None,
        vcpus: None,
        version: 1,
        created_at: Millis(0),
        user_id: String::new(),
        deployed_env: Vec::new(),
        deleting: false,
    }
}

/// The only job of a queue, which came 1.2 s ago.
fn a_job() -> WaitingJob {
    WaitingJob {
        state: JobState::InQueue,
        low_priority: false,
        enqueued_at: NOW - 1_200,
        started_at: Millis(0),
        finished_at: Millis(0),
        delete_at: NOW + 86_400_000,
        retries: 0,
        requeue: None,
    }
}

fn a_queue() -> WaitingQueue {
    WaitingQueue {
        job: Some(a_job()),
        position: Some(1),
        queued: 1,
        queued_normal: 1,
        first_normal_since: Some(NOW - 1_200),
        jobs_max: 100,
        ..WaitingQueue::default()
    }
}

fn facts(endpoint: &Endpoint, queue: WaitingQueue) -> WaitFacts<'_> {
    WaitFacts {
        now: NOW,
        server_started_at: NOW - 3_600_000,
        endpoint,
        pause: None,
        store_fault: None,
        draining_since: None,
        queue: Some(queue),
        fleet: FleetFacts::default(),
        provider_fault: None,
        gpus: None,
        stage: None,
        finishes: FinishRate::default(),
        runs: None,
    }
}

fn workers(phase: WorkerPhase, count: usize) -> Vec<WorkerContact> {
    vec![WorkerContact { phase, silent_ms: None }; count]
}

fn managed(count: usize, is_ready: bool) -> Vec<ManagedWorker> {
    let started_at = NOW - 12_000;
    let is_busy = is_ready;
    vec![
        ManagedWorker { version: 1, started_at, is_ready, is_leaving: false, is_busy, idle_end_at: None };
        count
    ]
}

fn a_crash(kind: CrashKind) -> CrashFacts {
    CrashFacts {
        kind,
        worker: "dxlaisrq".parse().ok(),
        lived_ms: 495,
        count: 6,
        first_at: NOW - 99_000,
        last_at: NOW - 40_000,
        next_try_at: NOW + 22_000,
        log_tail: "one\ntwo".to_string(),
    }
}

/// The causes, one per line: the code, `!` if it is blocking, the title and the text.
fn told(facts: &WaitFacts<'_>) -> String {
    let Explanation { cause, also, estimate, .. } = explain(facts);
    let mut text = String::new();
    for cause in [&cause].into_iter().chain(&also) {
        let mark = if cause.code.is_blocking() { "!" } else { "" };
        let (code, actions) = (cause.code.as_str(), cause.actions.len());
        writeln!(text, "{code}{mark} ({actions}) {}: {}", cause.title, cause.text).unwrap();
    }
    if let Some(WaitEstimate { min_ms, max_ms }) = estimate {
        writeln!(text, "starts in {min_ms} to {max_ms} ms").unwrap();
    }
    text
}

fn check(facts: &WaitFacts<'_>, expected: &Expect) {
    expected.assert_eq(&told(facts));
}

#[test]
fn a_job_that_runs_or_has_ended_does_not_wait() {
    let endpoint = Endpoint { workers_max: 0, ..an_endpoint() };
    let of = |job| facts(&endpoint, WaitingQueue { job, position: None, ..a_queue() });
    let running = WaitingJob { state: JobState::InProgress, started_at: NOW - 3_000, ..a_job() };
    check(
        &of(Some(running)),
        &expect![[r#"
            not_waiting (0) It does not wait: it runs: It has been running for 3 s.
        "#]],
    );
    let ended = WaitingJob { state: JobState::TimedOut, finished_at: NOW - 600_000, ..a_job() };
    check(
        &of(Some(ended)),
        &expect![[r#"
            not_waiting (0) It does not wait: it has ended: It ended 10 min ago: timed out.
        "#]],
    );
    let idle = WaitingQueue { job: None, position: None, queued: 0, running: 2, ..a_queue() };
    check(
        &facts(&endpoint, idle),
        &expect![[r#"
        not_waiting (0) No job waits: No job is queued. 2 jobs are running.
        paused! (1) The endpoint is paused: `workersMax` is 0.
    "#]],
    );
}

#[test]
fn a_failing_store_comes_first_even_without_an_answer_of_the_queue() {
    let endpoint = an_endpoint();
    let since = NOW - 60_000;
    let fault = |error: &str| Some(StoreFault { error: error.to_string(), since });
    let mut facts = facts(&endpoint, a_queue());
    facts.store_fault = fault("cannot write the log: No space left on device (os error 28)");
    check(
        &facts,
        &expect![[r#"
            store_failing! (0) The server cannot write to its disk: cannot write the log: No space left on device (os error 28). Jobs that run continue; nothing new is handed out. Free space on the disk with the server's data directory.
            worker_starting (0) A worker is about to start: The job came a moment ago.
        "#]],
    );
    facts.queue = None;
    facts.store_fault = fault("cannot write the log: Input/output error");
    check(
        &facts,
        &expect![[r#"
        store_failing! (0) The server cannot write to its disk: cannot write the log: Input/output error. Jobs that run continue; nothing new is handed out.
    "#]],
    );
    assert_eq!(explain(&facts).state, None);
}

#[test]
fn a_pause_hides_what_would_follow_from_it() {
    let endpoint = Endpoint { workers_max: 0, ..an_endpoint() };
    check(
        &facts(&endpoint, a_queue()),
        &expect![[r#"
            paused! (1) The endpoint is paused: `workersMax` is 0.
        "#]],
    );
    let mut facts = facts(&endpoint, a_queue());
    let at = NOW - 7_200_000;
    for by in [Some("ops".to_string()), None] {
        facts.pause = Some(PauseFacts { at, by });
        let cause = explain(&facts).cause;
        assert_eq!(cause.since, Some(at));
        let expected = if facts.pause.as_ref().unwrap().by.is_some() {
            "`workersMax` is 0. It was paused 2 h ago by ops."
        } else {
            "`workersMax` is 0. It was paused 2 h ago."
        };
        assert_eq!(cause.text, expected);
    }
}

fn a_holder(name: Option<&str>, workers: u32, busy: u32, ends_ms: Option<u64>) -> GpuHolder {
    let idle_end_at = ends_ms.map(|ms| NOW + ms);
    GpuHolder { name: name.map(String::from), workers, busy, idle_end_at }
}

#[test]
fn idle_workers_with_gpus_say_when_they_end() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    facts.gpus = Some(GpuShortage::Busy {
        need: "4 × H100".to_string(),
        free: 0,
        total: 4,
        holders: vec![
            a_holder(Some("sdxl"), 1, 0, Some(40_000)),
            a_holder(Some("flux"), 3, 2, Some(90_000)),
            a_holder(Some("tts"), 1, 0, Some(0)),
        ],
        before: vec![],
    });
    check(
        &facts,
        &expect![[r#"
        gpu_busy (0) The GPUs are taken: A worker asks for 4 × H100. All 4 are taken: sdxl has 1 worker, idle, ends in 40 s if it gets no job; flux has 3 workers, 2 busy, the first ends in 90 s if it gets no job; tts has 1 worker, idle, about to end. It is first in line for what comes free.
    "#]],
    );
    let details = explain(&facts).cause.details;
    assert!(details.contains(&("idleEndAt", CauseDetail::Time(NOW))), "the first of all: {details:?}");
}

#[test]
fn gpus_that_no_machine_has_are_blocking_and_others_are_not() {
    let endpoint = an_endpoint();
    let mut facts = facts(&endpoint, a_queue());
    let need = "4 × H100".to_string();
    facts.gpus = Some(GpuShortage::Impossible { need: need.clone(), stock: "2 × H100, 1 × L4".into() });
    check(
        &facts,
        &expect![[r#"
            gpu_impossible! (1) No machine has the GPUs that a worker asks for: A worker asks for 4 × H100; there are 2 × H100, 1 × L4.
        "#]],
    );
    facts.gpus = Some(GpuShortage::Busy {
        need: need.clone(),
        free: 0,
        total: 4,
        holders: vec![
            a_holder(Some("llama-8b"), 1, 1, None),
            a_holder(Some("sdxl"), 2, 0, None),
            a_holder(None, 3, 2, None),
        ],
        before: vec![],
    });
    check(
        &facts,
        &expect![[r#"
            gpu_busy (0) The GPUs are taken: A worker asks for 4 × H100. All 4 are taken: llama-8b has 1 worker, busy; sdxl has 2 workers, idle; another endpoint has 3 workers, 2 busy. It is first in line for what comes free.
        "#]],
    );
    facts.gpus = Some(GpuShortage::Busy {
        need: need.clone(),
        free: 1,
        total: 2,
        holders: vec![],
        before: vec![Some("flux-dev".into()), None],
    });
    check(
        &facts,
        &expect![[r#"
            gpu_busy (0) The GPUs are taken: A worker asks for 4 × H100. 1 of 2 are free. It is behind flux-dev, which waits longer.
        "#]],
    );
    let until = Some(NOW + 540_000);
    facts.gpus = Some(GpuShortage::Kept { need, keeper: Some("flux-dev".into()), keeper_needs: 4, until });
    check(
        &facts,
        &expect![[r#"
            gpu_kept (0) A free GPU is kept for another endpoint: A worker asks for 4 × H100. What is free is kept for flux-dev, which needs 4 and has waited longest, for 9 min more.
        "#]],
    );
}

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
        start_failed! (1) A worker cannot be started: cannot start `nope`: No such file or directory. The next try is in 22 s.
        start_failed! (1) A worker cannot be started: cannot start `nope`: No such file or directory. The next try is in 22 s.
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
fn external_workers_are_missing_busy_or_silent() {
    let endpoint = Endpoint { provider: Provider::External, ..an_endpoint() };
    check(
        &facts(&endpoint, a_queue()),
        &expect![[r#"
            no_external_worker! (1) No worker is there: Workers of this endpoint are external: you start them, and none has asked for a job since the server started 60 min ago.
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
            starts in 18900 to 21000 ms
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
    let queue = WaitingQueue { job, queued_normal: 0, first_normal_since: None, ..a_queue() };
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
    // The worker has been starting for 12 s, and 10 jobs end in 5 s to 20 s.
    let estimate = explain(&facts).estimate;
    assert_eq!(estimate, Some(WaitEstimate { min_ms: 8_000 + 5_000, max_ms: 18_000 + 20_000 }));
}
