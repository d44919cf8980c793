//! Takes that wait for a job. They belong to a connection and are gone with it.

use std::collections::{BTreeMap, HashMap};

use longshore_model::WorkerId;

use super::request::{Given, ReplySender};

pub(crate) struct ParkedTake {
    pub(crate) worker: WorkerId,
    pub(crate) slots: u32,
    pub(crate) reply: ReplySender<Given>,
}

/// The open takes, longest waiting first.
#[derive(Default)]
pub(crate) struct ParkedTakes {
    takes: BTreeMap<u64, ParkedTake>,
    by_worker: HashMap<WorkerId, Vec<u64>>,
    last: u64,
}

impl ParkedTakes {
    /// Whether the worker has another take open; those that hung up do not count and are dropped.
    pub(crate) fn overlaps(&mut self, worker: &WorkerId) -> bool {
        let Some(numbers) = self.by_worker.get_mut(worker) else { return false };
        numbers.retain(|number| {
            let open = self.takes.get(number).is_some_and(|take| !take.reply.is_closed());
            if !open {
                self.takes.remove(number);
            }
            open
        });
        let any = !numbers.is_empty();
        if !any {
            self.by_worker.remove(worker);
        }
        any
    }

    pub(crate) fn park(&mut self, take: ParkedTake) {
        self.last += 1;
        self.by_worker.entry(take.worker.clone()).or_default().push(self.last);
        self.takes.insert(self.last, take);
    }

    /// Puts a take back to where it was: first.
    pub(crate) fn push_front(&mut self, take: ParkedTake) {
        let first = self.takes.first_key_value().map_or(self.last + 1, |(number, _)| *number);
        let number = first.saturating_sub(1);
        self.last = self.last.max(number);
        self.by_worker.entry(take.worker.clone()).or_default().push(number);
        self.takes.insert(number, take);
    }

    /// The take that has waited longest and is still open.
    pub(crate) fn pop(&mut self) -> Option<ParkedTake> {
        loop {
            let (number, take) = self.takes.pop_first()?;
            self.unlist(&take.worker, number);
            if !take.reply.is_closed() {
                return Some(take);
            }
        }
    }

    /// A worker's open takes.
    pub(crate) fn remove(&mut self, worker: &WorkerId) -> Vec<ParkedTake> {
        let numbers = self.by_worker.remove(worker).unwrap_or_default();
        numbers.into_iter().filter_map(|number| self.takes.remove(&number)).collect()
    }

    fn unlist(&mut self, worker: &WorkerId, number: u64) {
        let numbers = self.by_worker.get_mut(worker).expect("a parked take is listed by its worker");
        numbers.retain(|listed| *listed != number);
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
    fn the_longest_waiting_open_take_comes_first() {
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
    fn a_take_that_hung_up_does_not_overlap() {
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
