//! `webhooks`: the state of an endpoint's webhook calls, and their redelivery.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{
    Delivery, DeliveryAttempt, DeliveryFilter, DeliveryState, EndpointHandle, PausedReceiver,
    parse_webhook_id,
};
use longshore_model::limits::{REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX};
use longshore_model::{JobState, Millis, WebhookEvent};
use serde_json::{Value, json};

use super::openapi::limit;
use crate::HttpState;
use crate::gate::call::Call;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, or_null, reference, text, time};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};

pub(super) const STATES: &[&str] = &["DELIVERED", "PENDING", "FAILED"];

/// The parameters of `GET /webhooks`.
pub(crate) const LIST: &[Parameter] = &[
    query("job", ParameterKind::Text, "only webhooks of this job"),
    query("state", ParameterKind::Word { words: STATES, default: None }, "only webhooks that stand so"),
    SINCE,
    limit("how many webhooks at most"),
    query("cursor", ParameterKind::Text, "the `cursor` of the page before"),
];
/// The parameters of `POST /webhooks/redeliver`, of one endpoint and of all.
pub(crate) const REDELIVER: &[Parameter] = &[SINCE];
const SINCE: Parameter = query("since", ParameterKind::Time, "only webhooks that were tried then or later");

/// Which calls of a list a page has, the one with the latest attempt first.
pub(crate) struct PageOfCalls {
    limit: usize,
    /// The begin of the latest attempt and the id of the call before the page.
    before: Option<(Millis, String)>,
}

/// `GET /webhooks?job=&state=&since=&limit=&cursor=`: latest attempt first.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let query = call.query()?;
    let page = PageOfCalls::of(&query)?;
    let mut found = call.endpoint.jobs().deliveries(delivery_filter(&query)?).await?;
    let cursor = page.cut(&mut found, |delivery| delivery);
    let webhooks: Vec<Value> = found.iter().map(view).collect();
    let paused: Vec<Value> =
        paused_receivers(&call.state, &call.endpoint).await?.iter().map(receiver).collect();
    let page = json!({ "webhooks": webhooks, "cursor": cursor, "pausedReceivers": paused });
    Ok(axum::Json(page).into_response())
}

/// The paused receivers of the endpoint's calls. Those of other endpoints are not for its keys.
async fn paused_receivers(
    state: &HttpState,
    endpoint: &EndpointHandle,
) -> Result<Vec<PausedReceiver>, ApiError> {
    let mut paused = state.engine().paused_receivers();
    if !paused.is_empty() {
        let calls = endpoint.jobs().deliveries(DeliveryFilter::default()).await?;
        paused.retain(|one| calls.iter().any(|delivery| one.is_at(&delivery.receiver)));
    }
    Ok(paused)
}

/// A receiver with an open circuit breaker as clients read it.
pub(crate) fn receiver(paused: &PausedReceiver) -> Value {
    json!({
        "receiver": paused.receiver,
        "since": rfc3339(paused.since),
        "until": rfc3339(paused.until),
    })
}

/// `POST /webhooks/{webhook}/redeliver`.
pub(super) async fn redeliver(call: Call) -> Result<Response, ApiError> {
    let id = call.path_part_before_last();
    let (job, end) = parse_webhook_id(id).ok_or_else(ApiError::no_such_webhook)?;
    call.endpoint.jobs().redeliver(id).await?;
    let event = event_of(end.state);
    Ok(axum::Json(json!({ "id": id, "job": job, "event": event, "state": "PENDING" })).into_response())
}

/// `POST /webhooks/redeliver?since=`: redelivers all calls that have failed since then.
pub(super) async fn redeliver_failed(call: Call) -> Result<Response, ApiError> {
    let since = since(&call.query()?)?;
    let (redelivered, gone) = call.endpoint.jobs().redeliver_failed(since).await?;
    Ok(axum::Json(json!({ "redelivered": redelivered, "gone": gone })).into_response())
}

/// The filter of a list's query.
pub(crate) fn delivery_filter(query: &Query) -> Result<DeliveryFilter, ApiError> {
    let job = query.get("job").filter(|text| !text.is_empty()).map(|text| {
        text.parse().map_err(|_| ApiError::bad_request("bad_parameter", "`job` must be the id of a job"))
    });
    Ok(DeliveryFilter { job: job.transpose()?, state: delivery_state(query, "state")?, since: since(query)? })
}

/// The state of a webhook call that a parameter names.
pub(super) fn delivery_state(query: &Query, name: &str) -> Result<Option<DeliveryState>, ApiError> {
    let state = query.get(name).filter(|text| !text.is_empty()).map(|text| {
        let state = DeliveryState::ALL.into_iter().find(|state| state.as_str() == text);
        state.ok_or_else(|| {
            let text = format!("`{name}` must be one of {}", STATES.join(", "));
            ApiError::bad_request("bad_parameter", text)
        })
    });
    state.transpose()
}

/// The time of a query, from which on attempts count.
pub(crate) fn since(query: &Query) -> Result<Option<Millis>, ApiError> {
    let since = query.get("since").filter(|text| !text.is_empty()).map(|text| {
        parse_rfc3339(text).ok_or_else(|| {
            let text = "`since` must be a time as in RFC 3339, like 2026-01-31T12:00:00Z";
            ApiError::bad_request("bad_parameter", text)
        })
    });
    since.transpose()
}

impl PageOfCalls {
    /// The page of a query: `limit` and `cursor`.
    pub(crate) fn of(query: &Query) -> Result<Self, ApiError> {
        let limit = query.integer("limit", 1, REQUESTS_LIMIT_MAX as u64)?;
        let limit = limit.map_or(REQUESTS_LIMIT_DEFAULT, |limit| limit as usize);
        let before = query.get("cursor").filter(|text| !text.is_empty()).map(parse_cursor).transpose()?;
        Ok(Self { limit, before })
    }

    /// Leaves the calls of the page in a sorted list. Returns the cursor of the next page; `None` on the last one.
    pub(crate) fn cut<T>(&self, found: &mut Vec<T>, delivery_of: impl Fn(&T) -> &Delivery) -> Option<String> {
        if let Some((at, id)) = &self.before {
            found.retain(|call| (delivery_of(call).at(), &delivery_of(call).id) < (*at, id));
        }
        let is_more = found.len() > self.limit;
        found.truncate(self.limit);
        let last = found.last().filter(|_| is_more).map(delivery_of)?;
        Some(format!("{}.{}", last.at().0, last.id))
    }
}

/// The place in a list that a cursor names: `MS.WEBHOOK-ID`.
fn parse_cursor(text: &str) -> Result<(Millis, String), ApiError> {
    let parts = text.split_once('.').and_then(|(at, id)| {
        parse_webhook_id(id)?;
        Some((Millis(at.parse().ok()?), id.to_owned()))
    });
    parts.ok_or_else(|| {
        ApiError::bad_request("bad_parameter", "`cursor` must be the `cursor` of an earlier answer")
    })
}

fn event_of(state: JobState) -> Option<&'static str> {
    WebhookEvent::of(state).map(WebhookEvent::as_str)
}

/// A delivery as clients read it.
pub(crate) fn view(delivery: &Delivery) -> Value {
    let attempts: Vec<Value> = delivery.attempts.iter().map(attempt).collect();
    json!({
        "id": delivery.id,
        "job": delivery.job,
        "event": event_of(delivery.end.state),
        "state": delivery.state.as_str(),
        "receiver": delivery.receiver,
        "attempts": attempts,
        "nextAttemptAt": delivery.next_at.map(rfc3339),
    })
}

fn attempt(attempt: &DeliveryAttempt) -> Value {
    json!({
        "attempt": attempt.attempt,
        "at": rfc3339(attempt.at),
        "latencyMs": attempt.latency_ms,
        "status": attempt.status,
        "answer": attempt.answer,
        "error": attempt.error,
    })
}

/// The schemas of the webhook operations.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let attempt = [
        ("attempt", count()),
        ("at", time()),
        ("latencyMs", count()),
        ("status", or_null(count())),
        ("answer", or_null(text())),
        ("error", or_null(text())),
    ];
    let events: Vec<_> = WebhookEvent::ENDS.iter().map(|event| event.as_str()).collect();
    let event = json!({ "type": "string", "enum": events });
    let state = json!({ "type": "string", "enum": STATES });
    let brief = [("id", text()), ("job", super::openapi::job_id()), ("event", event), ("state", state)];
    let tries = [
        ("receiver", text()),
        ("attempts", array_of(&reference("WebhookAttempt"))),
        ("nextAttemptAt", or_null(time())),
    ];
    let whole = [&brief[..], &tries[..]];
    let paused = object(
        &[("receiver", text()), ("since", time()), ("until", time())],
        &["receiver", "since", "until"],
    );
    let page = [
        ("webhooks", array_of(&reference("Webhook"))),
        ("cursor", or_null(text())),
        ("pausedReceivers", array_of(&reference("PausedReceiver"))),
    ];
    vec![
        (
            "Webhook",
            object(
                &whole.concat(),
                &["id", "job", "event", "state", "receiver", "attempts", "nextAttemptAt"],
            ),
        ),
        ("WebhookAttempt", object(&attempt, &["attempt", "at", "latencyMs"])),
        ("WebhookPage", object(&page, &["webhooks", "cursor", "pausedReceivers"])),
        ("PausedReceiver", paused),
        ("RedeliveredWebhook", object(&brief, &["id", "job", "event", "state"])),
        (
            "RedeliveredWebhooks",
            object(&[("redelivered", count()), ("gone", count())], &["redelivered", "gone"]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use longshore_engine::webhook_id;
    use longshore_model::{Attempt, JobEnd, JobId};

    use super::*;

    fn call(at: u64, number: u128) -> Delivery {
        let (job, end) =
            (JobId::mint(Millis(1), number, false), JobEnd { state: JobState::Failed, attempt: Attempt(1) });
        let attempt = DeliveryAttempt {
            attempt: 1,
            at: Millis(at),
            latency_ms: 0,
            status: Some(200),
            answer: None,
            error: None,
        };
        let (id, state) = (webhook_id(job, end), DeliveryState::Delivered);
        let receiver = String::new();
        Delivery { id, job, end, receiver, state, next_at: None, attempts: vec![attempt] }
    }

    fn page(limit: usize, cursor: Option<&str>) -> PageOfCalls {
        PageOfCalls { limit, before: cursor.map(|text| parse_cursor(text).unwrap()) }
    }

    #[test]
    fn pages_have_each_call_once_also_if_several_have_the_same_time() {
        let mut all: Vec<_> =
            [(9, 1), (7, 4), (7, 3), (7, 2), (7, 1), (5, 1)].map(|(at, n)| call(at, n)).into();
        all.sort_by(|one, other| (other.at(), &other.id).cmp(&(one.at(), &one.id)));
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let mut found = all.clone();
            cursor = page(2, cursor.as_deref()).cut(&mut found, |call| call);
            seen.extend(found);
            pages += 1;
            // What comes meanwhile is before the next page.
            all.insert(0, call(10 + pages, 1));
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((pages, &seen[..]), (3, &all[3..]));
    }

    #[test]
    fn a_cursor_that_no_page_has_is_refused() {
        let mut all = vec![call(2, 1), call(1, 1)];
        let cursor = page(1, None).cut(&mut all, |call| call).unwrap();
        assert_eq!(parse_cursor(&cursor).ok(), Some((Millis(2), all[0].id.clone())));
        for wrong in ["x", ".", "5.", "5.x", &cursor[1..], &format!("-{cursor}"), &cursor[..cursor.len() - 1]]
        {
            assert!(parse_cursor(wrong).is_err(), "{wrong}");
        }
    }
}
