//! The engine's view of time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_model::Millis;

/// Tells the time. A simulator brings its own.
pub trait Clock: Send + Sync + 'static {
    /// The present time. Never less than what an earlier call answered.
    fn now(&self) -> Millis;
}

/// The wall clock, held still while the machine's clock steps back.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_ms: AtomicU64,
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = since_epoch.as_millis() as u64;
        Millis(self.latest_ms.fetch_max(now_ms, Ordering::Relaxed).max(now_ms))
    }
}
