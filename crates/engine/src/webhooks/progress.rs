//! Tells how far running jobs are, as well as it goes: nothing of it is kept, tried again or waited for.
//!
//! A job is told about at once and then at most once in a pause, with the latest value then. What finds no room is
//! left out, for the end of a job comes first.

use std::collections::HashMap;
use std::time::Duration;

use longshore_model::JobId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::WebhookSource;
use super::attempt::AttemptSender;

/// Calls being made at a time.
const CALLS_MAX: usize = 16;

/// A job that was told about a moment ago.
struct ThrottledJob<H> {
    handle: H,
    /// There is a newer value.
    is_stale: bool,
}

/// Tells what it hears until the other end of the channel is gone.
pub(super) async fn run<H: WebhookSource>(
    pause: Duration,
    caller: AttemptSender,
    mut heard: mpsc::Receiver<(H, JobId)>,
) {
    let mut recent: HashMap<JobId, ThrottledJob<H>> = HashMap::new();
    // In the order of time: each is added a pause from now.
    let mut ends = std::collections::VecDeque::new();
    let mut calls = JoinSet::new();
    loop {
        let next: Option<(Instant, JobId)> = ends.front().copied();
        let news = tokio::select! {
            biased;
            news = heard.recv() => match news {
                Some((handle, job)) => match recent.get_mut(&job) {
                    Some(recent) => {
                        recent.is_stale = true;
                        None
                    }
                    None => Some((handle, job)),
                },
                None => return,
            },
            Some(_) = calls.join_next() => None,
            () = sleep_until(next.map_or_else(Instant::now, |(end, _)| end)), if next.is_some() => {
                ends.pop_front();
                let over = next.and_then(|(_, job)| Some((recent.remove(&job)?, job)));
                over.filter(|(recent, _)| recent.is_stale).map(|(recent, job)| (recent.handle, job))
            }
        };
        let Some((handle, job)) = news else { continue };
        ends.push_back((Instant::now() + pause, job));
        let is_late = calls.len() >= CALLS_MAX;
        recent.insert(job, ThrottledJob { handle: handle.clone(), is_stale: is_late });
        if !is_late {
            let caller = caller.clone();
            calls.spawn(async move { drop(caller.tell_progress(&handle, job).await) });
        }
    }
}
