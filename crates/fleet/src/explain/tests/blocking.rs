//! The causes that keep a job from starting: the store, a pause, GPUs.

use super::*;

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
    let (stock, reason) = ("4 × H100 (4 sick)".to_string(), "nvidia-smi failed".to_string());
    facts.gpus = Some(GpuShortage::Sick { need: need.clone(), stock, reason });
    check(
        &facts,
        &expect![[r#"
        gpu_impossible! (0) The GPUs that a worker asks for cannot be used: A worker asks for 4 × H100; there are 4 × H100 (4 sick): nvidia-smi failed.
    "#]],
    );
    let idle = facts.queue.clone();
    facts.queue.as_mut().unwrap().workers = workers(WorkerPhase::Running, 1);
    assert!(explain(&facts).also.iter().all(|cause| !cause.is_blocking()), "one runs jobs");
    assert_eq!(problem(&explain(&facts)).unwrap().0, Severity::Warn);
    facts.queue = idle;
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
