//! What the events tell by looking: the numbers and the workers of each endpoint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use longshore_engine::EndpointHandle;
use longshore_model::EndpointId;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::gauges::{Costs, Gauges};
use super::{attention, pods};
use crate::HttpState;
use crate::events::hub::Draft;
use crate::events::reads::{Read, numbers};
use crate::events::topic::Topic;
use crate::lb;

/// How long an endpoint may take to say its numbers. One that takes longer is left out once.
const PATIENCE: Duration = Duration::from_secs(1);
/// Endpoints that are asked concurrently.
const CONCURRENT: usize = 16;
/// What changes as time passes, such as the text of a problem, or since when a worker is idle, is told again in one of this
/// many looks.
const LOOKS_PER_TEXT: u64 = 5;
/// The workers are metered for their costs in one of this many looks, because that reads the usage of the day.
const LOOKS_PER_BILL: u64 = 15;
/// Members of a worker that change while nothing happens.
const ALWAYS_NEW: [&str; 2] = ["idleMs", "lastHeardAt"];

/// The states as they were told last, by endpoint.
#[derive(Default)]
pub(super) struct SlowStates {
    told: HashMap<EndpointId, EndpointState>,
    looks: u64,
    costs: Costs,
}

#[derive(Clone, Default)]
struct EndpointState {
    slug: Option<String>,
    stats: Map<String, Value>,
    /// Those of `stats` that only keys that may read the endpoint get.
    worker_stats: Map<String, Value>,
    gauges: Gauges,
    /// The numbers of its health, as [`numbers`] returns them.
    numbers: u64,
    /// The workers by id.
    workers: BTreeMap<String, Value>,
    /// What is wrong with the endpoint.
    problem: Option<Value>,
}

impl SlowStates {
    /// Returns the events for what has changed since the last call. For a reader that came since then, everything is told:
    /// what it read before may have changed back meanwhile, to what was told last.
    pub(super) async fn changes(&mut self, state: &HttpState) -> Vec<Draft> {
        let tells_all = state.events().has_new_reader();
        // Before the look: what is read later is compared with what this look tells.
        let mut reads = state.events().take_reads();
        if self.looks.is_multiple_of(LOOKS_PER_BILL) {
            self.costs = Costs::now(state);
        }
        self.looks += 1;
        let tells_texts = self.looks.is_multiple_of(LOOKS_PER_TEXT);
        let (told, costs, looks) = (&self.told, &self.costs, self.looks);
        let look = |(place, endpoint): (usize, EndpointHandle)| async move {
            // The turns differ, so that not all endpoints are looked up in the history in the same look.
            let before = Before { state: told.get(&endpoint.id()), costs, turn: looks + place as u64 };
            (endpoint.id(), timeout(PATIENCE, look(state, &endpoint, before)).await.ok().flatten())
        };
        let endpoints = iter(state.engine().endpoints()).enumerate();
        let seen: Vec<_> = endpoints.map(look).buffer_unordered(CONCURRENT).collect().await;
        let mut drafts = Vec::new();
        let mut told = HashMap::with_capacity(seen.len());
        for (id, now) in seen {
            let before = self.told.remove(&id);
            let read = reads.remove(&id).unwrap_or_default();
            if now.is_none() {
                // The next look says whether it was read as it is.
                state.events().note_read(id, || read.clone());
            }
            let is_seen = now.is_some();
            // An endpoint that says nothing is as it was told.
            let Some(mut now) = now.or_else(|| before.clone()) else { continue };
            let mut known = before.unwrap_or_default();
            if is_seen {
                // A reader that has joined since may have read what has gone.
                let ids: BTreeSet<_> = known.ids().chain(read.ids().cloned()).collect();
                now.deletions(id, &ids, &mut drafts);
                known.forget(&read, &now);
            }
            if tells_all {
                known = EndpointState::default();
            }
            now.differences(id, &known, tells_texts, &mut drafts);
            now.problem_differences(id, &known, tells_texts, &mut drafts);
            told.insert(id, now);
        }
        // The endpoints that were deleted.
        for (id, before) in &self.told {
            EndpointState::default().deletions(*id, &before.ids().collect(), &mut drafts);
        }
        self.told = told;
        drafts
    }
}

/// What a look at an endpoint goes on from.
struct Before<'a> {
    /// The state that was told last.
    state: Option<&'a EndpointState>,
    costs: &'a Costs,
    turn: u64,
}

/// The present state of an endpoint; `None` if its queue cannot say it.
async fn look(http: &HttpState, endpoint: &EndpointHandle, before: Before<'_>) -> Option<EndpointState> {
    let health = endpoint.jobs().health().await.ok()?;
    let (counters, counts) = (health.counters, health.workers);
    let Value::Object(mut stats) = json!({
        "queued": health.in_queue,
        "running": health.in_progress,
        "completed": counters.completed,
        "failed": counters.failed,
        "retried": counters.retried,
        "idle": counts.idle,
        "starting": counts.initializing,
        "ready": counts.ready,
        "busy": counts.running,
        "throttled": counts.throttled,
        "unhealthy": counts.unhealthy,
    }) else {
        return None;
    };
    if let Some(numbers) = lb::numbers::of(endpoint) {
        stats.insert("lb".to_owned(), numbers);
    }
    let gauges = Gauges::after(before.state.map(|state| &state.gauges), http, endpoint, &health, before.turn);
    gauges.put_of_jobs(endpoint, &mut stats);
    let mut worker_stats = gauges.of_workers();
    let workers = pods::for_events(http, endpoint).await;
    before.costs.put(endpoint.id(), &workers, &mut worker_stats);
    let workers = workers.into_iter().map(|worker| {
        let id = worker["id"].as_str().unwrap_or_default().to_owned();
        (id, worker)
    });
    // Of an endpoint without any of these, nothing is wrong.
    let may_be_wrong = health.in_queue > 0
        || counts.unhealthy > 0
        || counts.throttled > 0
        || counts.initializing > 0
        || endpoint.balancer().is_some()
        || http.engine().has_store_fault()
        || endpoint.workers().fleet_status().facts.crash.is_some()
        || http.engine().impossible_gpus(endpoint).is_some()
        || endpoint.record().slo.is_some();
    let problem = if may_be_wrong { attention::for_events(http, endpoint).await } else { None };
    let slug = endpoint.record().slug.clone();
    let numbers = numbers(&health);
    Some(EndpointState { slug, stats, worker_stats, gauges, numbers, workers: workers.collect(), problem })
}

impl EndpointState {
    /// The ids of the workers, and of the problem.
    fn ids(&self) -> impl Iterator<Item = String> {
        let problem = self.problem.as_ref().and_then(|problem| problem["id"].as_str());
        self.workers.keys().cloned().chain(problem.map(str::to_owned))
    }

    /// Takes out what was read otherwise than it is `now`, so that it is told again.
    fn forget(&mut self, read: &Read, now: &Self) {
        if read.has_other_numbers(now.numbers) {
            self.stats.clear();
            self.worker_stats.clear();
        }
        let is_other = |id: &String| now.workers.get(id).is_some_and(|now| read.has_other_worker(id, now));
        self.workers.retain(|id, _| !is_other(id));
        if now.problem.as_ref().is_some_and(|now| read.has_other_problem(now)) {
            self.problem = None;
        }
    }

    /// Adds the events of the workers and problems with these ids that this state does not have.
    fn deletions(&self, endpoint: EndpointId, ids: &BTreeSet<String>, drafts: &mut Vec<Draft>) {
        let present: BTreeSet<_> = self.ids().collect();
        for id in ids.difference(&present) {
            // Only the id of a problem has a slash: it is that of the endpoint and the code.
            let (topic, of) = if id.contains('/') {
                (Topic::Attention, "endpoint")
            } else {
                (Topic::Workers, "endpointId")
            };
            let json = json!({ "id": id, of: endpoint, "deleted": true }).to_string();
            drafts.push(Draft { topic, endpoint: Some(endpoint), json });
        }
    }

    /// Adds the events of what this state has and `before` has not, or otherwise. A worker that is not told stays as in `before`,
    /// so that a later look compares with what was told.
    fn differences(
        &mut self,
        endpoint: EndpointId,
        before: &Self,
        tells_times: bool,
        drafts: &mut Vec<Draft>,
    ) {
        for (topic, now, before) in [
            (Topic::Stats, &self.stats, &before.stats),
            (Topic::WorkerStats, &self.worker_stats, &before.worker_stats),
        ] {
            let changed = now.iter().filter(|(name, value)| before.get(*name) != Some(*value));
            let mut stats: Map<_, _> = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
            if !stats.is_empty() {
                stats.insert("endpoint".to_owned(), json!(endpoint));
                stats.insert("slug".to_owned(), json!(self.slug));
                let json = Value::Object(stats).to_string();
                drafts.push(Draft { topic, endpoint: Some(endpoint), json });
            }
        }
        let mut tell = |json: Value| {
            drafts.push(Draft { topic: Topic::Workers, endpoint: Some(endpoint), json: json.to_string() });
        };
        for (id, worker) in &mut self.workers {
            match before.workers.get(id) {
                Some(told) if told == worker => {}
                Some(told) if !tells_times && lasting(told) == lasting(worker) => worker.clone_from(told),
                _ => tell(worker.clone()),
            }
        }
    }

    /// Adds the event of a problem that `before` has not, or otherwise. One that is not told stays as in `before`, like a worker.
    fn problem_differences(
        &mut self,
        endpoint: EndpointId,
        before: &Self,
        tells_texts: bool,
        drafts: &mut Vec<Draft>,
    ) {
        let Some(problem) = &mut self.problem else { return };
        match &before.problem {
            Some(told) if told == problem => {}
            Some(told) if !tells_texts && lasting_problem(told) == lasting_problem(problem) => {
                problem.clone_from(told);
            }
            _ => {
                let json = problem.to_string();
                drafts.push(Draft { topic: Topic::Attention, endpoint: Some(endpoint), json });
            }
        }
    }
}

/// A problem without the members that change as time passes.
fn lasting_problem(problem: &Value) -> Value {
    let mut problem = problem.clone();
    if let Value::Object(members) = &mut problem {
        members.retain(|name, _| !["text", "jobs"].contains(&name.as_str()));
    }
    problem
}

/// A worker without the members that change while nothing happens.
fn lasting(worker: &Value) -> Value {
    let mut worker = worker.clone();
    if let Value::Object(members) = &mut worker {
        members.retain(|name, _| !ALWAYS_NEW.contains(&name.as_str()));
    }
    worker
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(jobs: u64, heard: &str) -> EndpointState {
        EndpointState {
            workers: BTreeMap::from([("w".to_owned(), json!({ "id": "w", "lastHeardAt": heard }))]),
            problem: Some(json!({ "id": "workers_max_zero", "jobs": jobs, "text": format!("{jobs} wait") })),
            ..EndpointState::default()
        }
    }

    /// What a look tells after another, and what the next look compares with.
    fn told(before: &EndpointState, mut now: EndpointState, tells_texts: bool) -> (usize, EndpointState) {
        let mut drafts = Vec::new();
        let endpoint = EndpointId::mint(1);
        now.differences(endpoint, before, tells_texts, &mut drafts);
        now.problem_differences(endpoint, before, tells_texts, &mut drafts);
        (drafts.len(), now)
    }

    #[test]
    fn what_changes_as_time_passes_is_told_later_also_if_it_stands_still_by_then() {
        let (count, first) = told(&EndpointState::default(), state(1, "08:00"), false);
        assert_eq!(count, 2, "what is new is told in every look");
        let (count, second) = told(&first, state(50, "08:02"), false);
        assert_eq!(count, 0, "a count and a time wait");
        let (count, third) = told(&second, state(50, "08:02"), true);
        assert_eq!(count, 2, "the look that tells texts compares with what was told");
        let (count, _) = told(&third, state(50, "08:02"), true);
        assert_eq!(count, 0, "nothing has changed since");
    }
}
