//! Workers by their ids, of all endpoints whose settings the key may read.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::EndpointHandle;
use longshore_model::WorkerId;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CONCURRENT, HITS_MAX, PATIENCE};

/// The workers whose ids contain the text, in lower case.
pub(super) async fn found(readable: Vec<EndpointHandle>, text: &str) -> Vec<Value> {
    let asked = iter(readable).map(|endpoint| async move {
        let view = timeout(PATIENCE, endpoint.workers().fleet_view()).await;
        let view = view.ok().and_then(Result::ok).unwrap_or_default();
        // The queue does not know workers that start.
        let starting = endpoint.workers().fleet_status();
        let known = view.workers.into_iter().map(|worker| worker.id);
        let all: BTreeSet<_> = known.chain(starting.workers.iter().map(|worker| worker.id.clone())).collect();
        (endpoint.record(), all)
    });
    let has = |id: &WorkerId| id.as_str().to_lowercase().contains(text);
    let mut hits = Vec::new();
    for (record, workers) in asked.buffered(CONCURRENT).collect::<Vec<_>>().await {
        let found = workers.iter().filter(|id| has(id));
        hits.extend(
            found.map(
                |id| json!({ "id": id, "endpoint": record.id, "slug": record.slug, "name": record.name }),
            ),
        );
    }
    hits.truncate(HITS_MAX);
    hits
}
