//! `/v1/endpoints/{endpoint}/logs`: what all workers of an endpoint printed, by time, searched.

mod appended;
mod follow;
mod forward;
mod lines;
mod pattern;
mod search;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use longshore_engine::EndpointHandle;
use longshore_model::{Attempt, EndpointId, JobId, JobState, Millis, Permission, WorkerId};
use serde::Serialize;
use serde_json::{Value, json};

use self::follow::{Follower, WantedLines};
use self::lines::{Line, WorkerLines};
use self::pattern::Pattern;
use self::search::{Cursor, Found, JobSpan, Search};
use super::PathId;
use super::access::may_read_endpoint;
use super::workers::blocking;
use crate::HttpState;
use crate::gate::auth::OngoingAccess;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::services::files::FileService;
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};
use crate::wire::sse;

const LINES_MAX: u64 = 5_000;
const LINES_USUAL: u64 = 500;
const LEVELS: [&str; 3] = ["ERROR", "WARNING", "INFO"];
const ORDERS: [&str; 2] = ["desc", "asc"];
/// Most characters of a job's id without its prefix.
const JOB_ID_CHARS: usize = 36;

const PARAMETERS: &[Parameter] = &[
    query("q", ParameterKind::Text, "only lines with this text, in upper or lower case"),
    query(
        "regex",
        ParameterKind::Text,
        "only lines that match this regular expression; of the official SDK's lines, those whose message does",
    ),
    query("worker", ParameterKind::Text, "only lines of this worker"),
    query(
        "job",
        ParameterKind::Text,
        "only lines that name this job, by its id or a part of it, and those of its workers while they ran it",
    ),
    query(
        "level",
        ParameterKind::Word { words: &LEVELS, default: None },
        "only lines of this level or a worse one, as far as lines show theirs; `INFO` leaves out lines with the \
         words `DEBUG` and `TRACE`",
    ),
    query("since", ParameterKind::Time, "only lines that were printed at this time or later"),
    query("until", ParameterKind::Time, "only lines that were printed before this time"),
    query(
        "order",
        ParameterKind::Word { words: &ORDERS, default: Some("desc") },
        "the newest line is the first, or with `asc` the oldest one",
    ),
    query(
        "limit",
        ParameterKind::Integer { min: 1, max: LINES_MAX, default: Some(LINES_USUAL) },
        "the most lines in the response",
    ),
    query(
        "cursor",
        ParameterKind::Text,
        "only the lines that follow those of the response with this `cursor`, or the line with this `id`",
    ),
];

const ABOUT: &str = "The newest line is the first, or with `order=asc` the oldest one. Times are those of the server, to about \
    100 ms; lines that an older version stored have none. A call reads at most 64 MiB or for 1 s: if `complete` is false, \
    send its `cursor` to go on. Logs of the last ended workers are there, too; those of external workers stay on their own computers. With `Accept: text/event-stream`, \
    the event `page` has the newest lines, as the page of this operation, and each event `lines` has what was printed since, the \
    oldest line first. A line that had no end yet comes again with the same `id` and more text. After a further `page`, lines between \
    it and the earlier ones were left out: its `cursor` gets those that are still stored. The events end when the key, the session \
    or the endpoint does.";

/// The operation on all logs of an endpoint.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("SearchLogs", "/v1/endpoints/{endpoint}/logs", logs)
            .summary("what the workers of an endpoint printed, by time")
            .about(ABOUT)
            .gives("LogPage")
            .or_events()
            .with(PARAMETERS)
            .refuses(503),
    ];
    let optional = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let line = object(
        &[
            ("id", text()),
            ("at", optional(time())),
            ("worker", text()),
            ("job", optional(text())),
            ("level", optional(text())),
            ("text", text()),
        ],
        &["id", "at", "worker", "job", "level", "text"],
    );
    let page = object(
        &[
            ("lines", array_of(&line)),
            ("scannedBytes", count()),
            ("complete", json!({ "type": "boolean" })),
            ("cursor", optional(text())),
        ],
        &["lines", "scannedBytes", "complete", "cursor"],
    );
    let about = "The lines that workers print, of all workers of an endpoint.";
    Group { name: "Logs", about, operations, schemas: vec![("LogPage", page)] }
}

async fn logs(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (key, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let wanted = wanted(&Query::of(&uri)?)?;
    if sse::are_wanted(&headers) {
        if wanted.search.is_ascending {
            let text = "`order=asc` is for pages, and events begin with the newest lines: send one of `order=asc` \
                        and `Accept: text/event-stream`";
            return Err(bad(text));
        }
        if wanted.search.cursor.is_some() {
            let text = "`cursor` is for pages of older lines, and events are of new ones: send one of `cursor` \
                        and `Accept: text/event-stream`";
            return Err(bad(text));
        }
        let place = state.log_readers().take(&key.id)?;
        let access = OngoingAccess::of(&key, Permission::ReadCatalog, endpoint.id());
        return Ok(sse::answer(Follower::new(state, access, endpoint, wanted, place), Follower::next));
    }
    let mut search = wanted.search.clone();
    search.job = span_of(&endpoint, wanted.job.as_deref()).await;
    let running = endpoint.workers().fleet_status();
    let running: BTreeSet<WorkerId> = running.workers.iter().map(|worker| worker.id.clone()).collect();
    let logs = StoredLogs { files: Arc::clone(state.files()), endpoint: endpoint.id() };
    let found = blocking(move || {
        let workers = running.into_iter().chain(logs.ended()).filter(|worker| wanted.includes(worker));
        search_all(&logs, workers.collect(), &search)
    });
    Ok(Json(PageView::of(&found.await?)).into_response())
}

/// Which lines a request wants.
fn wanted(query: &Query) -> Result<WantedLines, ApiError> {
    let search = Search {
        text: query.get("q").unwrap_or_default().to_lowercase(),
        pattern: query.get("regex").filter(|text| !text.is_empty()).map(Pattern::parse).transpose()?,
        job: None,
        level: query.word("level", &LEVELS)?,
        since: moment(query, "since")?.unwrap_or(0),
        until: moment(query, "until")?.unwrap_or(u64::MAX),
        limit: query.integer("limit", 1, LINES_MAX)?.unwrap_or(LINES_USUAL) as usize,
        text_bytes_max: None,
        is_ascending: query.word("order", &ORDERS)? == Some("asc"),
        cursor: query.get("cursor").map(cursor).transpose()?,
    };
    Ok(WantedLines { worker: worker(query)?, job: job(query)?, search })
}

fn worker(query: &Query) -> Result<Option<String>, ApiError> {
    let Some(text) = query.get("worker") else { return Ok(None) };
    let id = text.parse::<WorkerId>().map_err(|_| bad("`worker` must be the id of a worker"))?;
    Ok(Some(id.as_str().to_owned()))
}

/// The id of a job, or a part of it, which lines may name.
fn job(query: &Query) -> Result<Option<String>, ApiError> {
    let Some(text) = query.get("job") else { return Ok(None) };
    let part = text.strip_prefix("sync-").unwrap_or(text);
    let is_part = (1..=JOB_ID_CHARS).contains(&part.len())
        && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_part {
        Ok(Some(text.to_owned()))
    } else {
        Err(bad("`job` must be the id of a job, or a part of it"))
    }
}

fn bad(text: &'static str) -> ApiError {
    ApiError::bad_request("bad_parameter", text)
}

/// The logs of an endpoint's workers.
trait WorkerLogs {
    /// Where the log of a worker is; `None` if there is none.
    fn log_of(&self, worker: &WorkerId) -> Option<PathBuf>;

    /// The ended workers whose logs are stored.
    fn ended(&self) -> BTreeSet<WorkerId>;
}

/// The logs of an endpoint's workers on this computer.
struct StoredLogs {
    files: Arc<dyn FileService>,
    endpoint: EndpointId,
}

impl WorkerLogs for StoredLogs {
    fn log_of(&self, worker: &WorkerId) -> Option<PathBuf> {
        self.files.worker_log(&self.endpoint, worker).map(|log| log.path)
    }

    fn ended(&self) -> BTreeSet<WorkerId> {
        self.files.ended_workers(&self.endpoint).into_iter().map(|ended| ended.worker).collect()
    }
}

/// Searches the logs of these workers.
fn search_all(logs: &impl WorkerLogs, workers: BTreeSet<WorkerId>, search: &Search) -> Found {
    let sources = workers.into_iter().filter_map(|worker| {
        let log = logs.log_of(&worker)?;
        Some(WorkerLines::open(worker.as_str().to_owned(), &log, search.read_from()))
    });
    search.run(sources.collect())
}

/// A page of lines as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageView<'a> {
    lines: Vec<LineView<'a>>,
    scanned_bytes: u64,
    complete: bool,
    cursor: Option<String>,
}

impl<'a> PageView<'a> {
    fn of(found: &'a Found) -> Self {
        Self {
            lines: found.lines.iter().map(LineView::of).collect(),
            scanned_bytes: found.scanned_bytes,
            complete: found.cursor.is_none(),
            cursor: found.cursor.as_ref().map(Cursor::to_string),
        }
    }
}

/// A line as it is sent.
#[derive(Serialize)]
struct LineView<'a> {
    id: String,
    at: Option<String>,
    worker: &'a str,
    job: Option<&'a str>,
    level: Option<&'static str>,
    text: &'a str,
}

impl<'a> LineView<'a> {
    fn of(line: &'a Line) -> Self {
        Self {
            id: line.id(),
            at: line.at.map(|at| rfc3339(Millis(at))),
            worker: &line.worker,
            job: search::job_of(&line.text),
            level: search::level_of(&line.text),
            text: &line.text,
        }
    }
}

/// The job of a search: its id, and where and when its attempts ran, as far as that is still known.
async fn span_of(endpoint: &EndpointHandle, id: Option<&str>) -> Option<JobSpan> {
    let id = id?;
    let ran = match id.parse::<JobId>() {
        Ok(job) => attempts_of(endpoint, job).await,
        Err(_) => Vec::new(),
    };
    Some(JobSpan { id: id.to_owned(), ran })
}

/// The workers of a job's attempts, and from and to when they ran it, in ms.
async fn attempts_of(endpoint: &EndpointHandle, job: JobId) -> Vec<(String, u64, u64)> {
    let Ok(job) = endpoint.jobs().summary(job).await else { return Vec::new() };
    let row = &job.row;
    // Of a job in its first attempt nothing is stored: those that follow the lines ask often.
    let has_ended = row.attempt > Attempt(1) || row.state == JobState::InQueue;
    let ended =
        if has_ended { endpoint.jobs().ended_attempts(row).await.unwrap_or_default() } else { Vec::new() };
    let ended = ended.into_iter().map(|attempt| (attempt.worker, attempt.taken_at, attempt.ended_at));
    // A time of 0 has not come.
    let end = if row.finished_at.0 > 0 { row.finished_at } else { Millis::MAX };
    let present = Some((row.worker.clone(), row.started_at, end)).filter(|(_, from, _)| from.0 > 0);
    let known = ended.chain(present).filter_map(|(worker, from, to)| Some((worker?, from.0, to.0)));
    known.map(|(worker, from, to)| (worker.as_str().to_owned(), from, to)).collect()
}

fn cursor(text: &str) -> Result<Cursor, ApiError> {
    Cursor::parse(text)
        .ok_or_else(|| bad("`cursor` must be the `cursor` of an earlier response, without changes"))
}

fn moment(query: &Query, name: &str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let time = parse_rfc3339(text).ok_or_else(|| {
        ApiError::bad_request("bad_parameter", format!("`{name}` must be a time like 2026-01-31T00:00:00Z"))
    })?;
    Ok(Some(time.0))
}
