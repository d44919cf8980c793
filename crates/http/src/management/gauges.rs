//! The figures of an endpoint that `stats` tells beside the counts of `/health`: times, rates and costs.

use std::collections::{HashMap, VecDeque};

use longshore_engine::{EndpointHandle, Health};
use longshore_history::{Field, Record};
use longshore_model::{EndpointId, Millis};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::billing;
use crate::HttpState;

/// How long ago the jobs were delivered or ended that percentiles and shares are of, in ms: 15 min.
const RECENT_MS: u64 = 15 * 60 * 1000;
/// The number of looks that the rate of ends is the mean of.
const RATE_LOOKS: usize = 5;
/// An endpoint without news is looked up in the history in one of this many looks, for what has become too old.
const LOOKS_PER_HISTORY: u64 = 5;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The figures of an endpoint at one look.
#[derive(Clone, Default)]
pub(super) struct Gauges {
    /// How many jobs had ended at the last looks, the oldest first.
    ended: VecDeque<(Instant, u64)>,
    /// The number that changes with deliveries and ends.
    changes: u64,
    /// Whether it had changed since the look before.
    had_news: bool,
    recent: Recent,
}

/// What the history has of the recent jobs and starts. `None`: nothing happened, or nothing is known.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// The median and the 95th percentile, in ms.
    delay: [Option<u64>; 2],
    run: [Option<u64>; 2],
    failed_share: Option<f64>,
    starts: Option<u64>,
    start_p50: Option<u64>,
}

impl Gauges {
    /// The figures of the look after the one that found `before`. `turn` increases by one with each look.
    pub(super) fn after(
        before: Option<&Self>,
        state: &HttpState,
        endpoint: &EndpointHandle,
        health: &Health,
        turn: u64,
    ) -> Self {
        let mut gauges = before.cloned().unwrap_or_default();
        gauges.ended.push_back((Instant::now(), ended(endpoint, health)));
        if gauges.ended.len() > RATE_LOOKS + 1 {
            gauges.ended.pop_front();
        }
        let changes = endpoint.metrics().activity.changes();
        let has_news = before.is_none_or(|before| before.changes != changes);
        // The history counts what happened within 2 s, so it may have the news at the next look only.
        if has_news || gauges.had_news || turn.is_multiple_of(LOOKS_PER_HISTORY) {
            let from = state.engine().now().0.saturating_sub(RECENT_MS);
            let record = state.history().and_then(|history| history.recent(&endpoint.id(), from));
            gauges.recent = record.as_ref().map(Recent::of).unwrap_or_default();
        }
        Self { changes, had_news: has_news, ..gauges }
    }

    /// Adds the figures of jobs.
    pub(super) fn put_of_jobs(&self, endpoint: &EndpointHandle, stats: &mut Map<String, Value>) {
        let Recent { delay, run, failed_share, .. } = self.recent;
        let oldest_at = endpoint.first_queued_at().map(|at| at.0);
        for (name, value) in [
            ("oldestAt", json!(oldest_at)),
            ("finished", json!(self.ended_per_second())),
            ("delayP50", json!(delay[0])),
            ("delayP95", json!(delay[1])),
            ("runP50", json!(run[0])),
            ("runP95", json!(run[1])),
            ("failedShare", json!(failed_share)),
        ] {
            stats.insert(name.to_owned(), value);
        }
    }

    /// The figures of workers, which only keys that may read the endpoint get.
    pub(super) fn of_workers(&self) -> Map<String, Value> {
        let Recent { starts, start_p50, .. } = self.recent;
        let figures = [("starts", starts), ("startP50", start_p50)];
        figures.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }

    /// The jobs that ended in a second, by the last looks; `None` at the first one.
    fn ended_per_second(&self) -> Option<f64> {
        let ((since, before), (now, ended)) = (self.ended.front()?, self.ended.back()?);
        let elapsed = now.saturating_duration_since(*since).as_secs_f64();
        (elapsed > 0.0).then(|| rounded(ended.saturating_sub(*before) as f64 / elapsed, 100.0))
    }
}

/// The number of jobs that ended, or of requests that were answered.
fn ended(endpoint: &EndpointHandle, health: &Health) -> u64 {
    let Some(balancer) = endpoint.balancer() else {
        return health.counters.completed + health.counters.failed;
    };
    let answers = balancer.metrics().requests();
    answers.iter().filter(|(answer, _)| *answer != "refused").map(|(_, count)| count).sum()
}

impl Recent {
    fn of(record: &Record) -> Self {
        let bad = record.get(Field::Failed) + record.get(Field::TimedOut);
        let ended = bad + record.get(Field::Completed);
        Self {
            delay: [0.5, 0.95].map(|share| record.delay.percentile(share)),
            run: [0.5, 0.95].map(|share| record.run.percentile(share)),
            failed_share: (ended > 0).then(|| rounded(bad as f64 / ended as f64, 1e4)),
            starts: Some(record.get(Field::Starts)),
            start_p50: record.start.percentile(0.5),
        }
    }
}

/// What the workers of each endpoint cost since midnight, in UTC. `None` without prices.
#[derive(Default)]
pub(super) struct Costs {
    today: Option<HashMap<EndpointId, f64>>,
}

impl Costs {
    /// Meters the workers up to now.
    pub(super) fn now(state: &HttpState) -> Self {
        if state.prices().is_empty() {
            return Self::default();
        }
        let now = state.engine().now().0;
        let mut today: HashMap<EndpointId, f64> = HashMap::new();
        for sheet in state.engine().usage(Millis(now - now % DAY_MS), Millis::MAX) {
            let costs = sheet.usages.iter().map(|usage| billing::cost_of(usage, state.prices()));
            *today.entry(sheet.endpoint).or_default() += costs.sum::<f64>();
        }
        Self { today: Some(today) }
    }

    /// Adds what these workers of an endpoint cost in an hour, and what all of its workers cost today; nothing without prices.
    pub(super) fn put(&self, endpoint: EndpointId, workers: &[Value], stats: &mut Map<String, Value>) {
        let Some(today) = &self.today else { return };
        let hour: f64 = workers.iter().filter_map(|worker| worker["costPerHr"].as_f64()).sum();
        let today = today.get(&endpoint).copied().unwrap_or_default();
        for (name, amount) in [("costHour", hour), ("costToday", today)] {
            stats.insert(name.to_owned(), json!(rounded(amount, 1e4)));
        }
    }
}

/// The number in parts of `1 / parts`.
fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}
