//! Collects what has changed for `/v1/events`, while a reader is there: jobs and endpoints every 250 ms, all else every 2 s; less
//! often for more than 100 readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_engine::BulkTask;
use longshore_model::{Endpoint, EndpointId};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bulk;
use super::endpoints;
use super::slow_states::SlowStates;
use super::webhooks;
use crate::HttpState;
use crate::events::hub::Draft;
use crate::events::job_events;
use crate::events::topic::Topic;

/// The time between two events about the jobs of an endpoint.
const TICK: Duration = Duration::from_millis(250);
/// The time between two looks at what is not told by the actors.
const SLOW_TICK: Duration = Duration::from_secs(2);
/// The least time between two events for each reader: the server wakes at most 400 readers in 1 s, however many there are.
const TICK_PER_READER: Duration = Duration::from_micros(2_500);

/// Starts collecting. It ends by itself when no reader was there for a minute.
pub(super) fn start(state: &HttpState) {
    let engine = state.engine();
    engine.watch_jobs(true);
    for endpoint in engine.endpoints() {
        // Changes that were collected for earlier readers.
        drop(endpoint.take_job_changes());
    }
    // Noted here and not in the task: what changes before the task runs is told.
    let audited = state.audit().map_or(0, |log| log.recent(u64::MAX).1);
    engine.spawn(collect(state.clone(), Endpoints::of(state), BulkTasks::of(state), audited));
}

/// Publishes what differs from `endpoints`, and the entries that were written to the audit log after the first `audited` ones.
async fn collect(state: HttpState, mut endpoints: Endpoints, mut bulk: BulkTasks, mut audited: u64) {
    let slow = state.engine().spawn(collect_slow(state.clone()));
    loop {
        let stop = || state.engine().watch_jobs(false);
        if state.engine().is_stopping() || !state.events().is_needed(Instant::now(), stop) {
            slow.abort();
            return;
        }
        let mut drafts = Vec::new();
        endpoints.changes(&state, &mut drafts);
        bulk.changes(&state, &mut drafts);
        for endpoint in state.engine().endpoints() {
            let Some(changes) = endpoint.take_job_changes() else { continue };
            let json = job_events::jobs(state.engine(), &endpoint.record(), &changes);
            drafts.push(Draft { topic: Topic::Jobs, endpoint: Some(endpoint.id()), json });
        }
        let (entries, written) = state.audit().map(|log| log.recent(audited)).unwrap_or_default();
        audited = written;
        for entry in entries {
            let json = json!(entry).to_string();
            drafts.push(Draft { topic: Topic::Audit, endpoint: None, json });
        }
        state.events().publish(drafts);
        sleep(pause(TICK, state.events().readers())).await;
    }
}

async fn collect_slow(state: HttpState) {
    let (mut states, mut looked_at) = (SlowStates::default(), state.engine().now());
    let mut untold = webhooks::Untold::default();
    loop {
        let drafts = states.changes(&state).await;
        state.events().publish(drafts);
        let since = std::mem::replace(&mut looked_at, state.engine().now());
        let mut drafts = Vec::new();
        webhooks::changes(&state, since, &mut untold, &mut drafts).await;
        state.events().publish(drafts);
        sleep(pause(SLOW_TICK, state.events().readers())).await;
    }
}

/// The time until the next events: `least`, and longer for many readers.
fn pause(least: Duration, readers: u32) -> Duration {
    least.max(TICK_PER_READER * readers)
}

/// The bulk tasks as they were told last.
struct BulkTasks {
    told: HashMap<String, Arc<BulkTask>>,
    /// The number of changes that were told.
    changes: u64,
}

impl BulkTasks {
    /// The present tasks: what readers read when they begin.
    fn of(state: &HttpState) -> Self {
        let bulk = state.engine().bulk();
        let changes = bulk.changes();
        Self { told: bulk.list().into_iter().map(|task| (task.id.clone(), task)).collect(), changes }
    }

    /// Adds an event for each task that was created, went on or was removed.
    fn changes(&mut self, state: &HttpState, drafts: &mut Vec<Draft>) {
        if state.engine().bulk().changes() == self.changes {
            return;
        }
        let before = std::mem::replace(self, Self::of(state)).told;
        for (id, task) in &self.told {
            if before.get(id).is_none_or(|told| !Arc::ptr_eq(told, task)) {
                let json = bulk::view(task).to_string();
                drafts.push(Draft { topic: Topic::Bulk, endpoint: Some(task.endpoint), json });
            }
        }
        for task in before.into_values().filter(|task| !self.told.contains_key(&task.id)) {
            let json = json!({ "id": task.id, "endpoint": task.endpoint, "deleted": true }).to_string();
            drafts.push(Draft { topic: Topic::Bulk, endpoint: Some(task.endpoint), json });
        }
    }
}

/// The endpoints as they were told last.
struct Endpoints {
    told: HashMap<EndpointId, Arc<Endpoint>>,
}

impl Endpoints {
    /// The present endpoints: what readers read when they begin.
    fn of(state: &HttpState) -> Self {
        let all = state.engine().endpoints();
        Self { told: all.into_iter().map(|endpoint| (endpoint.id(), endpoint.record())).collect() }
    }

    /// Adds an event for each endpoint that was created, changed or deleted.
    fn changes(&mut self, state: &HttpState, drafts: &mut Vec<Draft>) {
        let mut present = HashMap::with_capacity(self.told.len());
        for endpoint in state.engine().endpoints() {
            let (id, record) = (endpoint.id(), endpoint.record());
            if self.told.remove(&id).is_none_or(|told| !Arc::ptr_eq(&told, &record)) {
                let json = endpoints::for_events(state, &record).to_json();
                drafts.push(Draft { topic: Topic::Endpoints, endpoint: Some(id), json });
            }
            present.insert(id, record);
        }
        for id in std::mem::replace(&mut self.told, present).into_keys() {
            let json = json!({ "id": id, "deleted": true }).to_string();
            drafts.push(Draft { topic: Topic::Endpoints, endpoint: Some(id), json });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_readers_are_told_less_often() {
        assert_eq!(pause(TICK, 1), TICK);
        assert_eq!(pause(TICK, 100), TICK);
        assert_eq!(pause(TICK, 200), Duration::from_millis(500));
        assert_eq!(pause(SLOW_TICK, 200), SLOW_TICK);
        assert_eq!(pause(SLOW_TICK, 1_000), Duration::from_millis(2_500));
    }
}
