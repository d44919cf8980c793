//! The signals of a round, held until its commit is durable: wake-ups, stop signals, webhook calls, fleet events.

use std::sync::Arc;

use longshore_model::{JobEnd, JobId, JobKey, JobRow, Millis, WorkerId};
use tokio::sync::oneshot;

use super::request::EndWaiter;
use crate::Jobs;
use crate::endpoint_shared::EndpointShared;
use crate::failures::FailedJob;
use crate::job_feed::RoundChanges;
use crate::owner_use::UseBySubmitter;
use crate::stream_tail::{StreamTail, TailEvent};
use crate::supervisor::FleetEvent;
use crate::traces::JobFact;

/// The signals of one round. All of them are volatile: a lost one delays work and loses none, because rows or a later
/// request cause it again.
#[derive(Default)]
pub(crate) struct PostCommit {
    /// Waiters for the end of a job, and the row of its end.
    pub(crate) ended: Vec<(EndWaiter, JobRow)>,
    /// Waiters dropped after the commit. Their clients' requests then read the job again.
    pub(crate) dropped: Vec<EndWaiter>,
    /// Waiters for the next chunk of a stream.
    pub(crate) streams: Vec<oneshot::Sender<()>>,
    /// Events of followed jobs, in the order in which they happened.
    pub(crate) tails: Vec<(Arc<StreamTail>, TailEvent)>,
    /// Jobs that a worker must stop.
    pub(crate) stops: Vec<(WorkerId, JobId)>,
    /// Events for the endpoint's supervisor; at most one [`FleetEvent::Demand`].
    pub(crate) fleet: Vec<FleetEvent>,
    /// Webhook calls that report an end, and the time from which each is due.
    pub(crate) webhooks: Vec<(JobId, JobKey, JobEnd, Millis)>,
    /// Running jobs with a new progress value that a webhook reports.
    pub(crate) progress: Vec<JobId>,
    /// The names of payload files that belong to no row after the commit, and are deleted.
    pub(crate) blobs: Vec<String>,
    /// Jobs submitted and ended in this round, by submitter.
    pub(crate) used: UseBySubmitter,
    /// Jobs that failed in this round.
    pub(crate) failed: Vec<FailedJob>,
    /// Parts of traced jobs' lives that ended.
    pub(crate) facts: Vec<JobFact>,
    /// Whether a reader of events is there: the changes of this round's jobs are collected.
    pub(crate) is_watched: bool,
    /// The changes of jobs, for readers of events; `None` while there is no reader.
    pub(crate) changes: Option<Box<RoundChanges>>,
}

impl PostCommit {
    /// Whether the round caused no signal.
    pub(crate) fn is_empty(&self) -> bool {
        self.ended.is_empty()
            && self.dropped.is_empty()
            && self.streams.is_empty()
            && self.tails.is_empty()
            && self.stops.is_empty()
            && self.fleet.is_empty()
            && self.webhooks.is_empty()
            && self.progress.is_empty()
            && self.blobs.is_empty()
            && self.used.is_empty()
            && self.failed.is_empty()
            && self.facts.is_empty()
            && self.changes.is_none()
    }

    /// Sends the signals. To be called when the commit is durable. After a failed commit they are dropped, which also ends
    /// the waits in them; the clients' requests then register their waits again.
    pub(crate) fn release(self, shared: &Arc<EndpointShared>) {
        // A waiter whose client has disconnected has no receiver.
        for (waiter, row) in self.ended {
            let _ = waiter.send(row);
        }
        for waiter in self.streams {
            let _ = waiter.send(());
        }
        for (tail, event) in self.tails {
            tail.publish(event);
        }
        for (worker, job) in &self.stops {
            shared.stop_signals.send(worker, *job);
        }
        for event in self.fleet {
            shared.notify_fleet(event);
        }
        for (job, key, end, due_at) in self.webhooks {
            shared.enqueue_webhook(job, key, end, 0, due_at);
        }
        for job in self.progress {
            shared.services.webhooks.progressed(Jobs::new(Arc::clone(shared)), job);
        }
        shared.count_use(self.used);
        if !self.failed.is_empty() {
            let record = shared.record();
            let (version, keeps_text) = (record.version, record.keep_failure_texts);
            shared.services.failures.add(shared.id, version, keeps_text, self.failed);
        }
        if !self.facts.is_empty() {
            shared.trace(self.facts);
        }
        if let Some(changes) = self.changes {
            shared.job_feed.add(*changes);
        }
        shared.delete_blobs(self.blobs);
    }
}
