//! Which node decides about jobs, as an operator would say it.
//!
//! The auditor learns of the same outages as with one server: the owner ended, and another one began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::observation::Observation;
use crate::recorder::Recorder;
use crate::scheduler::Process;

/// The owner that serves. Cheap to clone.
#[derive(Clone)]
pub(super) struct Serving {
    record: Recorder,
    owner: Arc<Mutex<Option<(i32, Process)>>>,
}

impl Serving {
    pub(super) fn new(record: Recorder) -> Self {
        Self { record, owner: Arc::default() }
    }

    fn owner(&self) -> MutexGuard<'_, Option<(i32, Process)>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node has become the owner. The one before it may stand still.
    pub(super) fn begin(&self, node: i32, process: &Process) {
        if self.owner().replace((node, process.clone())).is_some() {
            self.record.observe(&Observation::ServerDown(true));
        }
        self.record.observe(&Observation::ServerUp);
        // Each node has a clock of its own.
        self.record.observe(&Observation::ClockSet);
    }

    /// The process of a node has ended.
    pub(super) fn end(&self, node: i32, killed: bool) {
        let mut owner = self.owner();
        if owner.as_ref().is_some_and(|(owner, _)| *owner == node) {
            *owner = None;
            self.record.observe(&Observation::ServerDown(killed));
        }
    }

    /// Whether another node than this one serves as the owner.
    pub(super) fn is_other(&self, node: i32) -> bool {
        self.owner().as_ref().is_some_and(|(owner, _)| *owner != node)
    }

    /// Kills the owner's process.
    pub(super) fn cut_power(&self) {
        if let Some((_, process)) = &*self.owner() {
            process.kill();
        }
    }
}
