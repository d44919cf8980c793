//! `/v1/webhooks`: the webhook calls of all endpoints, their redelivery, and the receivers with an open circuit breaker.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::{Delivery, DeliveryFilter, EndpointHandle};
use longshore_history::LimitedOperation;
use longshore_model::{EndpointId, Millis, Permission};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::JsonResult;
use crate::HttpState;
use crate::events::hub::Draft;
use crate::events::topic::Topic;
use crate::gate::auth;
use crate::jobs::webhooks::{LIST, PageOfCalls, REDELIVER, delivery_filter, receiver, since, view};
use crate::openapi::schema::{array_of, count, object, or_null, reference, text};
use crate::openapi::{Group, Operation};
use crate::wire::query::Query;

/// How long the log of an endpoint may take. One that takes longer is left out, and counted in `unread`.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest number of calls of an endpoint that are told at a time.
const TOLD_MAX: usize = 100;
/// How much later than its attempt a line may be written, in ms.
const SLACK_MS: u64 = 1_000;
/// The logs that may take too long in one look for events.
const FAILURES_MAX: u32 = 2;
/// Logs that are read concurrently.
const CONCURRENT: usize = 8;

/// The operation on the webhook calls of all endpoints.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListAllWebhooks", "/v1/webhooks", list)
            .summary("what became of webhooks, the latest first")
            .about("Of the endpoints whose jobs the key may read, page by page. `of` is the number of calls that match, on all pages. \
                    `unread` is the number of endpoints whose log could not be read in time: their calls are missing. `pausedReceivers` did not respond and are \
                    not called until a time; only a key that reads all endpoints sees them. A call counts as one \
                    `/webhooks` of each endpoint.")
            .gives("AllWebhooks")
            .with(LIST),
        Operation::post("RedeliverAllWebhooks", "/v1/webhooks/redeliver", redeliver_failed)
            .summary("delivers all webhooks again that failed")
            .about("Of the endpoints to which the key may submit jobs. `gone` counts the calls whose jobs are no longer there, \
                    `unread` the endpoints whose calls could not be read or delivered again: ask again for those. Counts as one \
                    `/webhooks` of each endpoint.")
            .gives("AllRedeliveredWebhooks")
            .with(REDELIVER),
    ];
    let own = object(&[("endpoint", text())], &["endpoint"]);
    let webhook = json!({ "allOf": [reference("Webhook"), own] });
    let all = object(
        &[
            ("webhooks", array_of(&webhook)),
            ("cursor", or_null(text())),
            ("of", count()),
            ("unread", count()),
            ("pausedReceivers", array_of(&reference("PausedReceiver"))),
        ],
        &["webhooks", "cursor", "of", "unread", "pausedReceivers"],
    );
    let about = "The webhook calls of all endpoints.";
    let redelivered = [("redelivered", count()), ("gone", count()), ("unread", count())];
    let redelivered = object(&redelivered, &["redelivered", "gone", "unread"]);
    let schemas = vec![("AllWebhooks", all), ("AllRedeliveredWebhooks", redelivered)];
    Group { name: "Webhooks", about, operations, schemas }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let key = auth::authorize_any(&state, &headers)?;
    let query = Query::of(&uri)?;
    let page = PageOfCalls::of(&query)?;
    let filter = delivery_filter(&query)?;
    let now = auth::now_for(&key, &state);
    let mut readable = state.engine().endpoints();
    readable.retain(|endpoint| key.permits(Permission::ReadJobs, Some(&endpoint.id()), now));
    let _permits = key.admit_all(&state, &readable, LimitedOperation::Webhooks)?;
    let logs: Vec<_> =
        iter(readable).map(|endpoint| read(endpoint, filter)).buffered(CONCURRENT).collect().await;
    let unread = logs.iter().filter(|log| log.is_none()).count();
    let mut all: Vec<(EndpointId, Delivery)> = logs.into_iter().flatten().flatten().collect();
    all.sort_by(|(_, a), (_, b)| Reverse((a.at(), &a.id)).cmp(&Reverse((b.at(), &b.id))));
    let of = all.len();
    let cursor = page.cut(&mut all, |(_, delivery)| delivery);
    let webhooks: Vec<Value> =
        all.iter().map(|(endpoint, delivery)| of_endpoint(endpoint, delivery)).collect();
    let paused =
        if auth::reads_catalog(&state, &key) { state.engine().paused_receivers() } else { Vec::new() };
    let paused: Vec<Value> = paused.iter().map(receiver).collect();
    Ok(json!({ "webhooks": webhooks, "cursor": cursor, "of": of, "unread": unread, "pausedReceivers": paused }).into())
}

/// The calls in the log of an endpoint; `None` if it cannot be read in time.
async fn read(endpoint: EndpointHandle, filter: DeliveryFilter) -> Option<Vec<(EndpointId, Delivery)>> {
    let id = endpoint.id();
    let found = timeout(PATIENCE, endpoint.jobs().deliveries(filter)).await.ok()?.ok()?;
    Some(found.into_iter().map(|delivery| (id, delivery)).collect())
}

async fn redeliver_failed(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let key = auth::authorize_somewhere(&state, &headers, Permission::WriteJobs)?;
    let since = since(&Query::of(&uri)?)?;
    let now = auth::now_for(&key, &state);
    let mut endpoints = state.engine().endpoints();
    endpoints.retain(|endpoint| key.permits(Permission::WriteJobs, Some(&endpoint.id()), now));
    let _permits = key.admit_all(&state, &endpoints, LimitedOperation::Webhooks)?;
    let again = |endpoint: EndpointHandle| async move { endpoint.jobs().redeliver_failed(since).await.ok() };
    let results: Vec<_> = iter(endpoints).map(again).buffer_unordered(CONCURRENT).collect().await;
    let unread = results.iter().filter(|result| result.is_none()).count();
    let (redelivered, gone) =
        results.into_iter().flatten().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Ok(json!({ "redelivered": redelivered, "gone": gone, "unread": unread }).into())
}

/// The endpoints whose webhook calls are to be told, with the time since which.
pub(super) type Untold = HashMap<EndpointId, Millis>;

/// Adds the events of the webhook calls that were tried since `since`: of each endpoint the last 100, and the number of the others.
/// An endpoint whose log cannot be read stays in `untold`; after two of them, so do all others, which would wait as long.
pub(super) async fn changes(state: &HttpState, since: Millis, untold: &mut Untold, drafts: &mut Vec<Draft>) {
    // A line is written a moment after its attempt.
    let since = Millis(since.0.saturating_sub(SLACK_MS));
    for id in state.engine().take_webhook_changes() {
        untold.entry(id).or_insert(since);
    }
    let (mut left, mut failures) = (std::mem::take(untold).into_iter(), 0);
    for (id, since) in left.by_ref() {
        let Some(endpoint) = state.engine().endpoint(id.as_str()) else { continue };
        let Some(found) = read(endpoint, DeliveryFilter::default()).await else {
            untold.insert(id, since);
            failures += 1;
            if failures == FAILURES_MAX {
                break;
            }
            continue;
        };
        let is_new = |delivery: &Delivery| {
            delivery.attempts.last().is_some_and(|last| last.at + last.latency_ms >= since)
        };
        let calls: Vec<_> = found.iter().map(|(_, call)| call).filter(|call| is_new(call)).collect();
        let mut told: Vec<_> = calls.iter().take(TOLD_MAX).map(|call| of_endpoint(&id, call)).collect();
        if calls.len() > TOLD_MAX {
            told.push(json!({ "endpoint": id, "more": calls.len() - TOLD_MAX }));
        }
        drafts.extend(told.into_iter().map(|told| Draft {
            topic: Topic::Webhooks,
            endpoint: Some(id),
            json: told.to_string(),
        }));
    }
    untold.extend(left);
}

fn of_endpoint(endpoint: &EndpointId, delivery: &Delivery) -> Value {
    let mut webhook = view(delivery);
    webhook["endpoint"] = json!(endpoint);
    webhook
}
