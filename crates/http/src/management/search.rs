//! `/v1/search`: endpoints, jobs, workers and keys by their names and ids.

mod workers;

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::{EndpointHandle, JobConditions, JobFilter, JobPage};
use longshore_history::LimitedOperation;
use longshore_model::{JobId, Permission};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::JsonResult;
use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::gate::rate_limits::LimitExceeded;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, text};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

/// Most results of a kind.
const HITS_MAX: usize = 20;
/// A shorter text is the beginning or the end of too many ids.
const ID_CHARS_MIN: usize = 4;
/// Workers have shorter ids.
const WORKER_CHARS_MIN: usize = 3;
const TEXT_CHARS_MAX: usize = 200;
/// How long an endpoint may take to look for jobs. One that takes longer is left out.
const PATIENCE: Duration = Duration::from_secs(1);
/// Endpoints that are asked concurrently.
const CONCURRENT: usize = 16;

const PARAMETERS: &[Parameter] =
    &[query("q", ParameterKind::Text, "a part of a name, or the beginning or the end of an id")];

/// The operation that searches.
pub(super) fn group() -> Group {
    let found = |extra: &[(&'static str, Value)]| {
        let members = [&[("id", text()), ("name", text())], extra].concat();
        array_of(&object(&members, &["id", "name"]))
    };
    let slug = json!({ "type": "string", "nullable": true });
    let job = object(
        &[("id", text()), ("endpoint", text()), ("name", text()), ("status", text())],
        &["id", "endpoint", "name", "status"],
    );
    let members = [
        ("endpoints", found(&[("slug", slug.clone())])),
        ("jobs", array_of(&job)),
        ("workers", found(&[("endpoint", text()), ("slug", slug)])),
        ("keys", found(&[])),
        ("searched", count()),
        ("of", count()),
        ("unanswered", count()),
    ];
    let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let operations = vec![
        Operation::get("Search", "/v1/search", search)
            .summary("finds endpoints, jobs, workers and keys")
            .about("At most 20 of a kind, of what the key may read. Workers are found by a part of their id, from 3 \
                    characters on. Jobs are found by the beginning or the end of their id, from 4 characters on, among \
                    the newest 10 000 of each endpoint, and by the whole id among all: `searched` of `of` jobs were compared. `unanswered` endpoints did \
                    not answer within 1 s: their jobs are missing. A search of jobs counts as one `/requests` of each endpoint.")
            .gives("SearchResult")
            .with(PARAMETERS),
    ];
    let about = "Finding things by name or id.";
    Group { name: "Search", about, operations, schemas: vec![("SearchResult", object(&members, &names))] }
}

async fn search(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let key = auth::authorize_any(&state, &headers)?;
    let query = Query::of(&uri)?;
    let text = query.get("q").unwrap_or_default().trim().to_lowercase();
    if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        let text = format!("`q` must have 1 to {TEXT_CHARS_MAX} characters");
        return Err(ApiError::bad_request("bad_parameter", text));
    }
    let has = |value: &str| value.to_lowercase().contains(&text);
    let now = auth::now_for(&key, &state);
    let all = state.engine().endpoints();
    let may_read =
        |endpoint: &&EndpointHandle| key.permits(Permission::ReadCatalog, Some(&endpoint.id()), now);
    let readable: Vec<EndpointHandle> = all.iter().filter(may_read).cloned().collect();
    let named = readable.iter().filter(|endpoint| {
        let record = endpoint.record();
        has(&record.name) || has(record.id.as_str()) || record.slug.as_deref().is_some_and(has)
    });
    let endpoints: Vec<_> = named.take(HITS_MAX).map(endpoint_view).collect();
    let Jobs { hits, searched, of, unanswered } = jobs(&state, &key, &all, &text).await?;
    Ok(json!({
        "endpoints": endpoints,
        "jobs": hits,
        "workers": if text.len() < WORKER_CHARS_MIN { Vec::new() } else { workers::found(readable, &text).await },
        "keys": keys(&state, &key, has),
        "searched": searched,
        "of": of,
        "unanswered": unanswered,
    })
    .into())
}

fn endpoint_view(endpoint: &EndpointHandle) -> Value {
    let record = endpoint.record();
    json!({ "id": record.id, "name": record.name, "slug": record.slug })
}

/// The keys with this name or id, for those that may read the list of keys.
fn keys(state: &HttpState, key: &Caller, has: impl Fn(&str) -> bool) -> Vec<Value> {
    if !auth::reads_catalog(state, key) {
        return Vec::new();
    }
    let all = state.engine().keys().list();
    let found = all.iter().filter(|one| one.id != auth::OPERATOR && (has(&one.name) || has(&one.id)));
    found.take(HITS_MAX).map(|one| json!({ "id": one.id, "name": one.name })).collect()
}

struct Jobs {
    hits: Vec<Value>,
    searched: u64,
    of: u64,
    /// The number of endpoints that did not answer in time.
    unanswered: u64,
}

/// The jobs of all endpoints whose jobs the key may read.
async fn jobs(
    state: &HttpState,
    key: &Caller,
    all: &[EndpointHandle],
    text: &str,
) -> Result<Jobs, LimitExceeded> {
    let mut found = Jobs { hits: Vec::new(), searched: 0, of: 0, unanswered: 0 };
    if text.len() < ID_CHARS_MIN || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Ok(found);
    }
    let now = auth::now_for(key, state);
    let may_read = |endpoint: &&EndpointHandle| key.permits(Permission::ReadJobs, Some(&endpoint.id()), now);
    let readable: Vec<EndpointHandle> = all.iter().filter(may_read).cloned().collect();
    let _permits = key.admit_all(state, &readable, LimitedOperation::Requests)?;
    let conditions = JobConditions { id_part: Some(text.to_owned()), ..JobConditions::default() };
    let filter = JobFilter { conditions, limit: HITS_MAX, before: None };
    let whole: Option<JobId> = text.parse().ok();
    let asked = iter(readable).map(|endpoint| {
        let filter = filter.clone();
        async move {
            let page = timeout(PATIENCE, page(&endpoint, filter, whole)).await.ok()??;
            Some((endpoint.record(), page))
        }
    });
    let pages: Vec<_> = asked.buffered(CONCURRENT).collect().await;
    found.unanswered = pages.iter().filter(|page| page.is_none()).count() as u64;
    for (record, JobPage { jobs, searched, of, .. }) in pages.into_iter().flatten() {
        found.searched += searched;
        found.of += of;
        // The name of an endpoint is one of its settings: a key that may not read them gets the id.
        let is_named = key.permits(Permission::ReadCatalog, Some(&record.id), now);
        let name = if is_named { record.name.as_str() } else { record.id.as_str() };
        found.hits.extend(jobs.iter().map(
            |job| json!({ "id": job.row.id, "endpoint": record.id, "name": name, "status": job.row.state }),
        ));
    }
    found.hits.truncate(HITS_MAX);
    Ok(found)
}

/// The jobs of an endpoint that match, and the one with the `whole` id, which may be older than those that are compared.
async fn page(endpoint: &EndpointHandle, filter: JobFilter, whole: Option<JobId>) -> Option<JobPage> {
    let mut page = endpoint.jobs().list(filter).await.ok()?;
    if let Some(id) = whole.filter(|_| page.jobs.is_empty()) {
        page.jobs.extend(endpoint.jobs().summary(id).await);
    }
    Some(page)
}
