//! `/v1/requests`: the jobs of all endpoints, newest first.

use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::iter;
use longshore_engine::{DeliveryState, EndpointError, EndpointHandle, JobFilter, JobSnapshot};
use longshore_history::LimitedOperation;
use longshore_model::{EndpointId, JobId, JobState, Permission};
use tokio::time::timeout;

use crate::HttpState;
use crate::gate::auth;
use crate::jobs::openapi;
use crate::jobs::requests::{calls, job_filter, write_call, write_counts, write_members};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::query::Query;

/// Jobs that one query of an endpoint reads. Most of the newest jobs are of a few endpoints.
const SLICE: usize = 20;
/// How long an endpoint may take to list jobs. One that takes longer is left out.
const PATIENCE: Duration = Duration::from_secs(1);
/// Endpoints that are asked concurrently.
const CONCURRENT: usize = 16;

/// The operation that lists.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListAllRequests", "/v1/requests", list)
            .summary("the jobs of all endpoints, newest first")
            .about("Of the endpoints whose jobs the key may read; each job has the `endpointId`. The parameters are those of \
                    an endpoint's list, but for `q`, `error`, `version`, `webhook`, `order` and `input.…`, which get 400: they are for \
                    the jobs of one endpoint. With `counts=true`, `counts` has the jobs of all these endpoints by state. An endpoint \
                    whose queue does not answer within a second is left out, and counted in `unanswered`. With `webhooks=true`, jobs of an endpoint whose log of calls cannot be \
                    read within a second have no `webhook`. A call counts as one `/requests` of each endpoint.")
            .gives("AllRequestPage")
            .with(openapi::CONDITIONS),
    ];
    let about = "The jobs of all endpoints in one list.";
    Group { name: "Requests", about, operations, schemas: openapi::all_requests() }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = auth::authorize_any(&state, &headers)?;
    let query = Query::of(&uri)?;
    refuse_conditions_of_one(&query)?;
    let filter = job_filter(&query)?;
    let now = auth::now_for(&key, &state);
    let mut endpoints = state.engine().endpoints();
    endpoints.retain(|endpoint| key.permits(Permission::ReadJobs, Some(&endpoint.id()), now));
    let _permits = key.admit_all(&state, &endpoints, LimitedOperation::Requests)?;
    let counted = if query.flag("counts")? { Some(counts_of(&endpoints).await) } else { None };
    let mut page = merge(endpoints, &filter).await;
    page.unanswered = page.unanswered.max(counted.as_ref().map_or(0, |(_, unanswered)| *unanswered));
    let calls = if query.flag("webhooks")? { calls_of(&page.jobs).await } else { HashMap::new() };

    let mut body = JsonBody::new();
    body.text("{\"requests\":[");
    for (at, (endpoint, job)) in page.jobs.into_iter().enumerate() {
        body.text(if at == 0 { "{" } else { ",{" });
        let call = calls.get(&endpoint.id()).map(|calls| calls.get(&job.row.id).copied());
        write_members(job, state.engine(), &mut body);
        if let Some(call) = call {
            write_call(call, &mut body);
        }
        body.text(",\"endpointId\":").string(endpoint.id().as_str()).text("}");
    }
    body.text("],\"cursor\":");
    match page.cursor {
        Some(cursor) => body.string(&cursor.to_string()),
        None => body.text("null"),
    };
    body.text(",\"searched\":").number(page.searched).text(",\"of\":").number(page.of);
    let is_complete = page.cursor.is_none() && page.unanswered == 0;
    body.text(",\"complete\":").text(if is_complete { "true" } else { "false" });
    body.text(",\"unanswered\":").number(page.unanswered);
    if let Some((counts, _)) = counted {
        write_counts(|state| counts.get(&state).copied().unwrap_or_default(), &mut body);
    }
    body.text("}");
    Ok(body.into_response())
}

/// Conditions that only the list of one endpoint has: it reads payloads and the log of calls, or has versions.
const OF_ONE: [&str; 5] = ["q", "error", "version", "webhook", "order"];

/// # Errors
///
/// 400 for a condition that this list would not look at, so that no job is listed that does not fulfil it.
fn refuse_conditions_of_one(query: &Query) -> Result<(), ApiError> {
    let input = query.starting_with("input.").next().map(|_| "input.…");
    let Some(name) = OF_ONE.into_iter().find(|name| query.get(name).is_some()).or(input) else {
        return Ok(());
    };
    let text = format!("`{name}` is for the jobs of one endpoint: ask `/v2/{{endpoint}}/requests`");
    Err(ApiError::bad_request("bad_parameter", text))
}

/// The jobs of these endpoints by state, and the number of endpoints that did not answer in time. A deleted one has none.
async fn counts_of(endpoints: &[EndpointHandle]) -> (HashMap<JobState, u64>, u64) {
    let asked = iter(endpoints.to_vec())
        .map(|endpoint| async move { timeout(PATIENCE, endpoint.jobs().health()).await });
    let (mut counts, mut unanswered) = (HashMap::new(), 0);
    let mut asked = asked.buffer_unordered(CONCURRENT);
    while let Some(answer) = asked.next().await {
        match answer {
            Ok(Ok(health)) => {
                for state in JobState::ALL {
                    *counts.entry(state).or_default() += health.states.of(state);
                }
            }
            Ok(Err(EndpointError::Deleted)) => {}
            Ok(Err(_)) | Err(_) => unanswered += 1,
        }
    }
    (counts, unanswered)
}

/// The states of the webhook calls of each endpoint in a page, whose log of calls can be read in time.
async fn calls_of(
    jobs: &[(EndpointHandle, JobSnapshot)],
) -> HashMap<EndpointId, HashMap<JobId, DeliveryState>> {
    let mut endpoints = BTreeMap::new();
    for (endpoint, job) in jobs {
        let new = || (endpoint.clone(), endpoint.record().webhook.is_some());
        let (_, may_have_calls) = endpoints.entry(endpoint.id()).or_insert_with(new);
        *may_have_calls |= job.row.webhook;
    }
    let read = iter(endpoints).map(|(id, (endpoint, may_have_calls))| async move {
        if !may_have_calls {
            return Some((id, HashMap::new()));
        }
        Some((id, timeout(PATIENCE, calls(&endpoint)).await.ok()?.ok()?))
    });
    read.buffer_unordered(CONCURRENT).filter_map(ready).collect().await
}

/// One page of the jobs of several endpoints.
struct Page {
    /// The jobs with their endpoints, newest first.
    jobs: Vec<(EndpointHandle, JobSnapshot)>,
    /// Where the next page begins; `None` at the end.
    cursor: Option<JobId>,
    /// The number of jobs that were compared with the conditions.
    searched: u64,
    /// The number of jobs of all endpoints.
    of: u64,
    /// The number of endpoints that did not answer in time.
    unanswered: u64,
}

/// The jobs of one endpoint, from the cursor on.
struct Source {
    endpoint: EndpointHandle,
    filter: JobFilter,
    /// What was read and is not yet in the page, newest first.
    slice: VecDeque<JobSnapshot>,
    has_more: bool,
    searched: u64,
    of: u64,
}

impl Source {
    fn new(endpoint: EndpointHandle, filter: &JobFilter) -> Self {
        let filter = JobFilter { limit: filter.limit.min(SLICE), ..filter.clone() };
        Self { endpoint, filter, slice: VecDeque::new(), has_more: true, searched: 0, of: 0 }
    }

    /// Reads one slice if none is left. Answers the id of its first job; of the last job that was compared, if none of
    /// many met the conditions.
    async fn fill(&mut self) -> Result<Option<JobId>, EndpointError> {
        if self.slice.is_empty() && self.has_more {
            let page = self.endpoint.jobs().list(self.filter.clone()).await?;
            self.filter.before = page.cursor;
            self.has_more = page.cursor.is_some();
            self.searched += page.searched;
            self.of = page.of;
            self.slice.extend(page.jobs);
        }
        Ok(self.slice.front().map(|job| job.row.id).or(self.filter.before.filter(|_| self.has_more)))
    }

    /// As [`fill`](Self::fill); `None` also if the endpoint was deleted or takes too long. It is left out then.
    async fn head(&mut self, unanswered: &mut u64) -> Option<JobId> {
        match timeout(PATIENCE, self.fill()).await {
            Ok(Ok(head)) => head,
            Ok(Err(EndpointError::Deleted)) => None,
            Ok(Err(_)) | Err(_) => {
                *unanswered += 1;
                None
            }
        }
    }
}

/// Merges the lists of the endpoints. The ids of jobs are in the order of their creation, over all endpoints.
async fn merge(endpoints: Vec<EndpointHandle>, filter: &JobFilter) -> Page {
    let mut page = Page { jobs: Vec::new(), cursor: None, searched: 0, of: 0, unanswered: 0 };
    let asked = iter(endpoints).map(|endpoint| async move {
        let (mut source, mut unanswered) = (Source::new(endpoint, filter), 0);
        let head = source.head(&mut unanswered).await;
        (source, head, unanswered)
    });
    let (mut sources, mut heads) = (Vec::new(), BinaryHeap::new());
    let mut asked = asked.buffer_unordered(CONCURRENT);
    while let Some((source, head, unanswered)) = asked.next().await {
        heads.extend(head.map(|head| (head, sources.len())));
        sources.push(source);
        page.unanswered += unanswered;
    }
    while page.jobs.len() < filter.limit {
        let Some((id, at)) = heads.pop() else { break };
        page.cursor = Some(id);
        let source = &mut sources[at];
        let Some(job) = source.slice.pop_front() else {
            // The next jobs of this endpoint are older, and not yet known. The next page goes on there.
            heads.push((id, at));
            break;
        };
        page.jobs.push((source.endpoint.clone(), job));
        let head = source.head(&mut page.unanswered).await;
        heads.extend(head.map(|head| (head, at)));
    }
    page.searched = sources.iter().map(|source| source.searched).sum();
    page.of = sources.iter().map(|source| source.of).sum();
    page.cursor = page.cursor.filter(|_| !heads.is_empty());
    page
}
