//! Queries: requests that read the queue and change nothing.
//!
//! A query is data and not a closure, so that a node of a cluster could send it to another one. Its reply is held like any
//! other one, until every row that the query read is durable.

use longshore_fleet::{WaitingJob, WaitingQueue, WorkerContact};
use longshore_model::{Counters, JobId, JobRow, Millis, WorkerPhase};
use longshore_queue::{Page, Queue, QueueLoad, Refusal, StateCounts, WorkerLoad};

use super::Actor;
use super::held_reply::HeldReply;
use super::request::ReplySender;
use crate::{EndpointError, FleetView, JobFilter, WorkerView};

/// A request that reads the queue.
pub(crate) enum Query {
    /// One job's row; `None` if the view has no such job.
    Job { job: JobId, view: View, reply: ReplySender<Option<Box<JobRow>>> },
    /// A queued job's position, counted from 1; `None` for an unknown job or one in another state.
    Position { job: JobId, reply: ReplySender<Option<u64>> },
    /// One page of the jobs that match the filter, newest first.
    Jobs { filter: Box<JobFilter>, reply: ReplySender<Box<Page>> },
    /// The endpoint's counters, its load, and the load of each worker.
    Health { reply: ReplySender<Box<QueueHealth>> },
    /// What the queue knows about why a job waits; `None`: why the endpoint's jobs wait. `NoSuchJob` for an unknown job.
    Waiting { job: Option<JobId>, reply: ReplySender<Box<Waiting>> },
    /// The load and the workers, as the supervisor plans with them.
    Fleet { reply: ReplySender<Box<FleetView>> },
}

/// Which form of a job's row a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The row as clients see it: `None` once the job has expired, `CANCELLED` once it is purged, even before the stored
    /// row changes.
    Visible,
    /// The stored row, also of an expired job that is stored only until its webhook call is settled.
    Stored,
    /// The row as clients see it, or else the stored row.
    VisibleOrStored,
}

/// Why a job, or the jobs of an endpoint, wait, as far as the queue knows.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// What the queue knows. It does not know why a job was requeued.
    pub(crate) queue: WaitingQueue,
    /// The row of the job.
    pub(crate) row: Option<JobRow>,
}

/// A queue's counts in one round.
#[derive(Debug)]
pub(crate) struct QueueHealth {
    /// Jobs that ended, by state, since the endpoint was created.
    pub(crate) counters: Counters,
    /// Queued and running jobs.
    pub(crate) load: QueueLoad,
    /// The stored jobs by state.
    pub(crate) states: StateCounts,
    /// The jobs of each worker that the queue knows.
    pub(crate) workers: Vec<WorkerLoad>,
}

impl Query {
    /// Sends the error as the reply, without reading the queue.
    pub(crate) fn reject(self, why: &EndpointError) {
        // The receiver may have disconnected.
        match self {
            Self::Job { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Position { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Jobs { reply, .. } => drop(reply.send(Err(why.clone()))),
            Self::Health { reply } => drop(reply.send(Err(why.clone()))),
            Self::Fleet { reply } => drop(reply.send(Err(why.clone()))),
            Self::Waiting { reply, .. } => drop(reply.send(Err(why.clone()))),
        }
    }
}

impl Actor {
    /// Reads the queue and holds the reply until this round is durable.
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
            Query::Jobs { filter, reply } => {
                let page = queue.page(&filter.conditions, filter.limit, filter.before, now);
                self.hold(HeldReply::Page, reply, Ok(Box::new(page)));
            }
            Query::Health { reply } => {
                let workers = queue.worker_loads().collect();
                let (counters, load, states) = (queue.counters(), queue.load(), queue.state_counts());
                let health = QueueHealth { counters, load, states, workers };
                self.hold(HeldReply::Health, reply, Ok(Box::new(health)));
            }
            Query::Fleet { reply } => {
                let view = fleet_view(queue, now);
                self.hold(HeldReply::Fleet, reply, Ok(Box::new(view)));
            }
            Query::Waiting { job, reply } => {
                let waiting = self.waiting(job).map(Box::new).map_err(EndpointError::Refused);
                self.hold(HeldReply::Waiting, reply, waiting);
            }
        }
    }
}

impl Actor {
    /// What the queue knows about why a job waits, in logarithmic time of its jobs and linear time of its workers.
    fn waiting(&self, job: Option<JobId>) -> Result<Waiting, Refusal> {
        let (queue, now) = (&self.queue, self.now());
        let row = job.map(|job| queue.find_visible(job, now).ok_or(Refusal::NoSuchJob)).transpose()?;
        let load = queue.load();
        let workers = queue.worker_loads().map(|worker| {
            let asks = self.parked.has_open(&worker.id) || worker.phase != WorkerPhase::Idle;
            let silent_ms = now.since(worker.last_take.max(worker.idle_since));
            WorkerContact { phase: worker.phase, silent_ms: (!asks).then_some(silent_ms) }
        });
        let queue = WaitingQueue {
            position: job.and_then(|job| queue.position(job)),
            queued: load.queued,
            queued_normal: load.queued_normal,
            running: load.running,
            oldest_normal_since: load.oldest_normal_since,
            jobs_max: self.shared.services.settings.of_queue(&self.shared.record()).jobs_max,
            workers: workers.collect(),
            last_take_at: queue.last_take(),
            job: row.as_ref().map(|row| waiting_job(row, queue.deferred_until(row.id))),
        };
        Ok(Waiting { queue, row })
    }
}

fn waiting_job(row: &JobRow, deferred_until: Option<Millis>) -> WaitingJob {
    WaitingJob {
        state: row.state,
        low_priority: row.low_priority,
        enqueued_at: row.enqueued_at,
        started_at: row.started_at,
        finished_at: row.finished_at,
        delete_at: row.delete_at,
        retries: row.retries,
        requeue: None,
        deferred_until,
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
        jobs: queue.jobs_of(&worker.id),
        id: worker.id,
        phase: worker.phase,
        running: worker.running,
        jobs_done: worker.jobs_done,
        last_contact: worker.last_contact,
        address: worker.address.filter(|_| !worker.managed),
        health: None,
    });
    FleetView {
        queued_normal: load.queued_normal,
        queued: load.queued,
        running: load.running,
        oldest_normal_wait_ms: load.oldest_normal_since.map(|since| now.since(since)),
        workers: workers.collect(),
    }
}
