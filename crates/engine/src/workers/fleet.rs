//! The fleet: what a supervisor reads from the queue and reports to it, and the worker counts of `/health`.

use std::time::Duration;

use longshore_model::{WorkerCounts, WorkerId, WorkerPhase};
use tokio::time::timeout;

use super::Workers;
use crate::actor::query::Query;
use crate::actor::request::Request;
use crate::balancer::address::WorkerAddress;
use crate::{EndpointError, FleetStatus, FleetView};

/// The longest wait for the drain of outdated workers.
const OUTDATED_WAIT: Duration = Duration::from_secs(2);

impl Workers {
    /// Returns the load of the queue and the workers that it knows. Later changes of the load are signalled to the
    /// supervisor again.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        self.shared.load_seen();
        if let Some(balancer) = &self.shared.balancer {
            return if self.shared.is_deleted() {
                Err(EndpointError::Deleted)
            } else {
                Ok(balancer.fleet_view())
            };
        }
        self.shared.query(|reply| Query::Fleet { reply }).await.map(|view| *view)
    }

    /// Registers a worker that a launcher has started or adopted. A load-balancing endpoint forwards requests to its
    /// `address`.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn register(
        &self,
        worker: WorkerId,
        address: Option<WorkerAddress>,
    ) -> Result<(), EndpointError> {
        if let Some(balancer) = &self.shared.balancer {
            balancer.register(worker, address);
            return Ok(());
        }
        self.shared.request(|reply| Request::RegisterWorker { worker, reply }).await
    }

    /// Drains a worker: it gets no further jobs, and its open takes return none.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn drain(&self, worker: WorkerId) -> Result<(), EndpointError> {
        if let Some(balancer) = &self.shared.balancer {
            balancer.drain(&worker);
            return Ok(());
        }
        self.shared.request(|reply| Request::DrainWorker { worker, reply }).await
    }

    /// Reports that a worker has ended. Its jobs are requeued, or fail with `reason` if no retry is left. The requeue
    /// counts as a retry if `counts_retry` is set.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn lose(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        if let Some(balancer) = &self.shared.balancer {
            balancer.lose(&worker);
            return Ok(());
        }
        self.shared.request(|reply| Request::LoseWorker { worker, counts_retry, reason, reply }).await
    }

    /// Returns what the supervisor last published about the endpoint's workers: those that start, those held back, and
    /// the reasons. Empty without a supervisor.
    pub fn fleet_status(&self) -> FleetStatus {
        self.shared.fleet_status()
    }

    /// Returns when no managed worker of a version before this one gets another job, or after 2 s: the supervisor
    /// may be unable to reach the queue.
    pub async fn outdated_drained(&self, version: u32) {
        if self.shared.balancer.is_some() {
            // They serve until others are up.
            return;
        }
        let Some(mut statuses) = self.shared.fleet_statuses() else { return };
        // A status has a drain once the queue knows of it.
        let drained = statuses.wait_for(|status| {
            status.workers.iter().all(|worker| worker.version >= version || worker.is_ending)
        });
        // Without a supervisor the endpoint is deleted, and gives out no job.
        let _ = timeout(OUTDATED_WAIT, drained).await;
    }
}

/// The worker counts of `/health`, from the phase and the running jobs of each worker and the supervisor's status.
pub(crate) fn count_workers(workers: &[(WorkerPhase, u32)], status: &FleetStatus) -> WorkerCounts {
    let of = |phase| workers.iter().filter(|(its, _)| *its == phase).count() as u32;
    let holding = workers.iter().filter(|(_, running)| *running > 0).count() as u32;
    WorkerCounts {
        idle: of(WorkerPhase::Idle),
        initializing: of(WorkerPhase::Initializing).max(status.initializing),
        ready: of(WorkerPhase::Idle),
        running: holding,
        throttled: status.throttled,
        unhealthy: status.unhealthy,
    }
}
