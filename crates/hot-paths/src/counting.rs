//! What the history counts of a job, whether or not anyone reads it.

use std::hint::black_box;
use std::process::exit;

use longshore_history::Activity;
use longshore_model::{JobState, Millis};

/// Counts the submit, the delivery and the result of `times` jobs, each with the load that its round publishes, and exits.
pub fn whole_job(times: u64) {
    let activity = Activity::default();
    for job in 0..times {
        let since = Some(Millis(1_700_000_000_000 + job));
        black_box(&activity).submitted(black_box(100));
        activity.publish_load(black_box(job + 1), black_box(0), since);
        activity.delivered(black_box(job));
        activity.publish_load(black_box(job), black_box(1), since);
        activity.put_out(black_box(100));
        activity.ended(black_box(JobState::Completed), Some(black_box(job)));
        activity.publish_load(black_box(job), black_box(0), since);
    }
    exit(i32::from(black_box(activity).totals().completed != times))
}
