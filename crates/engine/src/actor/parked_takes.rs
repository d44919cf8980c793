//! Parked takes: takes that wait in the actor for a job. A take belongs to a connection; when the connection closes, the
//! reply's receiver is dropped and the take counts as closed.

use std::collections::{BTreeMap, HashMap};

use longshore_model::WorkerId;

use super::request::{Given, ReplySender};

/// A take that found no job.
pub(crate) struct ParkedTake {
    pub(crate) worker: WorkerId,
    /// The jobs that the worker has room for; at least 1.
    pub(crate) slots: u32,
    /// Closed when the worker has disconnected.
    pub(crate) reply: ReplySender<Given>,
}

/// Takes from which on closed ones are removed.
const SWEEP_TAKES_MIN: usize = 64;

/// The parked takes of one endpoint, the oldest first. Volatile; kept during a reload.
///
/// There are at most twice as many as open connections with a take, or [`SWEEP_TAKES_MIN`].
#[derive(Default)]
pub(crate) struct ParkedTakes {
    /// By number: older takes have smaller numbers.
    takes: BTreeMap<u64, ParkedTake>,
    /// The numbers of each worker's takes, in no order.
    by_worker: HashMap<WorkerId, Vec<u64>>,
    /// The largest number so far.
    last: u64,
    /// The number of takes at which closed ones are removed next.
    sweep_at: usize,
}

impl ParkedTakes {
    /// Whether the worker has an open take. Removes the worker's closed takes.
    pub(crate) fn overlaps(&mut self, worker: &WorkerId) -> bool {
        let Some(numbers) = self.by_worker.get_mut(worker) else { return false };
        numbers.retain(|number| {
            let is_open = self.takes.get(number).is_some_and(|take| !take.reply.is_closed());
            if !is_open {
                self.takes.remove(number);
            }
            is_open
        });
        let overlaps = !numbers.is_empty();
        if !overlaps {
            self.by_worker.remove(worker);
        }
        overlaps
    }

    /// Whether the worker has an open take.
    pub(crate) fn has_open(&self, worker: &WorkerId) -> bool {
        let numbers = self.by_worker.get(worker).into_iter().flatten();
        numbers.filter_map(|number| self.takes.get(number)).any(|take| !take.reply.is_closed())
    }

    /// Adds a take behind all others. Removes closed takes if the number of takes has doubled since they were last removed:
    /// a worker with a new id every time would leave a closed take each time.
    pub(crate) fn park(&mut self, take: ParkedTake) {
        if self.takes.len() >= self.sweep_at {
            self.remove_closed();
            self.sweep_at = (2 * self.takes.len()).max(SWEEP_TAKES_MIN);
        }
        self.last += 1;
        self.by_worker.entry(take.worker.clone()).or_default().push(self.last);
        self.takes.insert(self.last, take);
    }

    /// Adds a take before all others.
    pub(crate) fn push_front(&mut self, take: ParkedTake) {
        let first = self.takes.first_key_value().map_or(self.last + 1, |(number, _)| *number);
        let number = first.saturating_sub(1);
        self.last = self.last.max(number);
        self.by_worker.entry(take.worker.clone()).or_default().push(number);
        self.takes.insert(number, take);
    }

    /// Removes and returns the oldest open take, and removes the closed takes before it. `None` if no take is open.
    pub(crate) fn pop(&mut self) -> Option<ParkedTake> {
        loop {
            let (number, take) = self.takes.pop_first()?;
            self.remove_number(&take.worker, number);
            if !take.reply.is_closed() {
                return Some(take);
            }
        }
    }

    /// Removes and returns a worker's takes, open or closed, the oldest first unless one was added before the others.
    pub(crate) fn remove(&mut self, worker: &WorkerId) -> Vec<ParkedTake> {
        let numbers = self.by_worker.remove(worker).unwrap_or_default();
        numbers.into_iter().filter_map(|number| self.takes.remove(&number)).collect()
    }

    fn remove_closed(&mut self) {
        let closed: Vec<_> = self.takes.extract_if(.., |_, take| take.reply.is_closed()).collect();
        for (number, take) in closed {
            self.remove_number(&take.worker, number);
        }
    }

    fn remove_number(&mut self, worker: &WorkerId, number: u64) {
        let numbers = self.by_worker.get_mut(worker).expect("a parked take has an entry of its worker");
        numbers.retain(|other| *other != number);
        if numbers.is_empty() {
            self.by_worker.remove(worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    fn take(worker: &str) -> (ParkedTake, oneshot::Receiver<Result<Given, crate::EndpointError>>) {
        let (reply, receiver) = oneshot::channel();
        (ParkedTake { worker: worker.parse().unwrap(), slots: 1, reply }, receiver)
    }

    #[test]
    fn the_oldest_open_take_comes_first() {
        let mut parked = ParkedTakes::default();
        let (first, gone) = take("w1");
        let (second, _open) = take("w2");
        let (third, _open_too) = take("w3");
        for take in [first, second, third] {
            parked.park(take);
        }
        drop(gone);
        let second = parked.pop().unwrap();
        assert_eq!(second.worker.as_str(), "w2");
        parked.push_front(second);
        assert_eq!(parked.pop().unwrap().worker.as_str(), "w2");
        assert_eq!(parked.pop().unwrap().worker.as_str(), "w3");
        assert!(parked.pop().is_none() && parked.by_worker.is_empty());
    }

    #[test]
    fn closed_takes_of_workers_that_never_return_are_removed() {
        let mut parked = ParkedTakes::default();
        let (first, _open) = take("open");
        parked.park(first);
        for number in 0..10 * SWEEP_TAKES_MIN {
            let (closed, receiver) = take(&format!("w{number}"));
            parked.park(closed);
            drop(receiver);
            assert!(parked.takes.len() <= SWEEP_TAKES_MIN);
        }
        assert_eq!(parked.by_worker.len(), parked.takes.len());
        assert_eq!(parked.pop().unwrap().worker.as_str(), "open");
    }

    #[test]
    fn a_closed_take_does_not_overlap() {
        let mut parked = ParkedTakes::default();
        let (first, gone) = take("w1");
        parked.park(first);
        let worker = "w1".parse().unwrap();
        assert!(parked.overlaps(&worker));
        drop(gone);
        assert!(!parked.overlaps(&worker));
        assert!(parked.takes.is_empty());
    }
}
