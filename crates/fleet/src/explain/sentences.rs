//! Every text for people: a title and sentences for each cause. Numbers and names are arguments; nothing is decided here.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use longshore_model::{Millis, StartStage};

use super::words::{count, finishes, first_line, span};
use super::work::Work;
use super::{
    CrashFacts, CrashKind, FinishRate, GpuHolder, StartTimes, VersionRunTimes, WaitAction, WaitFacts,
};

/// A cause as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) title: String,
    pub(super) text: String,
}

impl Sentence {
    /// Adds the result of the last health check.
    pub(super) fn with_check(mut self, check: Option<&String>) -> Self {
        if let Some(check) = check {
            self.text.extend([" The last check said `", check, "`."]);
        }
        self
    }
}

fn sentence(title: &str, text: impl Into<String>) -> Sentence {
    Sentence { title: title.to_string(), text: text.into() }
}

pub(super) fn action(action: WaitAction) -> &'static str {
    match action {
        WaitAction::Resume => "Resume",
        WaitAction::ChangeGpus => "Change GPUs",
        WaitAction::TryNow => "Try now",
        WaitAction::OpenLog => "Open the log",
        WaitAction::ShowCommand => "Show its command",
        WaitAction::RaiseWorkersMax => "Raise workersMax",
    }
}

pub(super) fn runs(since_ms: u64) -> Sentence {
    sentence("It does not wait: it runs", format!("It has been running for {}.", span(since_ms)))
}

pub(super) fn ended(ago_ms: u64, state: &str) -> Sentence {
    sentence(
        "It does not wait: it has ended",
        format!("It ended {} ago: {}.", span(ago_ms), state.to_lowercase().replace('_', " ")),
    )
}

pub(super) fn nothing_waits(running: u64, work: Work) -> Sentence {
    let noun = work.noun();
    let text = match running {
        0 => format!("No {noun} is queued, and none runs."),
        _ => format!("No {noun} is queued. {} running.", are(running, noun)),
    };
    sentence(&format!("No {noun} waits"), text)
}

pub(super) fn store_failing(error: &str, is_full: bool, is_database: bool) -> Sentence {
    let cure = match (is_full, is_database) {
        (false, _) => "",
        (true, false) => " Free space on the disk with the server's data directory.",
        (true, true) => " Free space where the database runs.",
    };
    let error = first_line(error);
    let title = if is_database {
        "The server cannot write to its database"
    } else {
        "The server cannot write to its disk"
    };
    sentence(title, format!("{error}. Jobs that run continue; nothing new is handed out.{cure}"))
}

pub(super) fn draining(since_ms: u64, work: Work) -> Sentence {
    let since = span(since_ms);
    let text = match work {
        Work::Jobs => format!(
            "For {since}, it has handed out no job. Jobs are kept until `longshore drain --end`, or until it is restarted."
        ),
        Work::Requests => format!(
            "For {since}, it has refused new requests with 503, until `longshore drain --end`, or until it is restarted."
        ),
    };
    sentence("The server drains", text)
}

pub(super) fn paused(ago_ms: Option<u64>, by: Option<&str>) -> Sentence {
    let when = match (ago_ms, by) {
        (None, _) => String::new(),
        (Some(ms), None) => format!(" It was paused {} ago.", span(ms)),
        (Some(ms), Some(by)) => format!(" It was paused {} ago by {}.", span(ms), first_line(by)),
    };
    sentence("The endpoint is paused", format!("`workersMax` is 0.{when}"))
}

pub(super) fn gpus_sick(need: &str, stock: &str, reason: &str) -> Sentence {
    let reason = first_line(reason);
    sentence(
        "The GPUs that a worker asks for cannot be used",
        format!("A worker asks for {need}; there are {stock}: {reason}."),
    )
}

pub(super) fn gpu_impossible(need: &str, stock: &str) -> Sentence {
    sentence(
        "No machine has the GPUs that a worker asks for",
        format!("A worker asks for {need}; there are {stock}."),
    )
}

pub(super) fn machine_full(reason: &str) -> Sentence {
    sentence("There is no room for a worker", capitalized(format!("{}.", first_line(reason))))
}

pub(super) fn start_failed(crash: &CrashFacts, next: NextTry, work: Work) -> Sentence {
    let next = next_try(next, work);
    match &crash.kind {
        CrashKind::NeverReady(patience_ms) => {
            let after = span(*patience_ms);
            let (title, hint) = ("A worker does not become ready", "(`startPatienceMs`) and was ended");
            sentence(title, format!("It {} within {after} {hint}.{next}", work.was_not_ready()))
        }
        CrashKind::NotStarted(reason) => {
            let text = format!("{}.{next}", without_worker(first_line(reason)));
            sentence("A worker cannot be started", capitalized(text))
        }
        CrashKind::NoEnvironment | CrashKind::Exited { .. } => sentence(
            "A worker cannot be started: its Python environment cannot be made",
            format!("The attempt ended after {}.{next}", span(crash.lived_ms)),
        ),
    }
}

/// The title of crashes while other workers are ready.
pub(super) fn growth_fails() -> String {
    "Another worker cannot start".to_string()
}

/// A text that begins with a capital letter, if its first letter is an ASCII one.
fn capitalized(mut text: String) -> String {
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// `worker x was not started: why` → `why`: each try has another worker.
fn without_worker(reason: &str) -> &str {
    reason.split_once(" was not started: ").map_or(reason, |(_, why)| why)
}

pub(super) fn workers_crash(crash: &CrashFacts, ago_ms: u64, next: NextTry, work: Work) -> Sentence {
    let CrashKind::Exited { code, signal, because, was_ready } = &crash.kind else {
        return start_failed(crash, next, work);
    };
    let how = match (because, code, signal) {
        (Some(because), _, _) => format!("were {}", because.trim_end_matches('.')),
        (None, Some(code), _) => format!("ended with code {code}"),
        (None, None, Some(signal)) => format!("were ended by signal {signal}"),
        (None, None, None) => "vanished".to_string(),
    };
    let (title, who) = match (*was_ready, crash.count) {
        (false, 1) => ("A worker crashed while it started", "1 worker".to_string()),
        (false, n) => ("Every worker crashes while it starts", format!("{n} workers in a row")),
        (true, 1) => ("A worker crashed", "1 worker".to_string()),
        (true, n) => ("Workers crash", format!("{n} workers in a row")),
    };
    let how = if crash.count == 1 { how.replacen("were ", "was ", 1) } else { how };
    let hint = if *code == Some(0) && !was_ready && because.is_none() { work.ended_by_itself() } else { "" };
    let (lived, ago, next) = (span(crash.lived_ms), span(ago_ms), next_try(next, work));
    let last = if crash.count == 1 { "" } else { "the last " };
    sentence(title, format!("{who} {how} after {lived}, {last}{ago} ago.{hint}{next}"))
}

/// When a worker is started after crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTry {
    /// The try goes on: its worker starts.
    Begun,
    /// After this number of ms.
    In(u64),
    /// Once there is work for it.
    WithWork,
    /// Not at present, for another cause.
    HeldBack,
}

/// A sentence about the next try, with the space before it.
fn next_try(next: NextTry, work: Work) -> String {
    match next {
        NextTry::Begun => " The next try has begun.".to_string(),
        NextTry::In(ms) => format!(" The next try is in {}.", span(ms)),
        NextTry::WithWork => format!(" A worker starts with the next {}.", work.noun()),
        NextTry::HeldBack => String::new(),
    }
}

/// The last event before the time in which no external worker asked for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilentSince {
    /// The last request for a job.
    Request,
    /// The creation of the endpoint.
    Creation,
    /// The start of the server, which knows no earlier requests.
    ServerStart,
}

pub(super) fn no_external_worker(since: SilentSince, silent_ms: u64) -> Sentence {
    let silent = span(silent_ms);
    let how_long = match since {
        SilentSince::Request => format!("none has asked for a job for {silent}"),
        SilentSince::Creation => format!("none has asked for a job since it was made {silent} ago"),
        SilentSince::ServerStart => format!("none has asked for a job since the server started {silent} ago"),
    };
    sentence(
        "No worker is there",
        format!("Workers of this endpoint are external: you start them, and {how_long}."),
    )
}

pub(super) fn gpu_busy(
    need: &str,
    (free, total): (u32, u32),
    holders: &[GpuHolder],
    before: &[Option<String>],
    now: Millis,
) -> Sentence {
    let taken = match free {
        0 => format!("All {total} are taken"),
        _ => format!("{free} of {total} are free"),
    };
    let holders: Vec<String> = holders.iter().map(|it| holder(it, now)).collect();
    let by = if holders.is_empty() { String::new() } else { format!(": {}", holders.join("; ")) };
    let line = match before.first() {
        None => "It is first in line for what comes free".to_string(),
        Some(first) => format!("It is behind {}, which waits longer", name(first.as_deref())),
    };
    sentence("The GPUs are taken", format!("A worker asks for {need}. {taken}{by}. {line}."))
}

fn holder(holder: &GpuHolder, now: Millis) -> String {
    let what = match holder.busy {
        0 => "idle".to_string(),
        busy if busy == holder.workers => "busy".to_string(),
        busy => format!("{busy} busy"),
    };
    let ends = holder.idle_end_at.map_or_else(String::new, |at| {
        let who = if holder.workers == 1 { "" } else { "the first " };
        match at.since(now) {
            0 => format!(", {who}about to end"),
            ms => format!(", {who}ends in {} if it gets no job", span(ms)),
        }
    });
    let workers = count(u64::from(holder.workers), "worker");
    format!("{} has {workers}, {what}{ends}", name(holder.name.as_deref()))
}

/// The name of an endpoint, also of one that the reader may not see.
fn name(name: Option<&str>) -> &str {
    name.unwrap_or("another endpoint")
}

pub(super) fn gpu_kept(
    need: &str,
    keeper: Option<&str>,
    keeper_needs: u32,
    ends_ms: Option<u64>,
) -> Sentence {
    let until = ends_ms.map_or_else(String::new, |ms| format!(", for {} more", span(ms)));
    let keeper = name(keeper);
    sentence(
        "A free GPU is kept for another endpoint",
        format!(
            "A worker asks for {need}. What is free is kept for {keeper}, which needs {keeper_needs} and has waited longest{until}."
        ),
    )
}

pub(super) fn worker_about_to_start(work: Work) -> Sentence {
    sentence("A worker is about to start", format!("The {} came a moment ago.", work.noun()))
}

pub(super) fn provider_unavailable(provider: &str, reason: &str, since_ms: u64) -> Sentence {
    let since = span(since_ms);
    sentence(
        "No worker can be started",
        format!(
            "The endpoint's provider is `{provider}`, and the server has started no workers there for {since}: {reason}."
        ),
    )
}

pub(super) fn worker_ends_first(leaving: u32, workers_max: u32) -> Sentence {
    let ends = if leaving == 1 { "1 worker ends".to_string() } else { format!("{leaving} workers end") };
    sentence(
        "A worker has to end first",
        format!("`workersMax` is {workers_max}: {ends}, and then another one starts."),
    )
}

pub(super) fn worker_starting(
    workers: u32,
    ms: Option<u64>,
    stage: Option<StartStage>,
    usual: &StartTimes,
    replaced_after_ms: Option<u64>,
    work: Work,
) -> Sentence {
    let since = ms.map_or_else(String::new, |ms| format!(" for {}", span(ms)));
    let it = if workers == 1 { "it" } else { "the first" };
    let now = stage;
    let stage = stage.map_or_else(String::new, |stage| format!(": {it} {}", present_stage(stage)));
    let usual = match usual.count {
        0 => String::new(),
        n => format!(" A start usually takes {} (p50 of {n}).", span(usual.p50_ms)),
    };
    let who = if workers == 1 { "1 worker has".to_string() } else { format!("{workers} workers have") };
    let title = match now {
        Some(StartStage::Pulling { done_bytes, total_bytes }) if total_bytes > 0 => {
            format!("Pulling the image, {}", megabytes(done_bytes, total_bytes))
        }
        Some(StartStage::Pulling { .. }) => "Pulling the image".into(),
        _ => "A worker is starting".into(),
    };
    let replaced = replaced_after_ms.map_or_else(String::new, |ms| {
        let it = if workers == 1 { "It" } else { "The first" };
        let fault = work.is_not_ready();
        format!(" {it} is replaced if it {fault} within {} (`startPatienceMs`).", span(ms))
    });
    Sentence { title, text: format!("{who} been starting{since}{stage}.{usual}{replaced}") }
}

/// The progress of a pull, such as `41 of 109 MB`.
fn megabytes(done_bytes: u64, total_bytes: u64) -> String {
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    format!("{} of {} MB", megabytes(done_bytes), megabytes(total_bytes))
}

/// What happens to a starting worker, as a verb and its object.
fn present_stage(stage: StartStage) -> String {
    match stage {
        StartStage::Pulling { total_bytes: 0, .. } => "pulls its image".into(),
        StartStage::Pulling { done_bytes, total_bytes } => {
            format!("pulls its image ({})", megabytes(done_bytes, total_bytes))
        }
        StartStage::Creating => "creates its container".into(),
        StartStage::Starting => "starts its container".into(),
        StartStage::Environment => "makes its Python environment".into(),
        StartStage::Packages => "installs packages".into(),
        StartStage::Loading => "loads".into(),
    }
}

pub(super) fn workers_unhealthy(workers: u32, last_check: &str, patience_ms: u64) -> Sentence {
    let who = match workers {
        1 => "1 worker runs and is".to_string(),
        n => format!("{n} workers run and are"),
    };
    sentence(
        "Workers are not healthy",
        format!(
            "{who} not healthy: the last check said `{}`. A worker that is not healthy for {} \
             (`startPatienceMs`) is replaced.",
            first_line(last_check),
            span(patience_ms)
        ),
    )
}

pub(super) fn worker_silent(workers: u32, silent_ms: u64) -> Sentence {
    let (who, their) = match workers {
        1 => ("1 worker is ready but has".to_string(), "its handler"),
        n => (format!("{n} workers are ready but have"), "their handlers"),
    };
    sentence(
        "Workers do not ask for jobs",
        format!("{who} not asked for a job for {}: {their} may be blocking.", span(silent_ms)),
    )
}

pub(super) fn all_busy(busy: u32, workers_max: Option<u32>, line: &str) -> Sentence {
    let who = if busy == 1 {
        "The only worker is busy".to_string()
    } else {
        format!("All {busy} workers are busy")
    };
    let limit = workers_max.map_or_else(String::new, |max| format!(", and `workersMax` is {max}"));
    let title = if workers_max.is_some() {
        "All workers are busy, and no more may start"
    } else {
        "All workers are busy"
    };
    sentence(title, format!("{who}{limit}. {line}."))
}

/// What is before a job, or how many requests wait, as a sentence without its full stop.
pub(super) fn line(facts: &WaitFacts<'_>) -> String {
    match (facts.work(), facts.ahead()) {
        (Work::Requests, _) => {
            let queued = facts.queue.as_ref().map_or(0, |queue| queue.queued);
            let each = facts.endpoint.balances().map_or(0, |lb| u64::from(lb.max_concurrency));
            let wait = if queued == 1 { "waits" } else { "wait" };
            format!(
                "A worker gets {} (`lb.maxConcurrency`); {} {wait}",
                count(each, "request"),
                count(queued, "request")
            )
        }
        (Work::Jobs, 0) => format!("No job is ahead; {}", finishes(&facts.finishes)),
        (Work::Jobs, n) => format!("{} ahead; {}", are(n, "job"), finishes(&facts.finishes)),
    }
}

/// `1 job is`, `2 jobs are`.
fn are(number: u64, noun: &str) -> String {
    format!("{} {}", count(number, noun), if number == 1 { "is" } else { "are" })
}

pub(super) fn low_priority() -> Sentence {
    sentence(
        "Only low-priority jobs wait, which start no worker",
        "It runs when a worker is there for other jobs.",
    )
}

pub(super) fn scaler_waits_for_delay(scaler_s: u64, due_ms: u64, oldest_ms: u64, work: Work) -> Sentence {
    let noun = work.noun();
    let (due, oldest) = (span(due_ms), span(oldest_ms));
    sentence(
        "The scaler adds a worker later",
        format!(
            "A worker is added once a {noun} has waited {due} (`scalerValue` is {scaler_s} s); the oldest one has waited {oldest}."
        ),
    )
}

pub(super) fn scaler_waits_for_count(jobs_each: u64, jobs: u64, workers: u32, work: Work) -> Sentence {
    let noun = work.noun();
    let (each, there) = (count(jobs_each, noun), count(u64::from(workers), "worker"));
    sentence(
        "There are enough workers for the scaler",
        format!(
            "It wants one worker for {each} (`scalerValue`): {} queued or running, for {there}.",
            are(jobs, noun)
        ),
    )
}

pub(super) fn version_change((old, new): (u32, u32), of_new: u32, all: u32, work: Work) -> Sentence {
    let noun = work.noun();
    sentence(
        "Workers of an older version finish first",
        format!(
            "Workers of version {old} finish their {noun}s; those of version {new} start as they go ({of_new} of {all})."
        ),
    )
}

pub(super) fn retrying(ago_ms: u64, reason: Option<&str>, next_try: u32, tries: u32) -> Sentence {
    let reason = reason.map_or("the reason is no longer known", first_line);
    sentence(
        "It is tried again",
        format!(
            "Its last try failed {} ago: {reason}. This is try {next_try} of {tries}, from the front of the queue.",
            span(ago_ms)
        ),
    )
}

pub(super) fn deferred(ago_ms: u64, reason: Option<&str>, left_ms: u64) -> Sentence {
    let reason = reason.map_or("its input could not be read", first_line);
    sentence(
        "It is delivered again later",
        format!("It was put back {} ago: {reason}. The next try is in {}.", span(ago_ms), span(left_ms)),
    )
}

pub(super) fn redelivered(ago_ms: u64, reason: &str) -> Sentence {
    sentence(
        "It is delivered again",
        format!(
            "It was put back {} ago: {}. It is at the front of the queue.",
            span(ago_ms),
            first_line(reason)
        ),
    )
}

pub(super) fn in_line(ahead: u64, line: &str) -> Sentence {
    let title = if ahead == 0 { "It is next" } else { "Other jobs are before it" };
    sentence(title, format!("{line}."))
}

pub(super) fn endpoint_in_line(queued: u64, rate: &FinishRate, work: Work) -> Sentence {
    match work {
        Work::Jobs => {
            sentence("Jobs wait in line", format!("{} queued; {}.", are(queued, "job"), finishes(rate)))
        }
        Work::Requests => sentence("Requests wait in line", format!("{} queued.", are(queued, "request"))),
    }
}

pub(super) fn ttl_near(left_ms: u64) -> Sentence {
    sentence("Its ttl ends soon", format!("It is deleted in {}, when its ttl ends.", span(left_ms)))
}

pub(super) fn queue_full(queued: u64, work: Work) -> Sentence {
    let (jobs, limit) = (are(queued, work.noun()), work.queue_limit());
    sentence("The queue is full", format!("{jobs} queued (`{limit}`); further ones are refused."))
}

pub(super) fn slow_since_version(runs: &VersionRunTimes) -> Sentence {
    let VersionRunTimes { present, before, .. } = runs;
    sentence(
        "Jobs run longer since the last change",
        format!(
            "Half of the last {} of version {} ran {} or longer; of version {}, half ran {} or longer.",
            count(u64::from(present.jobs), "job"),
            present.version,
            span(present.p50_ms),
            before.version,
            span(before.p50_ms)
        ),
    )
}
