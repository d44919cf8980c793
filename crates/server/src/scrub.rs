//! Reads stored files in the background at a limited rate and reports damage.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longshore_http::ScrubReport;
use longshore_store::Scrub;
use tokio::time::{Instant, sleep, sleep_until};

/// Most bytes per read; each read is followed by a pause that keeps the rate.
const STEP_BYTES_MAX: u64 = 4 << 20;
/// Most damaged places that are logged; further ones are only counted.
const TOLD_MAX: usize = 10_000;

/// The rate and interval of passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes per second; 0 disables the reading.
    pub(crate) bytes_per_second: u64,
    /// Time between the starts of two passes. A longer pass is followed immediately.
    pub(crate) interval: Duration,
}

/// Reads all stored files in repeated passes. Stops when its task is dropped.
pub(crate) async fn run(mut scrub: Scrub, pace: Pace, report: Arc<ScrubReport>) {
    if pace.bytes_per_second == 0 {
        return;
    }
    let step_bytes = pace.bytes_per_second.min(STEP_BYTES_MAX);
    let mut told = HashSet::new();
    let (mut damaged, mut began) = (0, Instant::now());
    loop {
        let work = tokio::task::spawn_blocking(move || {
            let scrubbed = scrub.step(step_bytes);
            (scrub, scrubbed)
        });
        let Ok((back, scrubbed)) = work.await else {
            tracing::error!("background reading of stored files stopped");
            return;
        };
        scrub = back;
        report.read(scrubbed.bytes);
        for damage in scrubbed.damages {
            damaged += 1;
            if told.len() < TOLD_MAX && told.insert(damage.to_string()) {
                tracing::error!(
                    file = damage.file,
                    at = damage.at,
                    what = damage.what,
                    "stored file is damaged; run `longshore store verify` and check the disk"
                );
                report.damaged();
            }
        }
        sleep(Duration::from_secs_f64(scrubbed.bytes as f64 / pace.bytes_per_second as f64)).await;
        if scrubbed.is_pass_over {
            report.pass_over(damaged);
            damaged = 0;
            // Damage that this pass did not find was in files that were deleted.
            sleep_until(began + pace.interval).await;
            began = Instant::now();
        }
    }
}
