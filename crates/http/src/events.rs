//! `/v1/events`: what changes on the server, told to its readers as server-sent events.
//!
//! ```text
//!   actors ──► JobFeed ──┐
//!   records, workers ────┼─► collector ──► ring ──► reader ──► response
//!   audit log ───────────┘   (250 ms, 2 s)   (shared bytes)
//! ```
//!
//! The collector, which is a part of the management API, renders each event once, into a [`ring`] that all readers share. A
//! reader is a position in the ring: it holds no events of its own and delays no other part. A reader that falls behind gets
//! `gap` in place of what it missed.

pub(crate) mod hub;
pub(crate) mod job_events;
mod reader;
pub(crate) mod reader_counts;
pub(crate) mod reads;
mod ring;
pub(crate) mod topic;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use longshore_model::{EndpointId, JobId};
use serde_json::{Value, json};

use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::openapi::parameter::{Parameter, ParameterKind, header, query};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::sse;

use reader::{Reader, Wanted};
use topic::Topic;

const PARAMETERS: &[Parameter] = &[
    query("topics", ParameterKind::Made(topics), "only these topics, between commas; all without it"),
    query("endpoint", ParameterKind::Text, "only the events of this endpoint"),
    query(
        "job",
        ParameterKind::Text,
        "the changes of one job, as `endpoint/job`; without `topics`, nothing else",
    ),
    header(
        "Last-Event-ID",
        ParameterKind::Integer { min: 0, max: u64::MAX, default: None },
        "the `id` of the last event that came; the events go on after it",
    ),
];

const ABOUT: &str = "Server-sent events. `hello` is the first one, always: with `resumed: true` the events after \
    `Last-Event-ID` follow, else read what you show. `jobs` has the counts of an endpoint and the jobs that changed, at most \
    every 250 ms (less often with more than 100 readers) and 100 of them; `more` is the number of the other changes. `stats` has the numbers of `/health`, \
    and the times, rates and costs of the endpoint, that changed. `worker`, `endpoint`, `attention`, `webhook` and `bulk` have the resource, or its id and `deleted`; `job` has the row of the \
    wanted job, or `unknown` if it may have changed; `audit` has an entry of the audit \
    log. After `gap`, read again what you show. A key gets `jobs`, `job`, `stats`, `webhook` and `bulk` of endpoints whose jobs it may read, `audit` if \
    it manages the server, and the rest of endpoints that it may read, also the `stats` of workers and costs. The events end when the key or the session does.";

/// The operation that streams events. The first reader calls `collect`, which fills the hub until it is not needed.
pub(crate) fn group(collect: fn(&HttpState)) -> Group {
    let answer = async move |State(state): State<HttpState>, uri: Uri, headers: HeaderMap| {
        stream(state, &uri, &headers, collect)
    };
    let operations = vec![
        Operation::get("StreamEvents", "/v1/events", answer)
            .summary("what changes, as it changes")
            .about(ABOUT)
            .gives_text(sse::EVENT_STREAM)
            .with(PARAMETERS)
            .refuses(503),
    ];
    Group { name: "Events", about: "What changes, as it changes.", operations, schemas: Vec::new() }
}

/// The schema of `topics`.
fn topics() -> Value {
    let words = Topic::ALL.map(Topic::as_str).join("|");
    json!({ "type": "string", "pattern": format!("^({words})(,({words}))*$") })
}

/// The endpoint and the job of the parameter `job`.
fn job_of(state: &HttpState, caller: &Caller, text: &str) -> Result<(EndpointId, JobId), ApiError> {
    let wrong = || {
        ApiError::bad_request(
            "bad_parameter",
            "`job` must be an endpoint and the id of a job, as `hello/019a…`",
        )
    };
    let (endpoint, job) = text.rsplit_once('/').ok_or_else(wrong)?;
    let job = job.parse().map_err(|_| wrong())?;
    Ok((auth::readable_endpoint(state, caller, endpoint)?, job))
}

fn stream(
    state: HttpState,
    uri: &Uri,
    headers: &HeaderMap,
    collect: fn(&HttpState),
) -> Result<Response, ApiError> {
    let caller = auth::authorize_any(&state, headers)?;
    let query = Query::of(uri)?;
    let endpoint = query.get("endpoint").filter(|text| !text.is_empty());
    let job = query.get("job").filter(|text| !text.is_empty());
    let job = job.map(|text| job_of(&state, &caller, text)).transpose()?;
    let topics = query.get("topics").unwrap_or_default();
    let wanted = Wanted {
        topics: if job.is_some() && topics.is_empty() { Vec::new() } else { topic::parse_list(topics)? },
        job,
        endpoint: endpoint.map(|name| auth::readable_endpoint(&state, &caller, name)).transpose()?,
    };
    let last = sse::last_event_id(headers)?;
    let place = state.events().join(&caller.id, || collect(&state))?;
    let reader = Reader::new(state, &caller, wanted, last, place);
    Ok(sse::answer(reader, Reader::next))
}
