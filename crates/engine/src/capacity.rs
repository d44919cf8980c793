//! The memory, the processors and the number of workers that the computer of the managed workers has for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_launch::Limits;
use longshore_model::{EndpointId, WorkerId};
use tokio::sync::Notify;

const BYTES_PER_MIB: u64 = 1 << 20;

/// What all managed workers may have together. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capacity {
    /// The memory of all workers with a limit of their own, in bytes.
    pub memory_bytes: Option<u64>,
    /// The number of processors of all workers with a limit of their own.
    pub vcpus: Option<f64>,
    /// The number of workers.
    pub workers_max: Option<u32>,
}

/// The capacity, what each worker has of it, and the endpoints that wait for more.
#[derive(Debug, Default)]
pub(crate) struct CapacityUse {
    capacity: Capacity,
    workers: BTreeMap<WorkerId, Limits>,
    /// Wakes the supervisors of the endpoints whose next worker does not fit.
    waiters: BTreeMap<EndpointId, Arc<Notify>>,
}

impl CapacityUse {
    /// The use of a capacity that no worker has a part of.
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Notes what a worker has. One of an earlier server may exceed the capacity.
    pub(crate) fn hold(&mut self, worker: &WorkerId, limits: &Limits) {
        self.workers.insert(worker.clone(), *limits);
    }

    /// Frees what a worker has, and wakes the waiting supervisors if it had anything.
    pub(crate) fn free(&mut self, worker: &WorkerId) {
        if self.workers.remove(worker).is_some() {
            self.waiters.values().for_each(|waiter| waiter.notify_one());
        }
    }

    /// Makes an endpoint wait until another worker has ended.
    pub(crate) fn wait(&mut self, endpoint: EndpointId, waiter: &Arc<Notify>) {
        self.waiters.insert(endpoint, Arc::clone(waiter));
    }

    /// Ends the wait of an endpoint.
    pub(crate) fn leave(&mut self, endpoint: &EndpointId) {
        self.waiters.remove(endpoint);
    }

    /// What a worker with these limits lacks, as text; `None` if it can start.
    pub(crate) fn shortage(&self, limits: &Limits) -> Option<String> {
        self.too_many().or_else(|| self.no_memory(limits)).or_else(|| self.no_processors(limits))
    }

    fn too_many(&self) -> Option<String> {
        let workers = self.workers.len();
        let max = self.capacity.workers_max.filter(|max| workers >= *max as usize)?;
        let noun = if workers == 1 { "worker" } else { "workers" };
        Some(format!("the server runs {workers} {noun}, and `workers_max_total` is {max}"))
    }

    fn no_memory(&self, limits: &Limits) -> Option<String> {
        let (total, wanted) = (self.capacity.memory_bytes?, limits.memory_bytes?);
        let taken = self.workers.values().filter_map(|it| it.memory_bytes).fold(0, u64::saturating_add);
        let free = total.saturating_sub(taken);
        let shown = |bytes: u64| format!("{} MiB", bytes / BYTES_PER_MIB);
        let need = format!("a worker needs {} of memory (`memoryBytes`)", shown(wanted));
        if wanted > total {
            return Some(format!(
                "{need}; workers may have {} together (`workers_memory_bytes_max`)",
                shown(total)
            ));
        }
        (wanted > free)
            .then(|| format!("{need}; {} of {} are not promised to other workers", shown(free), shown(total)))
    }

    fn no_processors(&self, limits: &Limits) -> Option<String> {
        let (total, wanted) = (self.capacity.vcpus?, limits.vcpus?);
        let taken: f64 = self.workers.values().filter_map(|it| it.vcpus).sum();
        let free = (total - taken).max(0.0);
        let noun = if wanted <= 1.0 { "processor" } else { "processors" };
        let need = format!("a worker needs {wanted} {noun} (`vcpus`)");
        if wanted > total {
            return Some(format!("{need}; workers may have {total} together (`workers_vcpus_max`)"));
        }
        // Sums of tenths are not exact.
        (wanted > free + f64::from(f32::EPSILON)).then(|| {
            let free = (free * 100.0).round() / 100.0;
            format!("{need}; {free} of {total} are not promised to other workers")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str) -> WorkerId {
        name.parse().unwrap()
    }

    /// Gives a worker what its limits name, if that is free.
    fn reserve(used: &mut CapacityUse, name: &str, limits: Limits) -> Result<(), String> {
        used.shortage(&limits).map_or(Ok(()), Err)?;
        used.hold(&worker(name), &limits);
        Ok(())
    }

    fn limits(mib: Option<u64>, vcpus: Option<f64>) -> Limits {
        Limits { memory_bytes: mib.map(|mib| mib * BYTES_PER_MIB), vcpus }
    }

    #[test]
    fn what_is_promised_to_a_worker_is_not_given_twice() {
        let capacity =
            Capacity { memory_bytes: Some(100 * BYTES_PER_MIB), vcpus: Some(2.0), workers_max: Some(3) };
        let mut used = CapacityUse::new(capacity);
        reserve(&mut used, "a", limits(Some(60), Some(1.5))).unwrap();
        assert_eq!(
            reserve(&mut used, "b", limits(Some(41), None)).unwrap_err(),
            "a worker needs 41 MiB of memory (`memoryBytes`); 40 MiB of 100 MiB are not promised to other workers"
        );
        assert_eq!(
            reserve(&mut used, "b", limits(None, Some(1.0))).unwrap_err(),
            "a worker needs 1 processor (`vcpus`); 0.5 of 2 are not promised to other workers"
        );
        reserve(&mut used, "b", limits(Some(40), Some(0.5))).unwrap();
        reserve(&mut used, "c", Limits::default()).unwrap();
        let reason = reserve(&mut used, "d", Limits::default()).unwrap_err();
        assert_eq!(reason, "the server runs 3 workers, and `workers_max_total` is 3");
        used.free(&worker("a"));
        reserve(&mut used, "d", limits(Some(60), Some(1.5))).unwrap();
    }

    #[test]
    fn what_can_never_fit_is_told_with_the_setting() {
        let capacity =
            Capacity { memory_bytes: Some(BYTES_PER_MIB), vcpus: Some(2.0), ..Capacity::default() };
        let used = CapacityUse::new(capacity);
        assert_eq!(
            used.shortage(&limits(Some(2), None)).unwrap(),
            "a worker needs 2 MiB of memory (`memoryBytes`); workers may have 1 MiB together (`workers_memory_bytes_max`)"
        );
        assert_eq!(
            used.shortage(&limits(None, Some(2.5))).unwrap(),
            "a worker needs 2.5 processors (`vcpus`); workers may have 2 together (`workers_vcpus_max`)"
        );
    }

    #[test]
    fn without_limits_everything_fits_and_adopted_workers_may_exceed_them() {
        let mut used = CapacityUse::default();
        reserve(&mut used, "a", Limits { memory_bytes: Some(u64::MAX), vcpus: Some(1e9) }).unwrap();
        let mut used = CapacityUse::new(Capacity { vcpus: Some(1.0), ..Capacity::default() });
        used.hold(&worker("a"), &limits(None, Some(4.0)));
        assert!(reserve(&mut used, "b", limits(None, Some(0.5))).unwrap_err().contains("0 of 1 are"));
    }

    #[test]
    fn tenths_of_processors_add_up() {
        let mut used = CapacityUse::new(Capacity { vcpus: Some(1.0), ..Capacity::default() });
        for n in 0..10 {
            reserve(&mut used, &format!("w{n}"), limits(None, Some(0.1))).unwrap();
        }
        assert!(used.shortage(&limits(None, Some(0.1))).is_some());
    }

    #[test]
    fn the_end_of_a_worker_wakes_the_waiting_endpoints() {
        let mut used = CapacityUse::new(Capacity { workers_max: Some(1), ..Capacity::default() });
        reserve(&mut used, "a", Limits::default()).unwrap();
        let (stays, left) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        used.wait(EndpointId::mint(1), &stays);
        used.wait(EndpointId::mint(2), &left);
        used.leave(&EndpointId::mint(2));
        used.free(&worker("b"));
        let woken = |waiter: &Arc<Notify>| {
            let mut notified = std::pin::pin!(waiter.notified());
            notified.as_mut().enable()
        };
        assert!(!woken(&stays), "the worker had nothing");
        used.free(&worker("a"));
        assert!(woken(&stays) && !woken(&left));
    }
}
