//! Whether the disk has too little space for new jobs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use longshore_model::Millis;

/// Why the disk has too little space. Volatile; set by the server, which looks at the disk.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    /// Whether `reason` is set: a submit reads this alone.
    is_set: AtomicBool,
    /// With the time since which the disk has too little space.
    reason: Mutex<Option<(String, Millis)>>,
}

impl Shortage {
    /// Sets the reason. Returns whether a shortage began or ended.
    pub(crate) fn set(&self, reason: Option<String>, now: Millis) -> bool {
        let is_short = reason.is_some();
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let since = known.as_ref().map_or(now, |(_, since)| *since);
        *known = reason.map(|reason| (reason, since));
        self.is_set.swap(is_short, Ordering::AcqRel) != is_short
    }

    /// Returns whether the disk has too little space.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Returns why the disk has too little space; `None` if it has enough.
    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(reason, _)| reason.clone())
    }

    /// Returns since when the disk has too little space; `None` if it has enough.
    pub(crate) fn since(&self) -> Option<Millis> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, since)| *since)
    }
}
