//! `/v1/endpoints/{endpoint}/objectives`: whether an endpoint meets its objectives, and how fast it uses up what they allow.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use longshore_history::{History, MINUTE_MS, Share};
use longshore_model::{EndpointId, Millis, Objectives};
use serde_json::{Value, json};

use super::access::may_read_endpoint;
use super::workers::blocking;
use super::{JsonResult, PathId};
use crate::HttpState;
use crate::openapi::schema::{array_of, count, object, time};
use crate::openapi::{Group, Operation};
use crate::services::burns::{Shares, recent};
use crate::wire::rfc3339::rfc3339;

const DAY_MS: u64 = 86_400_000;
/// The number of minutes that are shown.
const WORST: usize = 10;

/// The times over which burn rates are shown: the name, and the length in ms.
const BURN_SPANS: [(&str, u64); 5] = [
    ("m5", 5 * MINUTE_MS),
    ("m30", 30 * MINUTE_MS),
    ("h1", 60 * MINUTE_MS),
    ("h6", 360 * MINUTE_MS),
    ("d3", 3 * DAY_MS),
];

const ABOUT: &str = "`slo` is that of the endpoint, and null without one. `now` is the share of good events in the last `windowDays`, \
    `budgetLeft` what is left of the bad ones that the target allows (below 0: the target is missed), and `burn` how fast they \
    are used up over 5 min (`m5`), 30 min, 1 h, 6 h and 3 days: at 1 they last for the window. `worst` has the minutes with the \
    most bad events. Values without an event are null. Cancelled jobs do not count; timed-out and lost ones are failures.";

/// The operation on objectives.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("GetObjectives", "/v1/endpoints/{endpoint}/objectives", get)
            .summary("whether an endpoint meets its objectives")
            .about(ABOUT)
            .gives("ObjectivesReport"),
    ];
    let about = "How fast jobs are to start, and how many are to complete.";
    Group { name: "Objectives", about, operations, schemas: schemas() }
}

fn schemas() -> Vec<(&'static str, Value)> {
    let number = || json!({ "type": "number", "nullable": true });
    let spans: Vec<_> = BURN_SPANS.iter().map(|(name, _)| (*name, number())).collect();
    let names: Vec<_> = BURN_SPANS.iter().map(|(name, _)| *name).collect();
    let members = [
        ("target", json!({ "type": "number" })),
        ("now", number()),
        ("good", count()),
        ("total", count()),
        ("budgetLeft", number()),
        ("burn", object(&spans, &names)),
    ];
    let mut state = object(&members, &["target", "now", "good", "total", "budgetLeft", "burn"]);
    state["nullable"] = json!(true);
    let worst = [
        ("from", time()),
        ("until", time()),
        ("objective", json!({ "type": "string", "enum": ["delay", "success"] })),
        ("bad", count()),
        ("total", count()),
    ];
    let report = [
        ("slo", json!({ "type": "object", "nullable": true })),
        ("from", time()),
        ("delay", state.clone()),
        ("success", state),
        ("worst", array_of(&object(&worst, &["from", "until", "objective", "bad", "total"]))),
    ];
    let report = object(&report, &["slo", "from", "delay", "success", "worst"]);
    vec![("ObjectivesReport", report)]
}

async fn get(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    let (_, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let now = state.engine().now();
    let (Some(slo), Some(history)) = (endpoint.record().slo, state.history().cloned()) else {
        let slo = endpoint.record().slo;
        return Ok(
            json!({ "slo": slo, "from": rfc3339(now), "delay": null, "success": null, "worst": [] }).into()
        );
    };
    let id = endpoint.id();
    Ok(blocking(move || report(&history, id, slo, now)).await?.into())
}

/// Reads the minutes of the window day by day, so that a month needs the memory of a day. Blocks.
fn report(history: &Arc<History>, id: EndpointId, slo: Objectives, now: Millis) -> Value {
    let window_ms = u64::from(slo.window_days) * DAY_MS;
    let from = now.0.saturating_sub(window_ms) / MINUTE_MS * MINUTE_MS;
    let (mut whole, mut worst) = (Shares::default(), Vec::new());
    let mut day = from;
    while day < now.0 {
        let end = (day / DAY_MS * DAY_MS + DAY_MS).min(now.0);
        each_minute(history, id, (day, end), |at, step_ms, record| {
            let delay = slo.delay_ms.map(|ms| record.in_time(ms)).unwrap_or_default();
            let success = record.succeeded();
            whole = Shares { delay: whole.delay.and(delay), success: whole.success.and(success) };
            // Of days whose minutes are gone, hours are known.
            if step_ms == MINUTE_MS {
                worst.push((cost(delay, slo.delay_target), "delay", at, delay));
                worst.push((cost(success, slo.success_target), "success", at, success));
            }
        });
        keep_worst(&mut worst);
        day = end;
    }
    let burns = |name: fn(&Shares) -> Share, target: f64| {
        let of = |(span, ms): &(&'static str, u64)| {
            let shares = recent(history, id, &slo, now, *ms);
            ((*span).to_owned(), json!(name(&shares).burn(target)))
        };
        BURN_SPANS.iter().map(of).collect::<serde_json::Map<_, _>>()
    };
    let delay = slo
        .delay_ms
        .map(|_| state(whole.delay, slo.delay_target, &burns(|shares| shares.delay, slo.delay_target)));
    let success =
        state(whole.success, slo.success_target, &burns(|shares| shares.success, slo.success_target));
    let worst = worst.iter().map(|(_, objective, at, share)| {
        json!({
            "from": rfc3339(Millis(*at)), "until": rfc3339(Millis(at + MINUTE_MS)), "objective": objective,
            "bad": share.bad(), "total": share.total,
        })
    });
    let worst: Vec<_> = worst.collect();
    json!({ "slo": slo, "from": rfc3339(Millis(from)), "delay": delay, "success": success, "worst": worst })
}

fn state(share: Share, target: f64, burn: &serde_json::Map<String, Value>) -> Value {
    json!({
        "target": target, "now": share.ratio(), "good": share.good, "total": share.total,
        "budgetLeft": share.burn(target).map(|used| 1.0 - used), "burn": burn,
    })
}

/// What a minute used up of the bad events that a target allows.
fn cost(share: Share, target: f64) -> f64 {
    share.bad() as f64 / (1.0 - target)
}

/// Keeps the minutes that cost most, the worst first.
fn keep_worst(minutes: &mut Vec<(f64, &'static str, u64, Share)>) {
    minutes.retain(|(cost, ..)| *cost > 0.0);
    minutes.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.2.cmp(&one.2)));
    minutes.truncate(WORST);
}

/// Calls `each` with the start and the length of each known minute of a span, in ms, and its record; or hour, where the minutes are
/// gone.
fn each_minute(
    history: &History,
    id: EndpointId,
    (from, to): (u64, u64),
    mut each: impl FnMut(u64, u64, &longshore_history::Record),
) {
    let timeline = history.read(history.plan(from, to, MINUTE_MS), &[id]);
    for (_, buckets) in &timeline.endpoints {
        let starts = (0..).map(|step| timeline.span.from + step * timeline.span.step_ms);
        for (at, slot) in starts.zip(buckets.slots()) {
            if let Some(record) = slot {
                each(at, timeline.span.step_ms, record);
            }
        }
    }
}
