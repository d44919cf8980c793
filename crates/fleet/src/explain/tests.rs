//! Each cause from the facts that bring it about, with its sentences.

mod blocking;
mod forwarded;
mod waiting;
mod workers;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use expect_test::{Expect, expect};
use longshore_model::{
    Endpoint, EndpointId, JobState, Millis, Provider, ScalerType, StartStage, TemplateId, WorkerPhase,
};

use super::*;

/// The time of every question.
const NOW: Millis = Millis(1_700_000_000_000);

fn an_endpoint() -> Endpoint {
    let record = serde_json::json!({
        "id": EndpointId::mint(1), "no": 1, "name": "hello", "templateId": TemplateId::mint(2), "workersMin": 0,
        "workersMax": 3, "idleTimeout": 5, "scalerType": "QUEUE_DELAY", "scalerValue": 4,
        "executionTimeoutMs": 600_000, "maxRetries": 2, "retryOn": [], "resultRetentionMs": 1,
        "syncResultRetentionMs": 1, "provider": "process", "maxConcurrency": 1, "flashboot": true,
        "computeType": "CPU", "gpuCount": 1, "vcpuCount": 2, "version": 1, "createdAt": 0,
    });
    serde_json::from_value(record).unwrap()
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
        deferred_until: None,
    }
}

fn a_queue() -> WaitingQueue {
    WaitingQueue {
        job: Some(a_job()),
        position: Some(1),
        queued: 1,
        queued_normal: 1,
        oldest_normal_since: Some(NOW - 1_200),
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
        no_room: None,
        stage: None,
        finishes: FinishRate::default(),
        servers: vec![],
        runs: None,
    }
}

fn workers(phase: WorkerPhase, count: usize) -> Vec<WorkerContact> {
    vec![WorkerContact { phase, silent_ms: None }; count]
}

fn managed(count: usize, is_ready: bool) -> Vec<ManagedWorker> {
    let started_at = NOW - 12_000;
    let is_busy = is_ready;
    let worker = |id: usize| ManagedWorker {
        id: format!("w{id}").parse().unwrap(),
        version: 1,
        started_at,
        is_ready,
        is_leaving: false,
        is_busy,
        idle_end_at: None,
    };
    (0..count).map(worker).collect()
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
        let mark = if cause.is_blocking() { "!" } else { "" };
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
