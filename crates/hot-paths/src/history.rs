//! What the history adds to the life of a job: an endpoint's actor counts it, whether or not the history is read.

use std::hint::black_box;
use std::process::exit;

use longshore_history::Activity;
use longshore_model::{JobState, Millis};

/// The bytes of the input and of the output of a job.
const PAYLOAD_BYTES: u64 = 100;

/// Counts the submit, the delivery and the end of `times` jobs, each in a round of its own, and exits.
pub fn count(times: u64) {
    let activity = Activity::default();
    for number in 0..times {
        let activity = black_box(&activity);
        let (delay_ms, ran_ms) = (black_box(number % 1_000), black_box(7 * number % 60_000));
        activity.submitted(PAYLOAD_BYTES);
        activity.publish_load(1, 0, Some(Millis(1_700_000_000_000 + number)));
        activity.delivered(delay_ms);
        activity.publish_load(0, 1, None);
        activity.put_out(PAYLOAD_BYTES);
        activity.ended(JobState::Completed, Some(ran_ms));
        activity.publish_load(0, 0, None);
    }
    assert_eq!(activity.totals().completed, times, "every job was counted");
    exit(0);
}
