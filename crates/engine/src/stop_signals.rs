//! Holds stop signals until the workers fetch them by their stop polls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longshore_model::{JobId, WorkerId};
use tokio::sync::oneshot;

/// Limit of the pending stop signals of one worker. Beyond it the oldest signal is dropped; a ping that still lists its
/// job causes a new one.
const PENDING_MAX: usize = 1024;

/// The stop signals of one worker.
#[derive(Debug, Default)]
struct StopMailbox {
    /// The jobs to stop, oldest first, without duplicates.
    pending: Vec<JobId>,
    /// Wakes the held poll; closed if that poll was dropped.
    poll: Option<oneshot::Sender<()>>,
    /// The worker is to exit. It waits for the replies to its polls before it does, so no poll is held.
    is_released: bool,
}

/// The stop signals of one endpoint's workers. Volatile: pings that still list a stopped job cause a new signal.
#[derive(Debug, Default)]
pub(crate) struct StopSignals {
    /// Ordered, so that the simulator wakes polls in the same order in every replay.
    by_worker: Mutex<BTreeMap<WorkerId, StopMailbox>>,
}

impl StopSignals {
    /// Adds a stop signal for a job of a worker, and wakes the worker's held poll.
    pub(crate) fn send(&self, worker: &WorkerId, job: JobId) {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(worker.clone()).or_default();
        if !mailbox.pending.contains(&job) {
            mailbox.pending.push(job);
        }
        if mailbox.pending.len() > PENDING_MAX {
            mailbox.pending.remove(0);
        }
        if let Some(poll) = mailbox.poll.take() {
            // A dropped poll is no error: the signal stays pending for the next poll.
            let _ = poll.send(());
        }
    }

    /// Takes the pending signals of a worker.
    ///
    /// # Errors
    ///
    /// A receiver that is woken by the next signal, if no signal is pending and the worker is not released. An older
    /// held poll of the worker returns empty.
    fn fetch(&self, worker: &WorkerId) -> Result<Vec<JobId>, oneshot::Receiver<()>> {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(worker.clone()).or_default();
        if mailbox.pending.is_empty() && !mailbox.is_released {
            let (sender, receiver) = oneshot::channel();
            mailbox.poll = Some(sender);
            Err(receiver)
        } else {
            Ok(std::mem::take(&mut mailbox.pending))
        }
    }

    /// Waits for stop signals and returns the jobs that a worker must stop; empty after `hold` without a signal, and
    /// when the poll is superseded or released.
    pub(crate) async fn next(&self, worker: &WorkerId, hold: Duration) -> Vec<JobId> {
        let _held = HeldPoll { signals: self, worker };
        let next = match self.fetch(worker) {
            Ok(jobs) => return jobs,
            Err(next) => next,
        };
        let is_woken = matches!(tokio::time::timeout(hold, next).await, Ok(Ok(())));
        if is_woken { self.fetch(worker).unwrap_or_default() } else { Vec::new() }
    }

    /// Ends a poll of the worker. An empty mailbox without a held poll is removed until the next poll.
    fn end_poll(&self, worker: &WorkerId) {
        let mut boxes = self.lock();
        let idle = |mailbox: &StopMailbox| {
            !mailbox.is_released
                && mailbox.pending.is_empty()
                && mailbox.poll.as_ref().is_none_or(oneshot::Sender::is_closed)
        };
        if boxes.get(worker).is_some_and(idle) {
            boxes.remove(worker);
        }
    }

    /// Releases a worker: its held poll returns empty, and every later poll returns immediately with the pending
    /// signals.
    pub(crate) fn release(&self, worker: &WorkerId) {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(worker.clone()).or_default();
        mailbox.is_released = true;
        mailbox.poll = None;
    }

    /// Removes a worker with its signals; its held poll returns empty.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        self.lock().remove(worker);
    }

    /// Removes all workers with their signals; every held poll returns empty.
    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<WorkerId, StopMailbox>> {
        self.by_worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A held poll, which ends when this value is dropped: with its reply, or because its connection broke.
struct HeldPoll<'a> {
    signals: &'a StopSignals,
    worker: &'a WorkerId,
}

impl Drop for HeldPoll<'_> {
    fn drop(&mut self) {
        self.signals.end_poll(self.worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_whose_connection_broke_has_no_mailbox() {
        let signals = StopSignals::default();
        let worker: WorkerId = "w1".parse().expect("an id");
        let held = signals.next(&worker, Duration::from_secs(20));
        let broken = tokio::time::timeout(Duration::ZERO, held).await;
        assert!(broken.is_err() && signals.lock().is_empty());
    }

    #[test]
    fn polls_of_a_released_worker_are_not_held_but_return_signals() {
        let signals = StopSignals::default();
        let worker: WorkerId = "w1".parse().expect("an id");
        let mut poll = signals.fetch(&worker).expect_err("no signal: the poll is held");
        signals.release(&worker);
        assert_eq!(poll.try_recv(), Err(oneshot::error::TryRecvError::Closed), "the held poll returns");
        signals.end_poll(&worker);
        assert_eq!(signals.fetch(&worker).ok(), Some(Vec::new()), "later polls are not held");
        let job = JobId::from_parts([7; 16], false);
        signals.send(&worker, job);
        assert_eq!(signals.fetch(&worker).ok(), Some(vec![job]));
        signals.forget(&worker);
        assert!(signals.fetch(&worker).is_err(), "the polls of a new worker of this id are held");
    }
}
