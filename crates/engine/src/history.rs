//! Observes the endpoints for their history.

use std::sync::atomic::Ordering;

use longshore_history::{History, Observed, ObservedWorkers};

use crate::{EndpointHandle, Engine};

impl Engine {
    /// Adds what the endpoints did since the last call to their history; to be called when a step of 2 s is over. Reads what
    /// actors and supervisors published, and asks none of them. Returns whether there is a minute to write.
    pub fn sample_history(&self, history: &History) -> bool {
        self.note_failures(history);
        let handles = self.endpoints();
        history.sample(self.now(), handles.iter().map(observed))
    }
}

impl EndpointHandle {
    /// The numbers of workers by what they do, from what the actor and the supervisor published last.
    pub fn worker_numbers(&self) -> ObservedWorkers {
        let shared = self.shared();
        let status = shared.fleet_status();
        let running = match &shared.balancer {
            Some(balancer) => balancer.busy_workers(),
            None => shared.running_workers.load(Ordering::Relaxed),
        };
        // The queue does not know workers that start, and the supervisor does not know external ones.
        let present = shared.known_workers.load(Ordering::Relaxed).max(status.workers.len() as u32);
        ObservedWorkers {
            idle: present.saturating_sub(running + status.initializing),
            running,
            starting: status.initializing,
            throttled: status.throttled,
            unhealthy: status.unhealthy,
            gpus: status.workers.iter().map(|worker| worker.placement.gpus.len() as u32).sum(),
        }
    }
}

fn observed(handle: &EndpointHandle) -> Observed<'_> {
    Observed {
        endpoint: handle.id(),
        activity: &handle.metrics().activity,
        forwards: handle.balancer().map(|balancer| balancer.observed()),
        workers: handle.worker_numbers(),
    }
}
