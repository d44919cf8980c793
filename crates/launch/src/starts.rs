//! The starts of a launcher that are in progress, so that a stop can cancel them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_model::WorkerId;
use tokio::sync::watch;

use crate::LaunchError;

/// The starts in progress. A clone is another handle of the same list.
#[derive(Clone, Debug, Default)]
pub struct Starts(Arc<Mutex<HashMap<WorkerId, watch::Sender<bool>>>>);

impl Starts {
    /// Notes that a start begins. The start is in progress until the drop of the returned value.
    #[must_use]
    pub fn begin(&self, worker: &WorkerId) -> StartInProgress {
        let (sender, is_cancelled) = watch::channel(false);
        self.list().insert(worker.clone(), sender);
        StartInProgress { starts: self.clone(), worker: worker.clone(), is_cancelled }
    }

    /// Cancels the start of a worker and waits for its end. Returns immediately if the worker is not being started.
    pub async fn cancel(&self, worker: &WorkerId) {
        let Some(sender) = self.list().get(worker).cloned() else { return };
        sender.send_replace(true);
        sender.closed().await;
    }

    /// Returns whether a worker is being started.
    pub fn contains(&self, worker: &WorkerId) -> bool {
        self.list().contains_key(worker)
    }

    fn list(&self) -> MutexGuard<'_, HashMap<WorkerId, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A start in progress.
#[derive(Debug)]
pub struct StartInProgress {
    starts: Starts,
    worker: WorkerId,
    is_cancelled: watch::Receiver<bool>,
}

impl StartInProgress {
    /// Returns when the start is cancelled.
    pub async fn cancelled(&self) {
        let mut is_cancelled = self.is_cancelled.clone();
        // The sender lives as long as the start.
        let _ = is_cancelled.wait_for(|cancelled| *cancelled).await;
    }

    /// Returns whether the start is cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.is_cancelled.borrow()
    }

    /// The error of a start that was cancelled.
    pub fn error(&self) -> LaunchError {
        LaunchError(format!("worker {} was stopped before it ran", self.worker))
    }
}

impl Drop for StartInProgress {
    fn drop(&mut self) {
        self.starts.list().remove(&self.worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_returns_when_the_start_has_ended() {
        let starts = Starts::default();
        let worker: WorkerId = "w1".parse().unwrap();
        starts.cancel(&worker).await;
        let start = starts.begin(&worker);
        assert!(!start.is_cancelled());
        let cancel = tokio::spawn({
            let (starts, worker) = (starts.clone(), worker.clone());
            async move { starts.cancel(&worker).await }
        });
        start.cancelled().await;
        assert!(start.is_cancelled() && !cancel.is_finished());
        drop(start);
        cancel.await.unwrap();
        starts.cancel(&worker).await;
    }
}
