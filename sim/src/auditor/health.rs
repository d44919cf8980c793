//! Health: its counters never decrease and agree with the observations.

use super::Auditor;
use super::exchange::Exchange;
use super::promise::Promise;
use super::wire::Health;

/// A response of health this long before the end counts as the last, in ms.
const RECENT_MS: u64 = 60_000;

impl Auditor {
    /// A response of health was shown.
    pub(super) fn health_shown(&mut self, exchange: &Exchange, health: &Health) {
        let (Some(endpoint), Some(from)) = (exchange.endpoint, exchange.arrived) else { return };
        let now = self.ledger.now;
        let entry = &mut self.model.endpoints[endpoint.0];
        let jobs = health.jobs;
        if let Some((until, before)) = entry.health.filter(|(until, _)| until.seq < from.seq) {
            let grew = jobs.completed >= before.completed
                && jobs.failed >= before.failed
                && jobs.retried >= before.retried;
            let text = || format!("{}: {jobs:?} after {before:?} at {} ms", entry.name, until.ms);
            self.ledger.check(Promise::Counted, grew, text);
        }
        let known = exchange.ended;
        let counts_all =
            entry.is_count_void || jobs.completed >= known.completed && jobs.failed >= known.failed;
        let text = || format!("{}: {jobs:?}, though {known:?} were seen before", entry.name);
        self.ledger.check(Promise::Healthy, counts_all, text);
        let workers = health.workers;
        let fits = workers.idle + workers.running <= workers.ready.max(workers.idle + workers.running);
        self.ledger.check(Promise::Healthy, fits, || format!("{}: {workers:?}", entry.name));
        if entry.health.is_none_or(|(until, _)| until.seq < now.seq) {
            entry.health = Some((now, jobs));
        }
    }

    /// Checks that no job is queued or running long after the faults have stopped.
    pub(super) fn check_health_at_rest(&mut self) {
        let now = self.ledger.now;
        for endpoint in &self.model.endpoints {
            let recent = endpoint.health.filter(|(until, _)| until.ms + RECENT_MS >= now.ms);
            let Some((until, jobs)) = recent.filter(|_| !endpoint.is_paused()) else { continue };
            let is_quiet =
                self.quiet_since.is_some_and(|quiet_since| quiet_since.ms + 2 * RECENT_MS < until.ms);
            let at_rest = jobs.in_queue == 0 && jobs.in_progress == 0 || !is_quiet;
            let text = || format!("{}: {jobs:?} at {} ms", endpoint.name, until.ms);
            self.ledger.check(Promise::AllEnd, at_rest, text);
        }
    }
}
