//! Assigns the computer's GPUs to the workers of all endpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_fleet::{GpuInventory, GpuNeed, PlacementError, Shortage};
use longshore_model::{Endpoint, EndpointId, Gpu, Millis, WorkerId};
use tokio::sync::Notify;

/// The computer's GPUs, their workers, and the endpoints that wait for GPUs. A pool without GPUs places every worker,
/// with no GPU. Volatile; one per server.
#[derive(Debug, Default)]
pub(crate) struct GpuPool {
    state: Mutex<PoolState>,
}

/// The GPUs that workers can get, their holders, and the endpoints that wait for them.
#[derive(Clone, Debug, Default)]
pub struct GpuStatus {
    /// Every GPU of the computer.
    pub gpus: Vec<PooledGpu>,
    /// The endpoints that wait for GPUs, in the order of their turns.
    pub line: Vec<EndpointId>,
}

/// A GPU that workers can get.
#[derive(Clone, Debug)]
pub struct PooledGpu {
    /// The GPU, as the driver or the settings name it.
    pub gpu: Gpu,
    /// The worker that has it, and the worker's endpoint; `None` while it is free.
    pub holder: Option<(WorkerId, EndpointId)>,
}

/// Why a worker of an endpoint gets no GPUs.
#[derive(Debug)]
pub(crate) struct PoolShortage {
    /// What a worker needs, as text.
    pub(crate) need: String,
    /// What there is, as text.
    pub(crate) stock: String,
    pub(crate) why: Shortage,
    /// The workers that hold such GPUs, and the endpoint of each one.
    pub(crate) owners: Vec<(WorkerId, EndpointId)>,
}

#[derive(Debug, Default)]
struct PoolState {
    inventory: GpuInventory,
    /// The endpoint of each worker that holds GPUs.
    owners: BTreeMap<WorkerId, EndpointId>,
    /// Wakes the supervisors of the waiting endpoints.
    notifies: BTreeMap<EndpointId, Arc<Notify>>,
}

impl GpuPool {
    /// Returns a pool with these GPUs, all free.
    pub(crate) fn new(gpus: Vec<Gpu>) -> Self {
        Self { state: Mutex::new(PoolState { inventory: GpuInventory::new(gpus), ..PoolState::default() }) }
    }

    /// Assigns GPUs to an adopted worker of this endpoint.
    pub(crate) fn hold(&self, endpoint: EndpointId, worker: &WorkerId, gpus: &[Gpu]) {
        let mut state = self.state();
        state.inventory.hold(worker, gpus);
        state.owners.insert(worker.clone(), endpoint);
    }

    /// Why the next worker of this endpoint gets no GPUs; `None` if it would get some, or needs none.
    pub(crate) fn shortage(&self, now: Millis, resource: &Endpoint) -> Option<PoolShortage> {
        let need = GpuNeed::of(resource)?;
        let state = self.state();
        let why = state.inventory.shortage(now, resource.id, &need)?;
        let holders = match &why {
            Shortage::InUse { holders, .. } => &holders[..],
            Shortage::Impossible | Shortage::Kept { .. } => &[],
        };
        let owned = holders.iter().filter_map(|worker| Some((worker.clone(), *state.owners.get(worker)?)));
        Some(PoolShortage {
            need: need.describe(),
            stock: state.inventory.stock(),
            owners: owned.collect(),
            why,
        })
    }

    /// Frees the GPUs of a worker that exited, and wakes the waiting supervisors if it had any.
    pub(crate) fn free(&self, worker: &WorkerId) {
        let mut state = self.state();
        state.owners.remove(worker);
        if state.inventory.free(worker) {
            state.notify_waiters();
        }
    }

    /// Returns every GPU with its holder, and the endpoints that wait for GPUs, in the order of their turns.
    pub(crate) fn status(&self) -> GpuStatus {
        let state = self.state();
        let gpus = state.inventory.gpus().map(|(gpu, worker)| PooledGpu {
            gpu: gpu.clone(),
            holder: worker.and_then(|worker| Some((worker.clone(), *state.owners.get(worker)?))),
        });
        GpuStatus { gpus: gpus.collect(), line: state.inventory.waiters().copied().collect() }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    /// Wakes all waiting supervisors, the first waiter first.
    fn notify_waiters(&self) {
        self.inventory
            .waiters()
            .filter_map(|endpoint| self.notifies.get(endpoint))
            .for_each(|notify| notify.notify_one());
    }

    /// Removes an endpoint from the waiters.
    fn leave(&mut self, endpoint: &EndpointId) {
        if self.notifies.remove(endpoint).is_some() {
            self.inventory.leave(endpoint);
            // GPUs may have been reserved for the endpoint.
            self.notify_waiters();
        }
    }
}

/// The access of one endpoint to the pool. While no GPUs are free for its next worker, the endpoint is a waiter;
/// dropping this value ends that.
#[derive(Debug)]
pub(crate) struct GpuWaiter {
    gpus: Arc<GpuPool>,
    endpoint: EndpointId,
    notify: Arc<Notify>,
}

impl GpuWaiter {
    /// Returns the access of an endpoint, which is no waiter yet.
    pub(crate) fn new(gpus: Arc<GpuPool>, endpoint: EndpointId) -> Self {
        Self { gpus, endpoint, notify: Arc::default() }
    }

    /// Assigns GPUs to a worker and returns them. Empty if the worker needs none, or the pool has none.
    ///
    /// # Errors
    ///
    /// [`PlacementError::InUse`] if not enough GPUs are free: the endpoint is a waiter from now on.
    /// [`PlacementError::NeverFits`] if the computer does not have such GPUs.
    pub(crate) fn place(
        &self,
        now: Millis,
        resource: &Endpoint,
        worker: &WorkerId,
    ) -> Result<Vec<Gpu>, PlacementError> {
        let mut state = self.gpus.state();
        let Some(need) = GpuNeed::of(resource).filter(|_| state.inventory.gpus().next().is_some()) else {
            return Ok(Vec::new());
        };
        let placed = state.inventory.place(now, self.endpoint, worker, &need);
        match &placed {
            Ok(_) => drop(state.owners.insert(worker.clone(), self.endpoint)),
            Err(PlacementError::InUse(_)) => {
                state.notifies.insert(self.endpoint, Arc::clone(&self.notify));
            }
            Err(PlacementError::NeverFits(_)) => {}
        }
        placed
    }

    /// Frees the GPUs of a worker that was not started.
    pub(crate) fn free(&self, worker: &WorkerId) {
        self.gpus.free(worker);
    }

    /// Ends the wait of the endpoint.
    pub(crate) fn leave(&self) {
        self.gpus.state().leave(&self.endpoint);
    }

    /// Waits until GPUs may have become free for the endpoint.
    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for GpuWaiter {
    fn drop(&mut self) {
        self.leave();
    }
}
