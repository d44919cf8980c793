//! The machine's GPUs, which the supervisors of all endpoints share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_fleet::{GpuInventory, GpuNeed, PlacementError};
use longshore_model::{Endpoint, EndpointId, Gpu, Millis, WorkerId};
use tokio::sync::Notify;

/// The machine's GPUs, and who waits for them. Without any, every worker finds a place: there is nothing to share out.
#[derive(Debug, Default)]
pub(crate) struct GpuPool {
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    inventory: GpuInventory,
    /// How to wake those who wait.
    notifies: BTreeMap<EndpointId, Arc<Notify>>,
}

impl GpuPool {
    pub(crate) fn new(gpus: Vec<Gpu>) -> Self {
        Self {
            state: Mutex::new(PoolState { inventory: GpuInventory::new(gpus), notifies: BTreeMap::new() }),
        }
    }

    /// An earlier server started this worker with these.
    pub(crate) fn hold(&self, worker: &WorkerId, gpus: &[Gpu]) {
        self.state().inventory.hold(worker, gpus);
    }

    /// The worker is gone: those who wait look again.
    pub(crate) fn free(&self, worker: &WorkerId) {
        let mut state = self.state();
        if state.inventory.free(worker) {
            state.notify_waiters();
        }
    }

    /// Every GPU, with whether it is free.
    pub(crate) fn list(&self) -> Vec<(Gpu, bool)> {
        self.state().inventory.gpus().map(|(gpu, is_free)| (gpu.clone(), is_free)).collect()
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    /// Wakes everybody in line, the first one first.
    fn notify_waiters(&self) {
        self.inventory
            .waiters()
            .filter_map(|endpoint| self.notifies.get(endpoint))
            .for_each(|notify| notify.notify_one());
    }

    fn leave(&mut self, endpoint: &EndpointId) {
        if self.notifies.remove(endpoint).is_some() {
            self.inventory.leave(endpoint);
            // Something may have been kept for it.
            self.notify_waiters();
        }
    }
}

/// One endpoint's place in the line. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct GpuWaiter {
    gpus: Arc<GpuPool>,
    endpoint: EndpointId,
    notify: Arc<Notify>,
}

impl GpuWaiter {
    pub(crate) fn new(gpus: Arc<GpuPool>, endpoint: EndpointId) -> Self {
        Self { gpus, endpoint, notify: Arc::default() }
    }

    /// The GPUs that the worker is to have. Where there are none for it yet, the endpoint is in line from now on.
    pub(crate) fn place(
        &self,
        now: Millis,
        record: &Endpoint,
        worker: &WorkerId,
    ) -> Result<Vec<Gpu>, PlacementError> {
        let mut state = self.gpus.state();
        let Some(need) = GpuNeed::of(record).filter(|_| state.inventory.gpus().next().is_some()) else {
            return Ok(Vec::new());
        };
        let placed = state.inventory.place(now, self.endpoint, worker, &need);
        if let Err(PlacementError::InUse(_)) = &placed {
            state.notifies.insert(self.endpoint, Arc::clone(&self.notify));
        }
        placed
    }

    /// A worker that was placed was not started after all.
    pub(crate) fn free(&self, worker: &WorkerId) {
        self.gpus.free(worker);
    }

    /// No worker of the endpoint waits any more.
    pub(crate) fn leave(&self) {
        self.gpus.state().leave(&self.endpoint);
    }

    /// Waits until it may be worth looking again.
    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for GpuWaiter {
    fn drop(&mut self) {
        self.leave();
    }
}
