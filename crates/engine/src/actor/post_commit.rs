//! What must happen after a commit, and not before: wake-ups, stop signals, webhooks, scaling.

use std::sync::Arc;

use longshore_model::{JobEnd, JobId, JobKey, JobRow, Millis, WorkerId};
use tokio::sync::oneshot;

use super::request::EndWaiter;
use crate::EndpointHandle;
use crate::endpoint_shared::EndpointShared;
use crate::owner_use::UseBySubmitter;
use crate::stream_tail::{StreamTail, TailEvent};
use crate::supervisor::FleetEvent;

/// Signals that collect until the commit that covers them.
#[derive(Default)]
pub(crate) struct PostCommit {
    pub(crate) ended: Vec<(EndWaiter, JobRow)>,
    /// Waiters dropped after the commit. Their clients' requests then read the job again.
    pub(crate) dropped: Vec<EndWaiter>,
    pub(crate) streams: Vec<oneshot::Sender<()>>,
    pub(crate) tails: Vec<(Arc<StreamTail>, TailEvent)>,
    pub(crate) stops: Vec<(WorkerId, JobId)>,
    pub(crate) fleet: Vec<FleetEvent>,
    pub(crate) hooks: Vec<(JobId, JobKey, JobEnd, Millis)>,
    /// Running jobs with a new progress value that somebody wants to be told of.
    pub(crate) progress: Vec<JobId>,
    pub(crate) blobs: Vec<String>,
    pub(crate) used: UseBySubmitter,
}

impl PostCommit {
    pub(crate) fn is_empty(&self) -> bool {
        self.ended.is_empty()
            && self.dropped.is_empty()
            && self.streams.is_empty()
            && self.tails.is_empty()
            && self.stops.is_empty()
            && self.fleet.is_empty()
            && self.hooks.is_empty()
            && self.progress.is_empty()
            && self.blobs.is_empty()
            && self.used.is_empty()
    }

    /// Does all of it, after the commit. After a failed one it is dropped with the queue that decided it: waits come back
    /// by themselves.
    pub(crate) fn carry_out(self, shared: &Arc<EndpointShared>) {
        for (watch, row) in self.ended {
            let _ = watch.send(row);
        }
        for watch in self.streams {
            let _ = watch.send(());
        }
        for (tail, news) in self.tails {
            tail.publish(news);
        }
        for (worker, job) in &self.stops {
            shared.stop_signals.send(worker, *job);
        }
        for event in self.fleet {
            shared.notify_fleet(event);
        }
        for (job, key, end, due_at) in self.hooks {
            shared.enqueue_webhook(job, key, end, 0, due_at);
        }
        for job in self.progress {
            shared.services.webhooks.progressed(EndpointHandle::new(Arc::clone(shared)), job);
        }
        shared.count_use(self.used);
        shared.delete_blobs(self.blobs);
    }
}
