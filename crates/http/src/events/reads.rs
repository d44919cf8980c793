//! What clients have read of endpoints since the collector looked last.
//!
//! A state that was read, and that has changed back when the collector looks, is told again: the client would keep it. What was
//! read as it is then is not, or a client that reads after each event would read for ever.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use longshore_engine::Health;
use longshore_model::EndpointId;
use serde_json::Value;

/// The members of a worker and of a problem that are compared: those that each key sees alike, and that do not change as time
/// passes.
const OF_WORKERS: &[&str] =
    &["status", "reason", "stage", "version", "jobs", "jobsDone", "health", "startedAt", "readyAt"];
const OF_PROBLEMS: &[&str] = &["severity", "since", "title"];

/// What was read of all endpoints.
#[derive(Default)]
pub(super) struct Reads(Mutex<HashMap<EndpointId, Read>>);

impl Reads {
    /// Adds what was read of an endpoint.
    pub(super) fn add(&self, endpoint: EndpointId, read: Read) {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = reads.entry(endpoint).or_default();
        of.numbers.extend(read.numbers);
        for (id, states) in read.items {
            of.items.entry(id).or_default().extend(states);
        }
        of.lacks_problem |= read.lacks_problem;
    }

    /// Returns what was added since the last call.
    pub(super) fn take(&self) -> HashMap<EndpointId, Read> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What was read of one endpoint: the states in which things were seen, as hashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// The numbers of its jobs and workers.
    numbers: BTreeSet<u64>,
    /// Its workers and its problems, by their ids.
    items: BTreeMap<String, BTreeSet<u64>>,
    /// Whether it was seen without a problem.
    lacks_problem: bool,
}

impl Read {
    pub(crate) fn of_health(health: &Health) -> Self {
        Self { numbers: BTreeSet::from([numbers(health)]), ..Self::default() }
    }

    pub(crate) fn of_workers(workers: &[Value]) -> Self {
        let state = |worker: &Value| {
            let id = worker["id"].as_str().unwrap_or_default().to_owned();
            (id, BTreeSet::from([hashed(worker, OF_WORKERS)]))
        };
        Self { items: workers.iter().map(state).collect(), ..Self::default() }
    }

    pub(crate) fn of_problem(problem: Option<&Value>) -> Self {
        let state = |problem: &Value| {
            let id = problem["id"].as_str().unwrap_or_default().to_owned();
            (id, BTreeSet::from([hashed(problem, OF_PROBLEMS)]))
        };
        let items = problem.map(state).into_iter().collect();
        Self { items, lacks_problem: problem.is_none(), ..Self::default() }
    }

    /// The ids of the workers and problems that were seen.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.items.keys()
    }

    /// Whether other numbers than these were seen, which [`numbers`] returns.
    pub(crate) fn has_other_numbers(&self, now: u64) -> bool {
        self.numbers.iter().any(|seen| *seen != now)
    }

    /// Whether a worker was seen that differs from what it is now.
    pub(crate) fn has_other_worker(&self, id: &str, now: &Value) -> bool {
        self.has_other(id, hashed(now, OF_WORKERS))
    }

    /// Whether the problem was seen otherwise than it is now, or was not there.
    pub(crate) fn has_other_problem(&self, now: &Value) -> bool {
        self.lacks_problem || self.has_other(now["id"].as_str().unwrap_or_default(), hashed(now, OF_PROBLEMS))
    }

    fn has_other(&self, id: &str, now: u64) -> bool {
        self.items.get(id).is_some_and(|seen| seen.iter().any(|seen| *seen != now))
    }
}

/// The numbers of an endpoint's health, as one hash.
pub(crate) fn numbers(health: &Health) -> u64 {
    let (counters, workers) = (&health.counters, &health.workers);
    let mut hasher = DefaultHasher::new();
    (health.in_queue, health.in_progress).hash(&mut hasher);
    (counters.completed, counters.failed, counters.retried).hash(&mut hasher);
    (workers.idle, workers.initializing, workers.ready).hash(&mut hasher);
    (workers.running, workers.throttled, workers.unhealthy).hash(&mut hasher);
    hasher.finish()
}

/// The members of an object with these names, as one hash.
fn hashed(object: &Value, members: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in members {
        object.get(name).map(Value::to_string).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_seen_in_two_states_was_seen_otherwise() {
        let (reads, endpoint) = (Reads::default(), EndpointId::mint(1));
        let worker = |status: &str| json!({ "id": "w", "status": status, "lastHeardAt": "08:00" });
        let heard_later = json!({ "id": "w", "status": "IDLE", "lastHeardAt": "08:02" });
        reads.add(endpoint, Read::of_workers(&[worker("IDLE")]));
        let read = reads.take().remove(&endpoint).unwrap();
        assert!(!read.has_other_worker("w", &heard_later) && !read.has_other_worker("v", &heard_later));
        reads.add(endpoint, read);
        reads.add(endpoint, Read::of_workers(&[worker("RUNNING")]));
        let read = &reads.take()[&endpoint];
        assert!(read.has_other_worker("w", &heard_later));
        assert!(reads.take().is_empty());
    }

    #[test]
    fn a_problem_that_was_not_there_was_seen_otherwise() {
        let problem = json!({ "id": "e/workers_crash", "title": "Every worker crashes", "jobs": 1 });
        let more_jobs = json!({ "id": "e/workers_crash", "title": "Every worker crashes", "jobs": 2 });
        assert!(!Read::of_problem(Some(&problem)).has_other_problem(&more_jobs));
        assert!(Read::of_problem(None).has_other_problem(&problem));
    }

    #[test]
    fn numbers_that_differ_were_seen_otherwise() {
        let health = Health { in_queue: 1, ..Health::default() };
        let read = Read::of_health(&health);
        assert!(!read.has_other_numbers(numbers(&health)));
        assert!(read.has_other_numbers(numbers(&Health::default())));
    }
}
