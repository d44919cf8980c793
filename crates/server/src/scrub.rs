//! Reads stored files in the background, so many bytes a second, and tells what is damaged.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longshore_http::ScrubReport;
use longshore_store::Scrub;
use tokio::time::{Instant, sleep, sleep_until};

/// Read at once, at most; then it waits for as long as the budget says.
const STEP_BYTES_MAX: u64 = 4 << 20;
/// Damaged places beyond these are counted, and not told of.
const TOLD_MAX: usize = 10_000;

/// How fast, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes per second; 0: not at all.
    pub(crate) bytes_per_second: u64,
    /// A pass begins so long after the one before, or at its end.
    pub(crate) interval: Duration,
}

/// Reads everything again and again. Ends with the task that it runs in.
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
            tracing::error!(
                "stored files are not read in the background any more: the reading did not finish"
            );
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
                    "a stored file is damaged; look at all of it with `longshore store verify`, and after the disk"
                );
                report.damaged();
            }
        }
        sleep(Duration::from_secs_f64(scrubbed.bytes as f64 / pace.bytes_per_second as f64)).await;
        if scrubbed.is_pass_over {
            report.pass_over(damaged);
            damaged = 0;
            // What a pass finds no more was given up meanwhile.
            sleep_until(began + pace.interval).await;
            began = Instant::now();
        }
    }
}
