//! Asks the drivers at intervals how their GPUs are.

use std::time::Duration;

use longshore_engine::Engine;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// After this many questions without an answer, no worker gets a GPU.
const FAILURES_MAX: u32 = 3;

/// Begins to ask the drivers, if there is an interval.
pub(crate) fn begin(tasks: &mut JoinSet<()>, every: Option<Duration>, engine: &Engine) {
    if let Some(every) = every {
        tasks.spawn(watch(engine.clone(), every));
    }
}

/// Asks the drivers at intervals how their GPUs are, and when a worker with a GPU has ended by itself, and tells the engine.
/// Runs until its task is dropped.
async fn watch(engine: Engine, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failures = 0_u32;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = engine.gpu_worker_ended() => {}
        }
        match longshore_launch::read_gpus().await {
            Ok(readings) => {
                failures = 0;
                engine.note_gpus(readings);
            }
            Err(reason) => {
                failures = failures.saturating_add(1);
                if failures <= FAILURES_MAX {
                    tracing::warn!(reason, failures, "the GPUs could not be read");
                }
                if failures >= FAILURES_MAX {
                    engine.note_gpus_unreadable(&reason);
                }
            }
        }
    }
}
