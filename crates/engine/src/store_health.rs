//! Whether the store can write: the result of its last commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

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
    fault: Mutex<Option<Fault>>,
    /// When [`StoreHealth::may_try`] last returned true, in ms.
    tried_at: AtomicU64,
}

#[derive(Debug)]
struct Fault {
    /// The error of the last commit.
    error: String,
    /// When the first commit failed.
    began: Instant,
    /// The same as a time of day, computed once: computed again, it can differ by 1 ms. `None` until it is asked for.
    since: Option<Millis>,
}

impl StoreHealth {
    /// Notes the result of a commit that had writes. An outdated epoch says nothing about the disk.
    pub(crate) fn note(&self, result: &Result<(), StoreError>) {
        let error = match result {
            Ok(()) if !self.has_failed.load(Ordering::Acquire) => return,
            Err(StoreError::StaleEpoch { .. }) => return,
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        let mut present = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_failed.store(error.is_some(), Ordering::Release);
        let (began, since) =
            present.as_ref().map_or_else(|| (Instant::now(), None), |fault| (fault.began, fault.since));
        *present = error.map(|error| Fault { error, began, since });
    }

    /// Returns why the last commit failed, and since when commits have failed; `None` if it succeeded.
    pub(crate) fn fault(&self, now: Millis) -> Option<(String, Millis)> {
        if !self.has_failed.load(Ordering::Acquire) {
            return None;
        }
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = fault.as_mut()?;
        let failing_for = || u64::try_from(fault.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let since = *fault.since.get_or_insert_with(|| Millis(now.0.saturating_sub(failing_for())));
        Some((fault.error.clone(), since))
    }

    /// Returns whether a write may be tried at `now`. Returns true at most once per second.
    pub(crate) fn may_try(&self, now: Millis) -> bool {
        let last = self.tried_at.load(Ordering::Relaxed);
        now.0 >= last + TRY_INTERVAL_MS
            && self.tried_at.compare_exchange(last, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
