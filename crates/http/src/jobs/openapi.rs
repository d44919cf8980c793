//! The job interface in the API's document: its parameters and schemas.

use longshore_model::JobState;
use longshore_model::limits::{
    EXECUTION_TIMEOUT_MS_DEFAULT, EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_MIN,
    IDEMPOTENCY_KEY_BYTES_MAX, REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX, STATUS_TTL_MS_MIN,
    STREAM_WAIT_MS_DEFAULT, TTL_MS_DEFAULT, TTL_MS_MAX, TTL_MS_MIN, WAIT_MS_DEFAULT, WAIT_MS_MAX,
    WAIT_MS_MIN,
};
use serde_json::{Value, json};

use crate::openapi::parameter::{Parameter, ParameterKind, header, query};
use crate::openapi::schema::{array_of, count, object, reference, text, time, with_example};

const fn wait_ms(min: u64, default: u64) -> Parameter {
    let kind = ParameterKind::Integer { min, max: WAIT_MS_MAX, default: Some(default) };
    query("wait", kind, "how long the answer may be held, in milliseconds")
}

/// The largest number of items on one page.
pub(super) const fn limit(about: &'static str) -> Parameter {
    let default = Some(REQUESTS_LIMIT_DEFAULT as u64);
    query("limit", ParameterKind::Integer { min: 1, max: REQUESTS_LIMIT_MAX as u64, default }, about)
}

const WAIT: Parameter = wait_ms(WAIT_MS_MIN, WAIT_MS_DEFAULT);
const POSITION: Parameter = query(
    "position",
    ParameterKind::Flag,
    "shows the `position` of a job that waits: its place in the line, 1 for the next",
);
const IDEMPOTENCY_KEY: Parameter = header(
    "Idempotency-Key",
    ParameterKind::Printable { chars_max: IDEMPOTENCY_KEY_BYTES_MAX },
    "the same request with the same key makes no second job",
);

/// The parameters of `/run`.
pub(super) const RUN: &[Parameter] = &[IDEMPOTENCY_KEY];
/// The parameters of `/runsync`.
pub(super) const RUN_SYNC: &[Parameter] = &[WAIT, IDEMPOTENCY_KEY];
/// The parameters of `/status`.
pub(super) const STATUS: &[Parameter] = &[
    query(
        "ttl",
        ParameterKind::Integer { min: STATUS_TTL_MS_MIN, max: TTL_MS_MAX, default: None },
        "deletes the job this many milliseconds from now",
    ),
    POSITION,
];
/// The parameters of `/status-sync`.
pub(super) const STATUS_SYNC: &[Parameter] = &[WAIT, POSITION];
/// The parameters of `/stream`.
pub(super) const STREAM: &[Parameter] = &[
    wait_ms(0, STREAM_WAIT_MS_DEFAULT),
    query(
        "offset",
        ParameterKind::Integer { min: 0, max: u64::MAX, default: None },
        "reads from this chunk on, and leaves what it reads for others",
    ),
    query(
        "outputBytesMax",
        ParameterKind::Integer { min: 0, max: u64::MAX, default: None },
        "in events, leaves a larger output out of the record, and says its size in `outputBytes`; `/jobs/{job}/output` has it",
    ),
    header(
        "Last-Event-ID",
        ParameterKind::Integer { min: 0, max: u64::MAX, default: None },
        "the last chunk that came; the events go on after it",
    ),
];
/// How `/stream` answers with events.
pub(super) const EVENTS: &str = "The answer is an array, or an object if the endpoint's `streamShape` says so. With `Accept: text/event-stream` the job is followed to its end: every chunk is an \
    event with its offset as `id`, `event: status` has the record whenever the job stands otherwise, and `event: done` \
    has it in the end. `event: error` is the last one where what is next is damaged.";
/// What `/requests` answers.
pub(super) const ABOUT_REQUESTS: &str = "Without an `output` or `error` of more than 4 KiB: `/status` has those. A page \
    compares at most 10 000 jobs with the conditions, and with `q`, `error` or `input.` reads at most 64 MiB or for 1 s; `searched` of `of` jobs \
    were compared for it. `input.customer.id=17` finds jobs by a member of their input. A page can be empty although a later one is not: go on with `cursor` until it is null.";
/// The parameters of lists of jobs.
pub(crate) const CONDITIONS: &[Parameter] = &[
    query("status", ParameterKind::Form("^[A-Z_]+(,[A-Z_]+)*$"), "only jobs in these states, between commas"),
    query("since", ParameterKind::Time, "only jobs submitted then or later"),
    query("until", ParameterKind::Time, "only jobs submitted earlier"),
    query("worker", ParameterKind::Text, "only jobs whose present or last worker has this id"),
    query("key", ParameterKind::Text, "only jobs that the API key with this id submitted"),
    query("id", ParameterKind::Text, "only jobs whose id begins or ends with this text"),
    query("minDelayMs", ANY_MS, "only jobs that waited for this time at least"),
    query("minExecutionMs", ANY_MS, "only jobs that ran for this time at least"),
    query("retried", ParameterKind::Flag, "only jobs that were retried automatically"),
    limit("how many jobs at most"),
    query("cursor", ParameterKind::Made(job_id), "the `cursor` of the page before"),
];
/// The further parameters of `/requests`.
pub(super) const REQUESTS: &[Parameter] = &[
    query(
        "q",
        ParameterKind::Text,
        "only jobs with this text in their id, input, output or error, in any case",
    ),
    query("error", ParameterKind::Text, "only jobs with this text in their error, in any case"),
    query(
        "webhook",
        ParameterKind::Word { words: super::webhooks::STATES, default: None },
        "only jobs with a webhook call that stands so, as far as the log of calls reaches back",
    ),
    query(
        "webhooks",
        ParameterKind::Flag,
        "each job also has `webhook`: how its latest webhook call stands; null if the log has none",
    ),
    query(
        "version",
        ParameterKind::Integer { min: 1, max: u32::MAX as u64, default: None },
        "only jobs that started while the endpoint had this version; those that have not started count from their submit",
    ),
    query(
        "order",
        ParameterKind::Word { words: &super::requests::ORDERS, default: Some("desc") },
        "`asc` begins with the oldest job",
    ),
    query("counts", ParameterKind::Flag, "also the numbers of jobs by state"),
];
const ANY_MS: ParameterKind = ParameterKind::Integer { min: 0, max: u64::MAX, default: None };

fn page_members(item: &str) -> [(&'static str, Value); 5] {
    [
        ("requests", array_of(&reference(item))),
        ("cursor", json!({ "type": "string", "nullable": true })),
        ("searched", count()),
        ("of", count()),
        (
            "complete",
            json!({ "type": "boolean", "description": "no later page has a job, and each job of this one could be read" }),
        ),
    ]
}

/// The schemas of the list of all endpoints' jobs.
pub(crate) fn all_requests() -> Vec<(&'static str, Value)> {
    let of_endpoint = vec![("webhook", latest_call()), ("endpointId", text())];
    let job = [job(), job_times(), job_sizes(), job_submitter(), of_endpoint].concat();
    let unanswered = json!({ "type": "integer", "description": "endpoints that are left out" });
    let page = [&page_members("JobOfEndpoint")[..], &[("unanswered", unanswered)]].concat();
    let always: Vec<_> = page.iter().map(|(name, _)| *name).collect();
    let page = [&page[..], &[("counts", counts_by_state())]].concat();
    vec![
        ("JobOfEndpoint", object(&job, &["id", "status", "createdAt", "owner", "endpointId"])),
        ("AllRequestPage", object(&page, &always)),
    ]
}

/// The schema of the state of a job's latest webhook call.
fn latest_call() -> Value {
    json!({
        "type": "string", "nullable": true, "enum": super::webhooks::STATES,
        "description": "how its latest webhook call stands; with `webhooks=true`",
    })
}

/// Every schema of the job interface.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let page = [&page_members("ListedJob")[..], &[("counts", counts_by_state())]].concat();
    let health = [
        ("jobs", counts(&["completed", "failed", "inProgress", "inQueue", "retried"])),
        ("workers", counts(&["idle", "initializing", "ready", "running", "throttled", "unhealthy"])),
        ("reasons", object(&[("impossible", text()), ("throttled", text()), ("unhealthy", text())], &[])),
        ("lb", crate::lb::numbers::schema()),
    ];
    vec![
        ("JobRequest", with_example(job_request(&text()), json!({ "input": { "prompt": "a crane" } }))),
        ("Job", with_example(object(&[job(), job_place()].concat(), &["id", "status"]), job_example())),
        (
            "ListedJob",
            object(
                &[job(), job_times(), job_sizes(), job_submitter(), vec![("webhook", latest_call())]]
                    .concat(),
                &["id", "status", "createdAt", "owner"],
            ),
        ),
        ("RequestPage", object(&page, &["requests", "cursor", "searched", "of", "complete"])),
        (
            "StreamChunk",
            with_example(
                object(&[("output", json!({})), ("metrics", json!({ "type": "object" }))], &["output"]),
                json!({ "output": "a word", "metrics": { "tokens": 1 } }),
            ),
        ),
        (
            "StreamPage",
            object(
                &[("status", text()), ("stream", array_of(&reference("StreamChunk")))],
                &["status", "stream"],
            ),
        ),
        ("StreamAnswer", json!({ "oneOf": [array_of(&reference("StreamChunk")), reference("StreamPage")] })),
        (
            "PurgeResult",
            with_example(
                object(&[("removed", count()), ("status", text())], &["removed", "status"]),
                json!({ "removed": 3, "status": "completed" }),
            ),
        ),
        ("Health", object(&health, &["jobs", "workers"])),
    ]
}

/// The sizes of a listed job's payloads.
fn job_sizes() -> Vec<(&'static str, Value)> {
    let output = json!({
        "type": "integer", "nullable": true, "description": "of the output, or of the last progress value, in bytes; null without one",
    });
    vec![("inputBytes", count()), ("outputBytes", output)]
}

/// The owner and key that submitted a job.
fn job_submitter() -> Vec<(&'static str, Value)> {
    let owner = json!({ "type": "string", "description": "the owner of the key that submitted it" });
    let key = json!({
        "type": "string", "nullable": true,
        "description": "the id of that key; null for a job that an older version took in",
    });
    vec![("owner", owner), ("key", key)]
}

fn job_example() -> Value {
    json!({
        "id": "0190163d-8694-739b-aea5-966c26f8ad90", "status": "COMPLETED", "output": { "images": 1 },
        "delayTime": 12, "executionTime": 840, "workerId": "w-3f6c",
    })
}

fn job_request(text: &Value) -> Value {
    let span = |min: u64, max: u64, default: u64| json!({ "type": "integer", "minimum": min, "maximum": max, "default": default });
    let execution = span(EXECUTION_TIMEOUT_MS_MIN, EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_DEFAULT);
    let policy = [
        ("executionTimeout", execution),
        ("lowPriority", json!({ "type": "boolean", "default": false })),
        ("ttl", span(TTL_MS_MIN, TTL_MS_MAX, TTL_MS_DEFAULT)),
    ];
    let storage = ["accessId", "accessSecret", "bucketName", "endpointUrl"].map(|name| (name, text.clone()));
    object(
        &[
            ("input", json!({ "type": "object" })),
            ("webhook", json!({ "type": "string", "format": "uri" })),
            ("policy", object(&policy, &[])),
            ("s3Config", object(&storage, &[])),
        ],
        &["input"],
    )
}

fn job() -> Vec<(&'static str, Value)> {
    let (text, count) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    vec![
        ("id", job_id()),
        ("status", states()),
        ("output", json!({})),
        ("error", text.clone()),
        ("delayTime", count.clone()),
        ("executionTime", count.clone()),
        ("workerId", text),
        ("retries", count),
    ]
}

/// The position, which is shown on request.
fn job_place() -> Vec<(&'static str, Value)> {
    vec![("position", json!({ "type": "integer", "minimum": 1 }))]
}

fn job_times() -> Vec<(&'static str, Value)> {
    let later = || {
        let mut time = time();
        time["nullable"] = json!(true);
        time
    };
    vec![("createdAt", time()), ("startedAt", later()), ("completedAt", later())]
}

/// The schema of a job's id.
pub(crate) fn job_id() -> Value {
    let pattern = "^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    json!({ "type": "string", "pattern": pattern })
}

/// The states of a job.
pub(super) fn states() -> Value {
    let mut names: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    names.sort_unstable();
    json!({ "type": "string", "enum": names })
}

/// The schema of the number of jobs in each state.
fn counts_by_state() -> Value {
    counts(&JobState::ALL.map(JobState::as_str))
}

fn counts(names: &[&str]) -> Value {
    let numbers: Vec<_> = names.iter().map(|name| (*name, count())).collect();
    object(&numbers, names)
}
