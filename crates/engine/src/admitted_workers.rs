//! The managed workers of an endpoint whose own tokens are valid.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use longshore_model::WorkerId;

/// The managed workers of one endpoint, from before their start until their exit. Written by the supervisor, read by
/// every request of a worker. Volatile.
#[derive(Debug, Default)]
pub struct AdmittedWorkers(RwLock<Option<BTreeSet<WorkerId>>>);

impl AdmittedWorkers {
    /// Adds the workers that run already. Before the first call every worker is permitted: the workers of an earlier
    /// server go on before they are adopted.
    pub fn adopt(&self, present: impl Iterator<Item = WorkerId>) {
        self.change(|workers| workers.get_or_insert_default().extend(present));
    }

    /// Adds a worker that is about to be started.
    pub fn add(&self, worker: WorkerId) {
        self.adopt(std::iter::once(worker));
    }

    /// Removes a worker that has exited, or that was not started.
    pub fn remove(&self, worker: &WorkerId) {
        self.change(|workers| {
            if let Some(workers) = workers {
                workers.remove(worker);
            }
        });
    }

    /// Whether the token of a worker is valid.
    pub fn permits(&self, worker: &WorkerId) -> bool {
        let workers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        workers.as_ref().is_none_or(|workers| workers.contains(worker))
    }

    /// A poisoned set is valid, because every change is one call.
    fn change(&self, change: impl FnOnce(&mut Option<BTreeSet<WorkerId>>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_permitted_from_its_start_to_its_exit() {
        let (workers, one, other): (_, WorkerId, WorkerId) =
            (AdmittedWorkers::default(), "one".parse().unwrap(), "other".parse().unwrap());
        workers.remove(&one);
        assert!(workers.permits(&one), "nothing is known before the adoption");
        workers.adopt([one.clone()].into_iter());
        assert!(workers.permits(&one) && !workers.permits(&other));
        workers.add(other.clone());
        workers.remove(&one);
        assert!(!workers.permits(&one) && workers.permits(&other));
    }
}
