//! What the balancer shows of its workers and requests: to the supervisor, to `/explain`, and to people.

use longshore_fleet::{ServerHealth, WaitingQueue, WorkerContact, WorkerHealth};
use longshore_history::ObservedForwards;
use longshore_model::WorkerPhase;

use super::worker::LastCheck;
use super::{BalancedServer, Balancer, HealthNote};
use crate::{FleetView, WorkerView};

fn health_note(health: WorkerHealth, worker: &BalancedServer) -> HealthNote {
    let LastCheck { result, rejecting_since } = worker.last_check();
    HealthNote { health, last_check: result, rejecting_since }
}

impl Balancer {
    /// The load and the workers, as the supervisor plans with them.
    pub(crate) fn fleet_view(&self) -> FleetView {
        let (state, now) = (self.state(), self.now());
        let load = state.balance.load(now);
        let workers = state.balance.workers(now).map(|(worker, seen)| WorkerView {
            id: worker.id().clone(),
            phase: seen.phase,
            running: seen.outstanding,
            idle_ms: seen.idle_ms,
            jobs: Vec::new(),
            jobs_done: seen.ended,
            last_contact: seen.last_contact,
            address: None,
            health: Some(health_note(seen.health, worker)),
        });
        FleetView {
            queued_normal: load.queued_normal,
            queued: load.queued_normal,
            running: load.running,
            oldest_normal_wait_ms: (load.queued_normal > 0).then_some(load.oldest_normal_wait_ms),
            workers: workers.collect(),
        }
    }

    /// The requests, as the history observes them.
    pub(crate) fn observed(&self) -> ObservedForwards<'_> {
        let load = self.state().balance.load(self.now());
        ObservedForwards {
            activity: self.metrics().activity(),
            waiting: load.queued_normal,
            oldest_wait_ms: if load.queued_normal > 0 { load.oldest_normal_wait_ms } else { 0 },
            outstanding: load.running,
        }
    }

    /// The number of workers that have a request.
    pub(crate) fn busy_workers(&self) -> u32 {
        let (state, now) = (self.state(), self.now());
        state.balance.workers(now).filter(|(_, seen)| seen.outstanding > 0).count() as u32
    }

    /// Why requests wait, as far as the balancer knows. A worker with requests has no room for another one while any wait.
    pub(crate) fn waiting(&self) -> WaitingQueue {
        let limits = self.state().balance.limits();
        let view = self.fleet_view();
        let contact = |worker: &WorkerView| WorkerContact { phase: worker.phase, silent_ms: None };
        WaitingQueue {
            queued: view.queued,
            queued_normal: view.queued,
            running: view.running,
            oldest_normal_since: view.oldest_normal_wait_ms.map(|ms| self.now() - ms),
            jobs_max: limits.queue_max as u64,
            workers: view.workers.iter().map(contact).collect(),
            ..WaitingQueue::default()
        }
    }

    /// The number of workers by health. Draining workers are counted as such alone.
    pub fn health_counts(&self) -> [(&'static str, u32); 5] {
        let view = self.fleet_view();
        let is_draining = |worker: &WorkerView| worker.phase == WorkerPhase::Draining;
        let draining = view.workers.iter().filter(|worker| is_draining(worker)).count() as u32;
        let of = |health: WorkerHealth| {
            let has = |worker: &&WorkerView| worker.health.as_ref().is_some_and(|note| note.health == health);
            let count = view.workers.iter().filter(|worker| !is_draining(worker)).filter(has).count();
            (health.as_str(), count as u32)
        };
        [
            of(WorkerHealth::Starting),
            of(WorkerHealth::Initializing),
            of(WorkerHealth::Healthy),
            of(WorkerHealth::Unhealthy),
            ("draining", draining),
        ]
    }

    /// The health of each worker that is not drained.
    pub(crate) fn servers(&self) -> Vec<ServerHealth> {
        let workers = self.fleet_view().workers.into_iter();
        let staying = workers.filter(|worker| worker.phase != WorkerPhase::Draining);
        let health = |note: HealthNote| ServerHealth {
            health: note.health,
            last_check: note.last_check.as_ref().to_owned(),
            rejecting_since: note.rejecting_since,
        };
        staying.filter_map(|worker| worker.health.map(health)).collect()
    }
}
