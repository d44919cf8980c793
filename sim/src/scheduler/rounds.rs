//! Rounds of runnable tasks: what becomes runnable during a round runs in the next one, in the order of the tasks' numbers.
//!
//! `tokio::sync::watch` wakes the tasks that wait for a value in a random order, which no seed determines. The order of a round does
//! not depend on who was woken first. Tasks that were aborted are dropped between two rounds, in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use tokio::sync::Notify;

use super::lock;

/// What a task runs.
pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Decides when tasks run.
#[derive(Default)]
pub(super) struct Rounds {
    last_number: AtomicU64,
    next: Mutex<NextRound>,
    /// There is something to do before or in the next round.
    is_needed: Notify,
}

#[derive(Default)]
struct NextRound {
    /// The tasks that can run.
    waiting: BTreeMap<u64, Waker>,
    /// The tasks of the present round that have not run yet.
    admitted: BTreeSet<u64>,
    /// The tasks that were aborted.
    aborted: BTreeMap<u64, TaskFuture>,
    /// Whether the world has ended.
    is_over: bool,
}

impl Rounds {
    /// Begins with tasks of the current runtime.
    pub(super) fn begin() -> Arc<Self> {
        let rounds = Arc::new(Self::default());
        tokio::spawn(RoundsEnd(Arc::clone(&rounds)).run());
        rounds
    }

    /// The number of a new task.
    pub(super) fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether a task may run now. If not, it is woken in the next round.
    pub(super) fn admits(&self, number: u64, waker: &Waker) -> bool {
        let mut next = lock(&self.next);
        if next.admitted.remove(&number) {
            return true;
        }
        next.waiting.insert(number, waker.clone());
        drop(next);
        self.is_needed.notify_one();
        false
    }

    /// Drops a task that was aborted, before the next round.
    pub(super) fn bury(&self, number: u64, task: TaskFuture) {
        let mut next = lock(&self.next);
        next.admitted.remove(&number);
        next.waiting.remove(&number);
        if next.is_over {
            // The task is dropped without the lock: what it holds may wake others.
            return drop(next);
        }
        next.aborted.insert(number, task);
        drop(next);
        self.is_needed.notify_one();
    }
}

/// Ends the rounds with the runtime.
struct RoundsEnd(Arc<Rounds>);

impl RoundsEnd {
    async fn run(self) {
        let rounds = &*self.0;
        loop {
            rounds.is_needed.notified().await;
            let aborted = std::mem::take(&mut lock(&rounds.next).aborted);
            drop(aborted);
            let waiting = {
                let mut next = lock(&rounds.next);
                let waiting = std::mem::take(&mut next.waiting);
                next.admitted.extend(waiting.keys());
                waiting
            };
            waiting.values().for_each(Waker::wake_by_ref);
        }
    }
}

impl Drop for RoundsEnd {
    fn drop(&mut self) {
        let mut next = lock(&self.0.next);
        next.is_over = true;
        let left = (std::mem::take(&mut next.aborted), std::mem::take(&mut next.waiting));
        drop(next);
        drop(left);
    }
}
