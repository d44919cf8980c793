//! Workers of endpoints with the provider `external`, started by their owner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{ForeignJobs, Worker};
use crate::endpoints::{Endpoints, KnownEndpoint};
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Longest interval between two checks by the owner, in ms.
const CHECK_INTERVAL_MS_MAX: u64 = 10_000;

/// The owner of external workers.
struct ExternalOwner {
    world: World,
    rng: Rng,
    endpoints: Endpoints,
    foreign_jobs: ForeignJobs,
    started: u64,
    fleets: BTreeMap<Arc<str>, Fleet>,
}

/// The workers of one endpoint.
struct Fleet {
    size: u64,
    workers: Vec<Worker>,
}

/// Starts the owner of external workers.
pub fn start(world: &World, rng: &mut Rng, endpoints: Endpoints) -> Process {
    let process = world.tasks.process();
    let mut owner = ExternalOwner {
        world: world.clone(),
        rng: rng.fork(),
        endpoints,
        foreign_jobs: ForeignJobs::default(),
        started: 0,
        fleets: BTreeMap::new(),
    };
    process.spawn(async move {
        loop {
            let pause = owner.rng.range(500..=CHECK_INTERVAL_MS_MAX);
            sleep(Duration::from_millis(pause)).await;
            owner.check_fleets();
        }
    });
    process
}

impl ExternalOwner {
    fn check_fleets(&mut self) {
        let present = self.endpoints.present();
        for (id, fleet) in &mut self.fleets {
            if !present.iter().any(|endpoint| endpoint.id == *id) {
                fleet.size = 0;
            }
        }
        for endpoint in &present {
            self.check_fleet(endpoint);
        }
        for fleet in self.fleets.values_mut() {
            fleet.workers.retain(|worker| worker.ending().is_none());
            for worker in &fleet.workers[(fleet.size as usize).min(fleet.workers.len())..] {
                worker.terminate();
            }
        }
        self.fleets.retain(|_, fleet| fleet.size > 0 || !fleet.workers.is_empty());
    }

    fn check_fleet(&mut self, endpoint: &KnownEndpoint) {
        let Some(variables) = &endpoint.external else { return };
        let is_quiet = self.world.faults.are_over();
        if !self.fleets.contains_key(&endpoint.id) {
            let size = self.rng.range(1..=4);
            self.fleets.insert(endpoint.id.clone(), Fleet { size, workers: Vec::new() });
        }
        let Some(fleet) = self.fleets.get_mut(&endpoint.id) else { return };
        if !is_quiet && self.rng.chance(0.01) {
            fleet.size = self.rng.range(1..=4);
        }
        // The owner notices a hung worker only after a delay.
        for worker in fleet.workers.iter().filter(|worker| worker.hangs()) {
            if is_quiet || self.rng.chance(0.1) {
                worker.kill();
            }
        }
        fleet.workers.retain(|worker| worker.ending().is_none());
        for _ in fleet.workers.len() as u64..fleet.size {
            self.started += 1;
            let mut variables = BTreeMap::clone(variables);
            variables.insert("RUNPOD_POD_ID".to_owned(), format!("outside-{}", self.started));
            let worker =
                Worker::start(&self.world, &mut self.rng, &self.foreign_jobs, &endpoint.id, &variables);
            fleet.workers.extend(worker);
        }
    }
}
