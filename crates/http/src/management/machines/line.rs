//! The endpoints that wait for GPUs: what has to come free before each one's turn, and which workers would have to end.

use longshore_engine::{Engine, GpuStatus, InLine};
use serde_json::{Value, json};

use crate::openapi::schema::{array_of, count, object, text, time};
use crate::wire::rfc3339::rfc3339;

/// The schema of an endpoint in the line.
pub(super) fn schema() -> Value {
    let mut idle_end_at = time();
    idle_end_at["nullable"] = json!(true);
    let mut owner = text();
    owner["nullable"] = json!(true);
    let worker = object(
        &[
            ("id", text()),
            ("endpoint", owner),
            ("isBusy", json!({ "type": "boolean" })),
            ("idleEndAt", idle_end_at),
        ],
        &["id", "endpoint", "isBusy", "idleEndAt"],
    );
    let members = [
        ("endpoint", text()),
        ("need", text()),
        ("typeId", text()),
        ("free", count()),
        ("missing", count()),
        ("workers", array_of(&worker)),
    ];
    let names = members.clone().map(|(name, _)| name);
    object(&members, &names)
}

/// The line, the first endpoint first.
pub(super) fn view(engine: &Engine, status: &GpuStatus) -> Vec<Value> {
    status.line.iter().map(|waiting| in_line(engine, status, waiting)).collect()
}

fn in_line(engine: &Engine, status: &GpuStatus, waiting: &InLine) -> Value {
    let workers = waiting.holders.iter().map(|holder| {
        let owner = status.owners.get(holder);
        let fleet = owner.and_then(|owner| engine.endpoint(owner.as_str()));
        let fleet = fleet.map(|endpoint| endpoint.workers().fleet_status());
        let known = fleet.as_ref().and_then(|fleet| fleet.facts.worker(holder));
        json!({
            "id": holder,
            "endpoint": owner,
            "isBusy": known.is_some_and(|facts| facts.is_busy),
            "idleEndAt": known.and_then(|facts| facts.idle_end_at).map(rfc3339),
        })
    });
    json!({
        "endpoint": waiting.endpoint,
        "need": waiting.need.describe(),
        "typeId": waiting.type_id,
        "free": waiting.free,
        "missing": waiting.missing,
        "workers": workers.collect::<Vec<_>>(),
    })
}
