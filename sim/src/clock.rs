//! The clocks of the server's computer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;

use crate::observation::Moment;

/// The wall clock at the start of a world, in ms since 1970.
const BEGINNING_MS: i64 = 1_767_225_600_000;

/// Simulated time, and a wall clock that may jump. Cheap to clone.
#[derive(Clone)]
pub struct Clock {
    began: Instant,
    wall_offset_ms: Arc<AtomicI64>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { began: Instant::now(), wall_offset_ms: Arc::new(AtomicI64::new(BEGINNING_MS)) }
    }
}

impl Clock {
    /// Reads the simulated time and the wall clock.
    pub fn now(&self) -> Moment {
        let ms = self.began.elapsed().as_millis() as u64;
        Moment { ms, wall_ms: ms.saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed)) }
    }

    /// Moves the wall clock by `by_ms`; negative values move it back.
    pub fn jump(&self, by_ms: i64) {
        self.wall_offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}
