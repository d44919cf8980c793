//! Whether the store can write: the result of its last commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longshore_model::Millis;
use longshore_store::StoreError;
use tokio::time::Instant;

/// Shortest time between two writes that only find out whether the store can write again, in ms.
const TRY_INTERVAL_MS: u64 = 1_000;

/// The result of the last commit of any shard. Starts without a fault.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    /// Whether `fault` is set: a commit that succeeds after another takes no lock.
    has_failed: AtomicBool,
    /// The error of the last commit, and when the first commit of the fault failed.
    fault: Mutex<Option<(String, Instant)>>,
    /// When [`StoreHealth::may_try`] last returned true, in ms.
    tried_at: AtomicU64,
}

impl StoreHealth {
    /// Notes the result of a commit that had writes. An outdated epoch says nothing about the disk.
    pub(crate) fn note(&self, result: &Result<(), StoreError>) {
        let fault = match result {
            Ok(()) if !self.has_failed.load(Ordering::Acquire) => return,
            Err(StoreError::StaleEpoch { .. }) => return,
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        let mut present = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_failed.store(fault.is_some(), Ordering::Release);
        let since = present.as_ref().map(|(_, since)| *since);
        *present = fault.map(|error| (error, since.unwrap_or_else(Instant::now)));
    }

    /// Returns why the last commit failed, and for how long commits have failed; `None` if it succeeded.
    pub(crate) fn fault(&self) -> Option<(String, Duration)> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.as_ref().map(|(error, since)| (error.clone(), since.elapsed()))
    }

    /// Returns whether a write may be tried at `now`. Returns true at most once per second.
    pub(crate) fn may_try(&self, now: Millis) -> bool {
        let last = self.tried_at.load(Ordering::Relaxed);
        now.0 >= last + TRY_INTERVAL_MS
            && self.tried_at.compare_exchange(last, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
