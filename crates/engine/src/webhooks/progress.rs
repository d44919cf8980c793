//! Sends progress calls: the latest progress value of a running job, at most once per pause and job.
//!
//! The first value of a job is sent immediately, then the latest one after each pause in which there was a new one. A
//! call is made once: not stored, not retried, and dropped if the limiter has no permit, since calls for ends go first.

use std::collections::HashMap;
use std::time::Duration;

use longshore_model::JobId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::WebhookSource;
use super::attempt::AttemptSender;

/// Limit of concurrent progress calls; over it, a job's value waits for its next pause.
const CALLS_MAX: usize = 16;

/// A job whose pause is not over.
struct ThrottledJob<H> {
    handle: H,
    /// There is a value that was not sent.
    has_new_value: bool,
}

/// Sends progress calls for the jobs of a channel until its senders are dropped.
pub(super) async fn run<H: WebhookSource>(
    pause: Duration,
    sender: AttemptSender,
    mut notices: mpsc::Receiver<(H, JobId)>,
) {
    let mut throttled: HashMap<JobId, ThrottledJob<H>> = HashMap::new();
    // When the pauses end. In the order of time, since all pauses are equally long.
    let mut ends = std::collections::VecDeque::new();
    let mut calls = JoinSet::new();
    loop {
        let next: Option<(Instant, JobId)> = ends.front().copied();
        let due = tokio::select! {
            biased;
            notice = notices.recv() => match notice {
                Some((handle, job)) => match throttled.get_mut(&job) {
                    Some(throttled) => {
                        throttled.has_new_value = true;
                        None
                    }
                    None => Some((handle, job)),
                },
                None => return,
            },
            Some(_) = calls.join_next() => None,
            () = sleep_until(next.map_or_else(Instant::now, |(end, _)| end)), if next.is_some() => {
                ends.pop_front();
                let over = next.and_then(|(_, job)| Some((throttled.remove(&job)?, job)));
                over.filter(|(throttled, _)| throttled.has_new_value).map(|(it, job)| (it.handle, job))
            }
        };
        let Some((handle, job)) = due else { continue };
        ends.push_back((Instant::now() + pause, job));
        let is_full = calls.len() >= CALLS_MAX;
        throttled.insert(job, ThrottledJob { handle: handle.clone(), has_new_value: is_full });
        if !is_full {
            let sender = sender.clone();
            calls.spawn(async move { drop(sender.send_progress(&handle, job).await) });
        }
    }
}
