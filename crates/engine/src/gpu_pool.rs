//! Assigns the computer's GPUs, and its room, to the workers of all endpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_fleet::{GpuInventory, GpuNeed, InLine, PlacementError, Shortage};
use longshore_history::GpuUse;
use longshore_launch::{GpuReading, Limits, WorkerExit};
use longshore_model::{Endpoint, EndpointId, Gpu, Millis, WorkerId};
use tokio::sync::Notify;

use crate::capacity::{Capacity, CapacityUse};
use crate::supervisor::environment::limits;

/// The computer's GPUs, their workers, and the endpoints that wait for GPUs; and what else all workers share. A pool without
/// GPUs places every worker, with no GPU. Volatile; one per server.
#[derive(Debug, Default)]
pub(crate) struct GpuPool {
    state: Mutex<PoolState>,
    /// Whether a worker with a GPU has ended by itself since the driver was asked for that reason.
    ended: Notify,
}

/// The GPUs that workers can get, their holders, and the endpoints that wait for them.
#[derive(Clone, Debug, Default)]
pub struct GpuStatus {
    /// Every GPU of the computer.
    pub gpus: Vec<PooledGpu>,
    /// The endpoints that wait for GPUs, in the order of their turns.
    pub waiting: Vec<EndpointId>,
    /// What the waiting endpoints wait for, of which the computer still has enough GPUs.
    pub line: Vec<InLine>,
    /// The endpoint of each worker that holds GPUs.
    pub owners: BTreeMap<WorkerId, EndpointId>,
}

/// A GPU that workers can get.
#[derive(Clone, Debug)]
pub struct PooledGpu {
    /// The GPU, as the driver or the settings name it.
    pub gpu: Gpu,
    /// The worker that has it, and the worker's endpoint; `None` while it is free.
    pub holder: Option<(WorkerId, EndpointId)>,
    /// Why no worker gets it; `None` while workers can get it.
    pub fault: Option<String>,
    /// What the driver said last; `None` for a GPU of the settings.
    pub reading: Option<GpuReading>,
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
    /// What the driver said last of each device.
    readings: BTreeMap<String, GpuReading>,
    /// The memory, the processors and the number of all workers.
    used: CapacityUse,
}

impl GpuPool {
    /// Returns a pool with these GPUs and this capacity, all free.
    pub(crate) fn new(gpus: Vec<Gpu>, capacity: Capacity) -> Self {
        let (inventory, used) = (GpuInventory::new(gpus), CapacityUse::new(capacity));
        let state = Mutex::new(PoolState { inventory, used, ..PoolState::default() });
        Self { state, ended: Notify::new() }
    }

    /// Why there is no room for a worker with these limits, its GPUs left aside; `None` if there is.
    pub(crate) fn no_room(&self, limits: &Limits) -> Option<String> {
        self.state().used.shortage(limits)
    }

    /// Notes what the driver says of the GPUs now. Does nothing in a pool without GPUs: its workers start without regard to
    /// them. Returns the workers that hold a GPU that has become sick, each with its endpoint and the reason.
    pub(crate) fn note_readings(&self, readings: Vec<GpuReading>) -> Vec<(WorkerId, EndpointId, String)> {
        let mut state = self.state();
        if state.inventory.gpus().next().is_none() {
            return Vec::new();
        }
        let listed: Vec<_> = readings.iter().map(|it| (it.gpu.clone(), it.fault.clone())).collect();
        let sick = state.inventory.update(&listed);
        state.readings = readings.into_iter().map(|it| (it.gpu.device.clone(), it)).collect();
        // A GPU may be there again.
        state.notify_waiters();
        let owned = sick.into_iter().filter_map(|(worker, reason)| {
            let endpoint = *state.owners.get(&worker)?;
            Some((worker, endpoint, reason))
        });
        owned.collect()
    }

    /// Notes that the driver does not answer. No worker gets a GPU until it does.
    pub(crate) fn note_unreadable(&self, reason: &str) {
        self.state().inventory.set_unreadable(reason.to_owned());
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
            Shortage::Impossible | Shortage::Sick(_) | Shortage::Kept { .. } => &[],
        };
        let owned = holders.iter().filter_map(|worker| Some((worker.clone(), *state.owners.get(worker)?)));
        Some(PoolShortage {
            need: need.describe(),
            stock: state.inventory.stock(),
            owners: owned.collect(),
            why,
        })
    }

    /// Notes that a worker ended by itself. Its GPU may be the cause.
    pub(crate) fn note_end(&self, exited: &WorkerExit) {
        if !exited.expected && !exited.placement.gpus.is_empty() {
            self.ended.notify_one();
        }
    }

    /// Returns when a worker with a GPU has ended by itself since the last call.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Frees the GPUs and the room of a worker that exited, and wakes the supervisors that wait for them.
    pub(crate) fn free(&self, worker: &WorkerId) {
        let mut state = self.state();
        state.owners.remove(worker);
        state.used.free(worker);
        if state.inventory.free(worker) {
            state.notify_waiters();
        }
    }

    /// How much the GPUs of each endpoint's workers compute, as the driver said last. A sick GPU does not count.
    pub(crate) fn use_by_endpoint(&self) -> BTreeMap<EndpointId, GpuUse> {
        let state = self.state();
        let mut uses: BTreeMap<EndpointId, GpuUse> = BTreeMap::new();
        for (gpu, worker) in state.inventory.gpus() {
            let owner = worker.and_then(|worker| state.owners.get(worker));
            let percent = state.readings.get(&gpu.device).and_then(|reading| reading.use_percent);
            if let (Some(owner), Some(percent), None) = (owner, percent, state.inventory.fault(&gpu.device)) {
                let of_endpoint = uses.entry(*owner).or_default();
                of_endpoint.read += 1;
                of_endpoint.percents += u32::from(percent.min(100));
            }
        }
        uses
    }

    /// Returns every GPU with its holder, and the endpoints that wait for GPUs, in the order of their turns.
    pub(crate) fn status(&self) -> GpuStatus {
        let state = self.state();
        let gpus = state.inventory.gpus().map(|(gpu, worker)| PooledGpu {
            gpu: gpu.clone(),
            holder: worker.and_then(|worker| Some((worker.clone(), *state.owners.get(worker)?))),
            fault: state.inventory.fault(&gpu.device).map(str::to_owned),
            reading: state.readings.get(&gpu.device).cloned(),
        });
        GpuStatus {
            gpus: gpus.collect(),
            waiting: state.inventory.waiters().copied().collect(),
            line: state.inventory.line(),
            owners: state.owners.clone(),
        }
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

/// The access of one endpoint to the pool. While no GPUs or no room are free for its next worker, the endpoint is a waiter;
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

    /// Promises a worker the memory and the processors of its endpoint's limits, assigns GPUs to it and returns them. Empty if
    /// the worker needs none, or the pool has none.
    ///
    /// # Errors
    ///
    /// What is not free, as text. The worker has nothing then, and the endpoint waits until that may have become free. It does
    /// not wait for GPUs that the computer does not have.
    pub(crate) fn place(
        &self,
        now: Millis,
        resource: &Endpoint,
        worker: &WorkerId,
    ) -> Result<Vec<Gpu>, String> {
        let mut state = self.gpus.state();
        let limits = limits(resource);
        if let Some(reason) = state.used.shortage(&limits) {
            state.used.wait(self.endpoint, &self.notify);
            return Err(reason);
        }
        let need = GpuNeed::of(resource).filter(|_| state.inventory.gpus().next().is_some());
        let gpus = match need {
            Some(need) => self.place_gpus(&mut state, now, worker, &need)?,
            None => Vec::new(),
        };
        state.used.hold(worker, &limits);
        Ok(gpus)
    }

    fn place_gpus(
        &self,
        state: &mut PoolState,
        now: Millis,
        worker: &WorkerId,
        need: &GpuNeed,
    ) -> Result<Vec<Gpu>, String> {
        let placed = state.inventory.place(now, self.endpoint, worker, need);
        match &placed {
            Ok(_) => drop(state.owners.insert(worker.clone(), self.endpoint)),
            Err(PlacementError::InUse(_)) => {
                state.notifies.insert(self.endpoint, Arc::clone(&self.notify));
            }
            Err(PlacementError::NeverFits(_)) => {}
        }
        placed.map_err(|shortage| shortage.reason().to_owned())
    }

    /// Notes the memory and the processors of an adopted worker.
    pub(crate) fn hold_room(&self, worker: &WorkerId, limits: &Limits) {
        self.gpus.state().used.hold(worker, limits);
    }

    /// Frees what a worker has that was not started.
    pub(crate) fn free(&self, worker: &WorkerId) {
        self.gpus.free(worker);
    }

    /// Ends the wait of the endpoint.
    pub(crate) fn leave(&self) {
        let mut state = self.gpus.state();
        state.used.leave(&self.endpoint);
        state.leave(&self.endpoint);
    }

    /// Waits until GPUs or room may have become free for the endpoint.
    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for GpuWaiter {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(device: &str, use_percent: Option<u8>) -> GpuReading {
        let gpu = Gpu { device: device.to_owned(), type_id: "L4".to_owned(), memory_mib: 1 };
        GpuReading { use_percent, ..GpuReading::of(gpu) }
    }

    #[test]
    fn the_use_of_gpus_is_that_of_the_endpoint_whose_workers_hold_them() {
        let devices = ["0", "1", "2", "3"];
        let well = |percents: [Option<u8>; 4]| {
            devices
                .into_iter()
                .zip(percents)
                .map(|(device, percent)| reading(device, percent))
                .collect::<Vec<_>>()
        };
        let readings = well([Some(80), Some(7), None, Some(99)]);
        let pool = GpuPool::new(readings.iter().map(|it| it.gpu.clone()).collect(), Capacity::default());
        let (one, other) = (EndpointId::mint(1), EndpointId::mint(2));
        pool.hold(one, &"w-1".parse().unwrap(), &[readings[0].gpu.clone(), readings[2].gpu.clone()]);
        pool.hold(other, &"w-2".parse().unwrap(), &[readings[1].gpu.clone()]);
        assert!(pool.use_by_endpoint().is_empty(), "no driver has said anything");
        pool.note_readings(readings);
        let known = |read, percents| GpuUse { read, percents };
        assert_eq!(pool.use_by_endpoint(), BTreeMap::from([(one, known(1, 80)), (other, known(1, 7))]));
        // A sick GPU is none that computes, and of GPUs that cannot be read nothing is known.
        let mut sick = well([Some(80), Some(7), Some(20), None]);
        sick[0].fault = Some("requires reset".to_owned());
        pool.note_readings(sick);
        assert_eq!(pool.use_by_endpoint(), BTreeMap::from([(one, known(1, 20)), (other, known(1, 7))]));
        pool.note_unreadable("nvidia-smi failed");
        assert!(pool.use_by_endpoint().is_empty());
    }
}
