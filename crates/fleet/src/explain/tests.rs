//! Each cause from the facts that bring it about, with its sentences.

mod blocking;
mod forwarded;
mod waiting;
mod workers;

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
        endpoint_type: longshore_model::EndpointType::Queue,
        lb: None,
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
        keep_failure_texts: true,
        example: None,
        input_schema: None,
        slo: None,
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
