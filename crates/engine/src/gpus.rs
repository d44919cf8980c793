//! The machine's GPUs, which the supervisors of all endpoints share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_fleet::{GpuNeed, Rack, Shortage};
use longshore_model::{Endpoint, EndpointId, Gpu, Millis, WorkerId};
use tokio::sync::Notify;

/// The machine's GPUs, and who waits for them. Without any, every worker finds a place: there is nothing to share out.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    desk: Mutex<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    rack: Rack,
    /// How to wake those who wait.
    bells: BTreeMap<EndpointId, Arc<Notify>>,
}

impl Gpus {
    pub(crate) fn new(gpus: Vec<Gpu>) -> Self {
        Self { desk: Mutex::new(Desk { rack: Rack::new(gpus), bells: BTreeMap::new() }) }
    }

    /// An earlier server started this worker with these.
    pub(crate) fn hold(&self, worker: &WorkerId, gpus: &[Gpu]) {
        self.desk().rack.hold(worker, gpus);
    }

    /// The worker is gone: those who wait look again.
    pub(crate) fn free(&self, worker: &WorkerId) {
        let mut desk = self.desk();
        if desk.rack.free(worker) {
            desk.ring();
        }
    }

    /// Every GPU, with whether it is free.
    pub(crate) fn list(&self) -> Vec<(Gpu, bool)> {
        self.desk().rack.gpus().map(|(gpu, is_free)| (gpu.clone(), is_free)).collect()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Wakes everybody in line, the first one first.
    fn ring(&self) {
        self.rack.line().filter_map(|endpoint| self.bells.get(endpoint)).for_each(|bell| bell.notify_one());
    }

    fn leave(&mut self, endpoint: &EndpointId) {
        if self.bells.remove(endpoint).is_some() {
            self.rack.leave(endpoint);
            // Something may have been kept for it.
            self.ring();
        }
    }
}

/// One endpoint's place in the line. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct Claim {
    gpus: Arc<Gpus>,
    endpoint: EndpointId,
    bell: Arc<Notify>,
}

impl Claim {
    pub(crate) fn new(gpus: Arc<Gpus>, endpoint: EndpointId) -> Self {
        Self { gpus, endpoint, bell: Arc::default() }
    }

    /// The GPUs that the worker is to have. Where there are none for it yet, the endpoint is in line from now on.
    pub(crate) fn place(
        &self,
        now: Millis,
        record: &Endpoint,
        worker: &WorkerId,
    ) -> Result<Vec<Gpu>, Shortage> {
        let mut desk = self.gpus.desk();
        let Some(need) = GpuNeed::of(record).filter(|_| desk.rack.gpus().next().is_some()) else {
            return Ok(Vec::new());
        };
        let placed = desk.rack.place(now, self.endpoint, worker, &need);
        if let Err(Shortage::Taken(_)) = &placed {
            desk.bells.insert(self.endpoint, Arc::clone(&self.bell));
        }
        placed
    }

    /// A worker that was placed was not started after all.
    pub(crate) fn free(&self, worker: &WorkerId) {
        self.gpus.free(worker);
    }

    /// No worker of the endpoint waits any more.
    pub(crate) fn leave(&self) {
        self.gpus.desk().leave(&self.endpoint);
    }

    /// Waits until it may be worth looking again.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.leave();
    }
}
