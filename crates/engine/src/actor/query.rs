//! What can be read off a queue. A query is data, so that another process could ask it; its reply is held like any other,
//! until everything that was seen is durable.

use longshore_model::{Counters, JobId, JobRow, Millis};
use longshore_queue::{Page, Queue, QueueLoad, WorkerLoad};

use super::Actor;
use super::held_reply::HeldReply;
use super::request::ReplySender;
use crate::{EndpointError, FleetView, JobFilter, WorkerView};

/// A question that changes nothing.
pub(crate) enum Query {
    /// One job's row; none if there is none in this view.
    Job { job: JobId, view: View, reply: ReplySender<Option<Box<JobRow>>> },
    /// A queued job's position, counted from 1; none for a job in another state.
    Position { job: JobId, reply: ReplySender<Option<u64>> },
    /// One page of the jobs that match the filter, newest first.
    Jobs { filter: JobFilter, reply: ReplySender<Box<Page>> },
    /// The endpoint's counters, its load, and the load of each worker.
    Health { reply: ReplySender<Box<QueueHealth>> },
    /// Load and workers, for the supervisor.
    Fleet { reply: ReplySender<Box<FleetView>> },
}

/// How a job's row is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// As clients see it: none once the job has expired, cancelled once it is purged.
    Visible,
    /// As it is stored, also where only a pending webhook call keeps it.
    Stored,
    /// As clients see it; as it is stored once they do not.
    VisibleOrStored,
}

/// A queue's numbers at one moment.
#[derive(Debug)]
pub(crate) struct QueueHealth {
    pub(crate) counters: Counters,
    pub(crate) load: QueueLoad,
    pub(crate) workers: Vec<WorkerLoad>,
}

impl Query {
    /// Answers without asking the queue.
    pub(crate) fn reject(self, why: &EndpointError) {
        // The receiver may have disconnected.
        match self {
            Self::Job { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Position { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Jobs { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Health { reply } => drop(reply.send(Err(why.clone()))),
            Self::Fleet { reply } => drop(reply.send(Err(why.clone()))),
        }
    }
}

impl Actor {
    pub(super) fn query(&mut self, query: Query) {
        let (queue, now) = (&self.queue, self.now());
        match query {
            Query::Job { job, view, reply } => {
                let row = row(queue, job, view, now).map(Box::new);
                self.hold(HeldReply::MaybeRow, reply, Ok(row));
            }
            Query::Position { job, reply } => {
                let position = queue.position(job);
                self.hold(HeldReply::Position, reply, Ok(position));
            }
            Query::Jobs { filter: JobFilter { state, limit, before }, reply } => {
                let page = queue.page(state, limit, before, now);
                self.hold(HeldReply::Page, reply, Ok(Box::new(page)));
            }
            Query::Health { reply } => {
                let workers = queue.worker_loads().collect();
                let health = QueueHealth { counters: queue.counters(), load: queue.load(), workers };
                self.hold(HeldReply::Health, reply, Ok(Box::new(health)));
            }
            Query::Fleet { reply } => {
                let view = fleet_view(queue, now);
                self.hold(HeldReply::Fleet, reply, Ok(Box::new(view)));
            }
        }
    }
}

fn row(queue: &Queue, job: JobId, view: View, now: Millis) -> Option<JobRow> {
    match view {
        View::Visible => queue.find_visible(job, now),
        View::Stored => queue.find_stored(job),
        View::VisibleOrStored => queue.find_visible(job, now).or_else(|| queue.find_stored(job)),
    }
}

fn fleet_view(queue: &Queue, now: Millis) -> FleetView {
    let load = queue.load();
    let workers = queue.worker_loads().map(|worker| WorkerView {
        idle_ms: if worker.running > 0 { 0 } else { now.since(worker.idle_since) },
        id: worker.id,
        phase: worker.phase,
        running: worker.running,
    });
    FleetView {
        queued_normal: load.queued_normal,
        queued: load.queued,
        running: load.running,
        oldest_normal_wait_ms: load.first_normal_since.map(|since| now.since(since)),
        workers: workers.collect(),
    }
}
