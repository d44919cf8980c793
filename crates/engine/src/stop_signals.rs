//! The stop channel: jobs that a worker must stop, until it asks for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longshore_model::{JobId, WorkerId};
use tokio::sync::oneshot;

/// Stop signals that a worker has not fetched; more than this are dropped, oldest first (a ping that still lists
/// such a job brings its signal back).
const PENDING_MAX: usize = 1024;

#[derive(Debug, Default)]
struct StopMailbox {
    pending: Vec<JobId>,
    poll: Option<oneshot::Sender<()>>,
    /// The worker is to end, for which it waits until its polls are answered: none is held any more.
    leaving: bool,
}

/// The stop signals of one endpoint's workers.
#[derive(Debug, Default)]
pub(crate) struct StopSignals {
    /// Ordered, so that those who are told at once are told in the same order in every replay.
    by_worker: Mutex<BTreeMap<WorkerId, StopMailbox>>,
}

impl StopSignals {
    /// Tells a worker to stop a job, now if it is listening.
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
            // The poll may be gone; then the signal stays pending for the next one.
            let _ = poll.send(());
        }
    }

    /// The signals for a worker; none yet: a receiver that hears of the next. An older poll of the same worker
    /// is answered empty.
    fn fetch(&self, worker: &WorkerId) -> Result<Vec<JobId>, oneshot::Receiver<()>> {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(worker.clone()).or_default();
        if mailbox.pending.is_empty() && !mailbox.leaving {
            let (sender, receiver) = oneshot::channel();
            mailbox.poll = Some(sender);
            Err(receiver)
        } else {
            Ok(std::mem::take(&mut mailbox.pending))
        }
    }

    /// The jobs that a worker must stop, as soon as there are any; empty when `hold` passed without one.
    pub(crate) async fn next(&self, worker: &WorkerId, hold: Duration) -> Vec<JobId> {
        let _open = OpenPoll { stops: self, worker };
        let next = match self.fetch(worker) {
            Ok(jobs) => return jobs,
            Err(next) => next,
        };
        let called = matches!(tokio::time::timeout(hold, next).await, Ok(Ok(())));
        if called { self.fetch(worker).unwrap_or_default() } else { Vec::new() }
    }

    /// The worker's poll ended. A worker that leaves nothing behind is forgotten until it asks again.
    fn hang_up(&self, worker: &WorkerId) {
        let mut boxes = self.lock();
        let idle = |mailbox: &StopMailbox| {
            !mailbox.leaving
                && mailbox.pending.is_empty()
                && mailbox.poll.as_ref().is_none_or(oneshot::Sender::is_closed)
        };
        if boxes.get(worker).is_some_and(idle) {
            boxes.remove(worker);
        }
    }

    /// Answers a worker's open poll, and every later one at once: with what there is to stop, or empty.
    pub(crate) fn release(&self, worker: &WorkerId) {
        let mut boxes = self.lock();
        let mailbox = boxes.entry(worker.clone()).or_default();
        mailbox.leaving = true;
        mailbox.poll = None;
    }

    /// Answers a worker's open poll empty, and forgets the worker.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        self.lock().remove(worker);
    }

    /// Answers every open poll empty.
    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<WorkerId, StopMailbox>> {
        self.by_worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A poll that is being held; it hangs up when it is dropped, also because its connection broke.
struct OpenPoll<'a> {
    stops: &'a StopSignals,
    worker: &'a WorkerId,
}

impl Drop for OpenPoll<'_> {
    fn drop(&mut self) {
        self.stops.hang_up(self.worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_whose_connection_broke_leaves_nothing_behind() {
        let stops = StopSignals::default();
        let worker: WorkerId = "w1".parse().expect("an id");
        let held = stops.next(&worker, Duration::from_secs(20));
        let broken = tokio::time::timeout(Duration::ZERO, held).await;
        assert!(broken.is_err() && stops.lock().is_empty());
    }

    #[test]
    fn a_worker_that_is_to_end_is_held_no_more_but_hears_of_stops() {
        let stops = StopSignals::default();
        let worker: WorkerId = "w1".parse().expect("an id");
        let mut poll = stops.fetch(&worker).expect_err("nothing to stop: held");
        stops.release(&worker);
        assert_eq!(poll.try_recv(), Err(oneshot::error::TryRecvError::Closed), "the open poll is answered");
        stops.hang_up(&worker);
        assert_eq!(stops.fetch(&worker).ok(), Some(Vec::new()), "later ones are not held");
        let job = JobId::from_parts([7; 16], false);
        stops.send(&worker, job);
        assert_eq!(stops.fetch(&worker).ok(), Some(vec![job]));
        stops.forget(&worker);
        assert!(stops.fetch(&worker).is_err(), "a new worker of that name is held again");
    }
}
