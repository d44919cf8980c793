//! Which causes hold, in the order of [`CauseCode`]. Each check is independent of the others, so that all that hold can be
//! shown.

use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{JobState, Millis, ScalerType, StartStage, WorkerPhase};

use super::sentences::{self, NextTry, Sentence, SilentSince};
use super::{
    CauseCode, CauseDetail, CrashFacts, CrashKind, GpuShortage, ProviderFault, ServerHealth, WaitAction,
    WaitCause, WaitEstimate, WaitFacts,
};
use crate::{FleetLoad, NO_CHECK, ScalingRules, WorkerHealth, demand};

/// A ready worker that has asked for no job for this time, in ms, is silent. The SDKs ask again immediately.
const SILENT_MS: u64 = 10_000;
/// A worker that has answered its checks with an unexpected status for this time, in ms, will hardly become healthy.
const REJECTING_MS: u64 = 10_000;
/// A start is unusual from this time in ms on, if that is also this many times the p95 of starts.
const UNUSUAL_MS: u64 = 60_000;
const UNUSUAL_TIMES: u64 = 3;
/// The ttl of a job that starts at an unknown time is near in its last 10 min.
const TTL_NEAR_MS: u64 = 600_000;
/// A version is slow if its jobs run this much longer than those of the version before, in percent and in ms.
const SLOWER_PERCENT: u64 = 150;
const SLOWER_MS: u64 = 100;

/// The causes that hold, in their order. Never empty: a job that waits for nothing else is in line.
pub(super) fn causes(facts: &WaitFacts<'_>) -> Vec<WaitCause> {
    let checks: [fn(&WaitFacts<'_>) -> Option<WaitCause>; 18] = [
        not_waiting,
        store_failing,
        draining,
        paused,
        provider_unavailable,
        gpu_impossible,
        crashing,
        workers_unhealthy,
        no_external_worker,
        gpus_in_use,
        machine_full,
        worker_starting,
        worker_silent,
        all_busy,
        low_priority,
        scaler_waits,
        version_change,
        retrying,
    ];
    let mut causes: Vec<WaitCause> = checks.iter().filter_map(|check| check(facts)).collect();
    // A worker that is to be tried again and gets no room waits for that.
    let is_room = |cause: &WaitCause| (CauseCode::GpuBusy..=CauseCode::MachineFull).contains(&cause.code);
    let is_due = facts.fleet.crash.as_ref().is_some_and(|crash| crash.next_try_at <= facts.now);
    if is_due && causes.iter().any(is_room) {
        causes.sort_by_key(|cause| cause.code.is_crash());
    }
    let is_told = causes.iter().any(|cause| cause.code == CauseCode::AllBusy);
    let has_others = facts.waits() && facts.queue.is_some() && (facts.ahead() > 0 || facts.job().is_none());
    if causes.is_empty() || has_others && !is_told {
        causes.push(in_line(facts));
    }
    causes
}

/// What else is worth knowing about a job that waits.
pub(super) fn remarks(facts: &WaitFacts<'_>, estimate: Option<WaitEstimate>) -> Vec<WaitCause> {
    let remarks =
        [growth_fails(facts), ttl_near(facts, estimate), queue_full(facts), slow_since_version(facts)];
    remarks.into_iter().flatten().collect()
}

fn cause(code: CauseCode, since: Option<Millis>, sentence: Sentence) -> WaitCause {
    let Sentence { title, text } = sentence;
    WaitCause { code, since, title, text, details: Vec::new(), log_tail: Vec::new(), actions: Vec::new() }
}

impl WaitCause {
    fn with(mut self, name: &'static str, value: impl Into<CauseDetail>) -> Self {
        self.details.push((name, value.into()));
        self
    }

    fn offers(mut self, actions: &[WaitAction]) -> Self {
        self.actions = actions.to_vec();
        self
    }
}

impl From<u64> for CauseDetail {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for CauseDetail {
    fn from(number: u32) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<i32> for CauseDetail {
    fn from(number: i32) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<Millis> for CauseDetail {
    fn from(at: Millis) -> Self {
        Self::Time(at)
    }
}

impl From<&str> for CauseDetail {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<&String> for CauseDetail {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl<T: Into<Self>> From<Option<T>> for CauseDetail {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

fn not_waiting(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    if facts.waits() {
        return None;
    }
    let Some(job) = facts.job() else {
        let running = facts.queue.as_ref()?.running;
        return Some(
            cause(CauseCode::NotWaiting, None, sentences::nothing_waits(running, facts.work()))
                .with("running", running),
        );
    };
    let (since, sentence) = if job.state == JobState::InProgress {
        (job.started_at, sentences::runs(facts.now.since(job.started_at)))
    } else {
        (job.finished_at, sentences::ended(facts.now.since(job.finished_at), job.state.as_str()))
    };
    Some(cause(CauseCode::NotWaiting, Some(since), sentence))
}

fn store_failing(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let fault = facts.store_fault.as_ref()?;
    let is_full =
        ["full", "No space left", "could not extend file"].iter().any(|text| fault.error.contains(text));
    let sentence = sentences::store_failing(&fault.error, is_full, fault.error.contains("database"));
    Some(cause(CauseCode::StoreFailing, Some(fault.since), sentence).with("error", &fault.error))
}

fn draining(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let since = facts.draining_since?;
    Some(cause(CauseCode::Draining, Some(since), sentences::draining(facts.now.since(since), facts.work())))
}

fn paused(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    (facts.endpoint.workers_max == 0).then(|| {
        let (since, by) = match &facts.pause {
            Some(pause) => (Some(pause.at), pause.by.as_ref()),
            None => (None, None),
        };
        let sentence = sentences::paused(since.map(|at| facts.now.since(at)), by.map(String::as_str));
        let cause = cause(CauseCode::Paused, since, sentence);
        cause.with("workersMax", 0_u32).with("by", by).offers(&[WaitAction::Resume])
    })
}

fn provider_unavailable(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let ProviderFault { reason, since } = facts.provider_fault.as_ref()?;
    let provider = facts.endpoint.provider.as_str();
    let sentence = sentences::provider_unavailable(provider, reason, facts.now.since(*since));
    let cause = cause(CauseCode::ProviderUnavailable, Some(*since), sentence);
    Some(cause.with("provider", provider).with("reason", reason))
}

fn gpu_impossible(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let since = facts.fleet.throttled_since;
    let cause = |sentence| cause(CauseCode::GpuImpossible, since, sentence);
    match facts.gpus.as_ref()? {
        GpuShortage::Impossible { need, stock } => {
            let cause = cause(sentences::gpu_impossible(need, stock)).with("need", need).with("stock", stock);
            Some(cause.offers(&[WaitAction::ChangeGpus]))
        }
        GpuShortage::Sick { need, stock, reason } => {
            let cause =
                cause(sentences::gpus_sick(need, stock, reason)).with("need", need).with("stock", stock);
            let up = Some(facts.up()).filter(|up| *up > 0);
            Some(cause.with("reason", reason).with(super::WORKERS_UP, up))
        }
        GpuShortage::Busy { .. } | GpuShortage::Kept { .. } => None,
    }
}

/// `start_failed` or `workers_crash`, while no worker is ready.
fn crashing(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let crash = facts.fleet.crash.as_ref().filter(|_| facts.up() == 0)?;
    Some(crash_cause(facts, crash))
}

/// The same while jobs wait that more workers would run beside those that are ready. One crash alone is none of the start.
fn growth_fails(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let crash = facts.fleet.crash.as_ref().filter(|crash| facts.up() > 0 && crash.count > 1)?;
    let is_wanted = facts.queue.as_ref().is_some_and(|queue| queue.queued_normal > 0) && facts.room() > 0;
    is_wanted.then(|| {
        let title = sentences::growth_fails();
        WaitCause { title, ..crash_cause(facts, crash).with(super::WORKERS_UP, facts.up()) }
    })
}

fn crash_cause(facts: &WaitFacts<'_>, crash: &CrashFacts) -> WaitCause {
    let next = next_try(facts, crash);
    let (code, sentence) = match &crash.kind {
        CrashKind::Exited { .. } => {
            let ago_ms = facts.now.since(crash.last_at);
            (CauseCode::WorkersCrash, sentences::workers_crash(crash, ago_ms, next, facts.work()))
        }
        _ => (CauseCode::StartFailed, sentences::start_failed(crash, next, facts.work())),
    };
    let cause = cause(code, Some(crash.first_at), sentence)
        .with("crashes", crash.count)
        .with("livedMs", crash.lived_ms)
        .with("lastAt", crash.last_at)
        .with("nextTryAt", crash.next_try_at)
        .with("worker", crash.worker.as_ref().map(longshore_model::WorkerId::as_str));
    let mut cause = with_exit(cause, crash);
    if !matches!(next, NextTry::Begun | NextTry::In(_)) {
        cause.actions.retain(|action| *action != WaitAction::TryNow);
    }
    cause
}

/// When a worker is started again. Without work none is, unless `workersMin` asks for it.
fn next_try(facts: &WaitFacts<'_>, crash: &CrashFacts) -> NextTry {
    let may_start = facts.endpoint.workers_max > 0 && facts.draining_since.is_none();
    let is_wanted = facts.endpoint.workers_min > 0
        || facts.starting().next().is_some()
        || facts.queue.as_ref().is_none_or(|queue| queue.queued_normal > 0);
    match crash.next_try_at.since(facts.now) {
        _ if !may_start => NextTry::HeldBack,
        _ if !is_wanted => NextTry::WithWork,
        0 if facts.gpus.is_some() || facts.no_room.is_some() => NextTry::HeldBack,
        0 => NextTry::Begun,
        ms => NextTry::In(ms),
    }
}

fn with_exit(cause: WaitCause, crash: &CrashFacts) -> WaitCause {
    let mut cause = match &crash.kind {
        CrashKind::Exited { code, signal, because, .. } => {
            cause.with("code", *code).with("signal", *signal).with("reason", because.as_ref())
        }
        CrashKind::NotStarted(reason) => cause.with("reason", reason),
        CrashKind::NeverReady(patience_ms) => cause.with(super::START_PATIENCE_MS, *patience_ms),
        CrashKind::NoEnvironment => cause,
    };
    cause.log_tail = crash.log_tail.lines().map(String::from).collect();
    let has_log = crash.worker.is_some() && !matches!(crash.kind, CrashKind::NotStarted(_));
    let actions = [WaitAction::TryNow, WaitAction::OpenLog];
    cause.offers(if has_log { &actions } else { &actions[..1] })
}

/// Workers of a load-balancing endpoint that fail their checks, while none is healthy. A worker that never was healthy is
/// one of them if it rejects its checks: its server runs, and `lb.healthPath` may be wrong.
fn workers_unhealthy(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    if facts.servers.iter().any(|server| server.health == WorkerHealth::Healthy) {
        return None;
    }
    let rejects = |server: &ServerHealth| {
        server.rejecting_since.is_some_and(|since| facts.now.since(since) >= REJECTING_MS)
    };
    let is_unhealthy = |server: &&ServerHealth| server.health == WorkerHealth::Unhealthy || rejects(server);
    let unhealthy = || facts.servers.iter().filter(is_unhealthy);
    let (workers, first) = (unhealthy().count() as u32, unhealthy().next()?);
    let sentence = sentences::workers_unhealthy(workers, &first.last_check, facts.endpoint.start_patience_ms);
    let cause = cause(CauseCode::WorkersUnhealthy, None, sentence);
    Some(cause.with("workers", workers).with("lastCheck", &first.last_check))
}

fn no_external_worker(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let queue = facts.queue.as_ref().filter(|_| facts.is_external())?;
    let is_there = queue.workers.iter().any(|worker| worker.phase != WorkerPhase::Draining);
    (!is_there).then(|| {
        let (started, created) = (facts.server_started_at, facts.endpoint.created_at);
        let (since, event) = match queue.last_take_at {
            Some(at) => (at, SilentSince::Request),
            None if created > started => (created, SilentSince::Creation),
            None => (started, SilentSince::ServerStart),
        };
        let sentence = sentences::no_external_worker(event, facts.now.since(since));
        cause(CauseCode::NoExternalWorker, Some(since), sentence)
            .with("lastAskedAt", queue.last_take_at)
            .offers(&[WaitAction::ShowCommand])
    })
}

/// `gpu_busy` or `gpu_kept`.
fn gpus_in_use(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let since = facts.fleet.throttled_since;
    match facts.gpus.as_ref()? {
        GpuShortage::Impossible { .. } | GpuShortage::Sick { .. } => None,
        GpuShortage::Busy { need, free, total, holders, before } => {
            let sentence = sentences::gpu_busy(need, (*free, *total), holders, before, facts.now);
            let cause = cause(CauseCode::GpuBusy, since, sentence).with("need", need);
            let idle_end = holders.iter().filter_map(|holder| holder.idle_end_at).min();
            let cause = cause.with("free", *free).with("total", *total).with("before", before.len() as u32);
            Some(cause.with("idleEndAt", idle_end))
        }
        GpuShortage::Kept { need, keeper, keeper_needs, until } => {
            let ends_ms = until.map(|until| until.since(facts.now));
            let sentence = sentences::gpu_kept(need, keeper.as_deref(), *keeper_needs, ends_ms);
            let cause = cause(CauseCode::GpuKept, since, sentence).with("need", need);
            Some(
                cause
                    .with("keeper", keeper.as_ref())
                    .with("keeperNeeds", *keeper_needs)
                    .with("until", *until),
            )
        }
    }
}

fn machine_full(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let reason = facts.no_room.as_ref()?;
    let cause = cause(CauseCode::MachineFull, facts.fleet.throttled_since, sentences::machine_full(reason));
    Some(cause.with("reason", reason))
}

/// Whether the endpoint has no ready worker for the job at this moment, and managed workers could help.
fn lacks_worker(facts: &WaitFacts<'_>) -> bool {
    facts.queue.is_some()
        && !facts.is_external()
        && !facts.is_asked_for()
        && facts.endpoint.workers_max > 0
        && facts.draining_since.is_none()
        && facts.waits()
}

/// Workers that start. Ones that may hang are told also while nothing waits for them.
fn worker_starting(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let starting = facts.starting().count() as u32;
    let since = facts.starting().map(|worker| worker.started_at).filter(|at| at.0 > 0).min();
    let ms = since.map(|since| facts.now.since(since));
    let late = late(facts, ms);
    if !lacks_worker(facts) && late.is_none() {
        return None;
    }
    let leaving = facts.fleet.workers.iter().filter(|worker| worker.is_leaving).count() as u32;
    let is_expected = facts.queue.as_ref().is_some_and(|queue| queue.queued_normal > 0)
        && facts.up() == 0
        && facts.fleet.crash.is_none()
        && facts.gpus.is_none()
        && facts.no_room.is_none();
    let check = starting_check(facts);
    let sentence = match (starting, facts.room()) {
        (0, 0) if is_expected && leaving > 0 && outdated(facts) == 0 => {
            sentences::worker_ends_first(leaving, facts.endpoint.workers_max)
        }
        (0, 1..) if is_expected => sentences::worker_about_to_start(facts.work()),
        (0, _) => return None,
        (n, _) => sentences::worker_starting(n, ms, facts.stage, &facts.fleet.starts, late, facts.work())
            .with_check(check.filter(|check| *check != NO_CHECK)),
    };
    let cause = cause(CauseCode::WorkerStarting, since, sentence)
        .with("workers", starting)
        .with("stage", facts.stage.map(StartStage::as_str))
        .with("starts", facts.fleet.starts.count)
        .with("lastCheck", check)
        .with(super::START_PATIENCE_MS, late);
    let usual = |ms: u64| (facts.fleet.starts.count > 0).then_some(ms);
    Some(
        cause.with("p50Ms", usual(facts.fleet.starts.p50_ms)).with("p95Ms", usual(facts.fleet.starts.p95_ms)),
    )
}

/// The last check of a worker of a load-balancing endpoint that was not healthy yet.
fn starting_check<'a>(facts: &'a WaitFacts<'_>) -> Option<&'a String> {
    let is_starting = |health| matches!(health, WorkerHealth::Starting | WorkerHealth::Initializing);
    facts.servers.iter().find(|server| is_starting(server.health)).map(|server| &server.last_check)
}

/// `startPatienceMs`, if the start may hang: half of that is over, or the start takes much longer than usual. Pulls of
/// images do not count.
fn late(facts: &WaitFacts<'_>, starting_ms: Option<u64>) -> Option<u64> {
    let is_counted = !matches!(facts.stage, Some(StartStage::Pulling { .. } | StartStage::Creating));
    let (patience_ms, usual) = (facts.endpoint.start_patience_ms, facts.fleet.starts);
    let is_unusual = |ms: u64| usual.count > 0 && ms >= UNUSUAL_MS.max(UNUSUAL_TIMES * usual.p95_ms);
    let is_late = |ms: u64| is_counted && (ms >= patience_ms / 2 || is_unusual(ms));
    starting_ms.filter(|ms| is_late(*ms)).map(|_| patience_ms)
}

fn worker_silent(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    if !facts.waits() || facts.is_asked_for() {
        return None;
    }
    let silent = || facts.in_phase(WorkerPhase::Idle).filter_map(|worker| worker.silent_ms);
    let silent = || silent().filter(|ms| *ms >= SILENT_MS);
    let (workers, shortest_ms) = (silent().count() as u32, silent().min()?);
    let sentence = sentences::worker_silent(workers, shortest_ms);
    let cause = cause(CauseCode::WorkerSilent, Some(facts.now - shortest_ms), sentence);
    Some(cause.with("workers", workers).with("silentMs", shortest_ms))
}

fn all_busy(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let busy = facts.in_phase(WorkerPhase::Running).count() as u32;
    if !facts.waits() || busy == 0 || facts.up() > busy {
        return None;
    }
    let staying = facts.fleet.workers.iter().filter(|worker| !worker.is_leaving).count() as u32;
    let workers_max = facts.endpoint.workers_max;
    if !facts.is_external() && staying < workers_max {
        return None;
    }
    let limit = Some(workers_max).filter(|_| !facts.is_external());
    let sentence = sentences::all_busy(busy, limit, &sentences::line(facts));
    let cause = cause(CauseCode::AllBusy, None, sentence).with("busy", busy).with("workersMax", limit);
    let cause = with_line(cause, facts);
    Some(if limit.is_some() { cause.offers(&[WaitAction::RaiseWorkersMax]) } else { cause })
}

fn low_priority(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let queue = facts.queue.as_ref()?;
    let is_low = queue.job.as_ref().map_or(queue.queued > 0, |job| job.low_priority);
    let starts_none = queue.queued_normal == 0 && is_low && lacks_worker(facts);
    starts_none.then(|| cause(CauseCode::LowPriority, None, sentences::low_priority()))
}

fn scaler_waits(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let queue = facts.queue.as_ref()?;
    let (up, starting) = (facts.up(), facts.starting().count() as u32);
    if !lacks_worker(facts) || up == 0 || queue.queued_normal == 0 || facts.room() == 0 {
        return None;
    }
    let oldest_ms = queue.oldest_normal_since.map_or(0, |since| facts.now.since(since));
    let load = FleetLoad {
        queued_normal: queue.queued_normal,
        running: queue.running,
        oldest_normal_wait_ms: oldest_ms,
    };
    let wanted = demand(&ScalingRules::from(facts.endpoint), &load, up, starting);
    if wanted.grow_to > up + starting {
        return None;
    }
    let value = u64::from(facts.endpoint.scaler_value);
    let sentence = match facts.endpoint.scaler_type {
        ScalerType::QueueDelay | ScalerType::IdleGaps => {
            sentences::scaler_waits_for_delay(value, oldest_ms + wanted.grows_in_ms?, oldest_ms, facts.work())
        }
        ScalerType::RequestCount => sentences::scaler_waits_for_count(
            value.max(1),
            queue.queued_normal + queue.running,
            up + starting,
            facts.work(),
        ),
    };
    let cause = cause(CauseCode::ScalerWaits, None, sentence).with("scalerValue", value);
    Some(cause.with("workers", up + starting).with("growsInMs", wanted.grows_in_ms))
}

/// The number of workers that were started for an older version.
fn outdated(facts: &WaitFacts<'_>) -> u32 {
    facts.fleet.workers.iter().filter(|worker| worker.version != facts.endpoint.version).count() as u32
}

fn version_change(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let old = outdated(facts);
    if old == 0 || !facts.waits() {
        return None;
    }
    let new = facts.endpoint.version;
    let workers = || facts.fleet.workers.iter();
    let oldest = workers().map(|worker| worker.version).min()?;
    let of_new = workers().filter(|worker| worker.version == new).count() as u32;
    let sentence = sentences::version_change((oldest, new), of_new, of_new + old, facts.work());
    let cause = cause(CauseCode::VersionChange, None, sentence).with("from", oldest).with("to", new);
    Some(cause.with("replaced", of_new).with("workers", of_new + old))
}

fn retrying(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let job = facts.job().filter(|_| facts.waits())?;
    let reason = job.requeue.as_ref().map(|requeue| requeue.reason.as_str());
    let since = job.requeue.as_ref().map_or(job.enqueued_at, |requeue| requeue.at);
    let ago_ms = facts.now.since(since);
    let (this, tries) = (u32::from(job.retries) + 1, u32::from(facts.endpoint.max_retries) + 1);
    let deferred_until = job.deferred_until.filter(|until| *until > facts.now);
    let sentence = match (deferred_until, job.retries, reason) {
        (Some(until), ..) => sentences::deferred(ago_ms, reason, until.since(facts.now)),
        (None, 0, None) => return None,
        (None, 0, Some(reason)) => sentences::redelivered(ago_ms, reason),
        (None, _, reason) => sentences::retrying(ago_ms, reason, this, tries.max(this)),
    };
    let cause = cause(CauseCode::Retrying, Some(since), sentence).with("reason", reason);
    Some(cause.with("try", this).with("tries", tries.max(this)).with("nextTryAt", deferred_until))
}

fn in_line(facts: &WaitFacts<'_>) -> WaitCause {
    let (since, sentence) = match (facts.job(), &facts.queue) {
        (None, Some(queue)) => (
            queue.oldest_normal_since,
            sentences::endpoint_in_line(queue.queued, &facts.finishes, facts.work()),
        ),
        (job, _) => {
            (job.map(|job| job.enqueued_at), sentences::in_line(facts.ahead(), &sentences::line(facts)))
        }
    };
    with_line(cause(CauseCode::InLine, since, sentence), facts)
}

fn with_line(cause: WaitCause, facts: &WaitFacts<'_>) -> WaitCause {
    cause.with("ahead", facts.ahead()).with("finishPerHour", facts.finishes.per_hour)
}

fn ttl_near(facts: &WaitFacts<'_>, estimate: Option<WaitEstimate>) -> Option<WaitCause> {
    let job = facts.job()?;
    let left_ms = job.delete_at.since(facts.now);
    let is_near = estimate.map_or(left_ms <= TTL_NEAR_MS, |estimate| left_ms <= estimate.max_ms);
    is_near.then(|| {
        cause(CauseCode::TtlNear, None, sentences::ttl_near(left_ms)).with("deletedAt", job.delete_at)
    })
}

fn queue_full(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let queue = facts.queue.as_ref().filter(|queue| queue.queued >= queue.jobs_max)?;
    let cause = cause(CauseCode::QueueFull, None, sentences::queue_full(queue.queued, facts.work()));
    Some(cause.with("queued", queue.queued).with("limit", queue.jobs_max))
}

fn slow_since_version(facts: &WaitFacts<'_>) -> Option<WaitCause> {
    let runs = facts.runs.as_ref()?;
    let (present, before) = (runs.present, runs.before);
    let is_slow = present.version == facts.endpoint.version
        && present.p50_ms >= before.p50_ms + SLOWER_MS
        && present.p50_ms * 100 >= before.p50_ms * SLOWER_PERCENT;
    is_slow.then(|| {
        let cause = cause(CauseCode::SlowSinceVersion, Some(runs.since), sentences::slow_since_version(runs));
        let cause = cause.with("from", before.version).with("to", present.version);
        cause.with("p50MsBefore", before.p50_ms).with("p50Ms", present.p50_ms)
    })
}
