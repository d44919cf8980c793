//! Observes the endpoints for their history.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use longshore_history::{GpuUse, History, Observed, ObservedWorkers};
use longshore_model::{EndpointId, Millis};

use crate::{EndpointHandle, Engine};

impl Engine {
    /// Adds what the endpoints did since the last call to their history; to be called when a step of 2 s is over. Reads what
    /// actors and supervisors published, and asks none of them. Returns whether there is a minute to write.
    pub fn sample_history(&self, history: &History) -> bool {
        self.note_failures(history);
        let handles = self.endpoints();
        let gpu_uses = self.gpu_uses();
        history.sample(self.now(), handles.iter().map(|handle| observed(handle, &gpu_uses)))
    }
}

impl EndpointHandle {
    /// The numbers of workers by what they do, from what the actor and the supervisor published last; without the use of their
    /// GPUs.
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
            gpu_use: GpuUse::default(),
        }
    }

    /// Since when the job, or the request, waits that has waited longest; `None` if none does.
    pub fn first_queued_at(&self) -> Option<Millis> {
        match &self.shared().balancer {
            Some(balancer) => balancer.waiting().oldest_normal_since,
            None => self.metrics().activity.totals().first_queued_at,
        }
    }
}

fn observed<'a>(handle: &'a EndpointHandle, gpu_uses: &BTreeMap<EndpointId, GpuUse>) -> Observed<'a> {
    let gpu_use = gpu_uses.get(&handle.id()).copied().unwrap_or_default();
    Observed {
        endpoint: handle.id(),
        activity: &handle.metrics().activity,
        forwards: handle.balancer().map(|balancer| balancer.observed()),
        workers: ObservedWorkers { gpu_use, ..handle.worker_numbers() },
    }
}
