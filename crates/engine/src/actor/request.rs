//! The requests to an actor, and the types of their replies.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, JobKey, JobRow, Millis, RequestNo, WorkerId};
use longshore_queue::{Report, Submit};
use longshore_store::{OutcomeRow, Payload, StoreError, StreamRow};
use tokio::sync::oneshot;

use super::query::Query;
use crate::payload_budget::BudgetPermit;
use crate::stream_tail::StreamTail;
use crate::workers::take::Undelivered;
use crate::{Accepted, EndpointError, TakeRequest};

/// Sends the reply of a request. A closed channel is no error: the client or worker has disconnected.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, EndpointError>>;

/// Receives the job's row when the job ends. Dropped if the job is deleted, the queue is reloaded or the server stops.
pub(crate) type EndWaiter = oneshot::Sender<JobRow>;

/// A message in an actor's mailbox. A request with a reply carries the channel for it; the reply is sent when every row
/// that it depends on is durable.
pub(crate) enum Request {
    /// A client submits a job. `watch` receives the row of its end.
    Submit { submit: Submit, input: Payload, watch: Option<EndWaiter>, reply: ReplySender<Accepted> },
    /// A worker requests up to `slots` jobs; parked until one is ready. `says_busy`: whether the worker has jobs in progress,
    /// `None` if it does not say.
    Take { worker: WorkerId, request: TakeRequest, reply: ReplySender<Given> },
    /// Jobs that were assigned to a worker but could not be delivered.
    Undelivered { jobs: Vec<Undelivered>, reply: ReplySender<()> },
    /// Reply to the worker's parked takes with no job. A take that has got a job is no longer parked.
    Unpark { worker: WorkerId },
    /// A worker reports a result. Replies whether the report counted.
    Report { worker: WorkerId, job: JobId, report: Report, outcome: OutcomeRow, reply: ReplySender<bool> },
    /// A worker reports a progress value, which `outcome` has as its output.
    Progress { worker: WorkerId, job: JobId, outcome: OutcomeRow, reply: ReplySender<()> },
    /// A worker appends to a job's stream. A `post` whose number the stream has appends nothing.
    Append {
        worker: WorkerId,
        job: JobId,
        post: Option<RequestNo>,
        chunks: Vec<Bytes>,
        reply: ReplySender<Appended>,
    },
    /// A contact of a worker that needs no reply: renews its lease.
    TouchWorker { worker: WorkerId },
    /// A worker's heartbeat, with the jobs that it runs; `None` if it does not list them.
    Ping { worker: WorkerId, holds: Option<Vec<JobId>>, reply: ReplySender<()> },
    /// A client cancels a job.
    Cancel { job: JobId, reply: ReplySender<Box<JobRow>> },
    /// A client retries a failed or timed-out job.
    Retry { job: JobId, reply: ReplySender<Box<JobRow>> },
    /// A client sets the time of a job's deletion to `ttl_ms` from now; with `only_ended`, of no job that is queued or runs.
    SetTtl { job: JobId, ttl_ms: u64, only_ended: bool, reply: ReplySender<Box<JobRow>> },
    /// A client cancels all queued jobs. Replies with their number.
    Purge { reply: ReplySender<u64> },
    /// A launcher has started or adopted a worker.
    RegisterWorker { worker: WorkerId, reply: ReplySender<()> },
    /// Drains a worker; its parked takes are answered.
    DrainWorker { worker: WorkerId, reply: ReplySender<()> },
    /// A worker is lost: its jobs are requeued or fail with `reason`. Its parked takes are answered.
    LoseWorker { worker: WorkerId, counts_retry: bool, reason: String, reply: ReplySender<()> },
    /// The webhook call that reports this end is settled.
    SettleWebhook { job: JobId, end: JobEnd, reply: ReplySender<()> },
    /// A client requests another webhook call for this end.
    RedeliverWebhook { job: JobId, end: JobEnd, reply: ReplySender<Box<JobRow>> },
    /// Reads the queue and changes nothing.
    Query(Query),
    /// Replies with the job's row as it is now. `watch` receives the row of its end, if it has not ended yet.
    Wait { job: JobId, watch: EndWaiter, reply: ReplySender<Box<JobRow>> },
    /// Looks up a job's stream. `watch` is woken by the next chunk or the end.
    Stream { job: JobId, watch: oneshot::Sender<()>, reply: ReplySender<StreamLookup> },
    /// Looks up the tail of a job's stream for a follower.
    Follow { job: JobId, reply: ReplySender<TailLookup> },
    /// The stored row of a stream that the actor did not know, and the length of its chunks in bytes if they were counted.
    WarmStream { key: JobKey, stream: StreamRow, bytes: Option<u64> },
    /// A client has read the chunks below `offset`.
    Consume { job: JobId, offset: u64 },
    /// A webhook call that reports this end has failed and is due again at `due_at`, after `attempts` calls.
    WebhookAttempted { job: JobId, end: JobEnd, attempts: u32, due_at: Millis, reply: ReplySender<()> },
    /// Names of payload files that a listing has. The actor owns those of its jobs; replies with the others.
    OwnBlobs { names: Vec<String>, reply: ReplySender<Vec<String>> },
    /// The endpoint's record, after a change.
    Configure(Box<Endpoint>),
    /// Pauses the queue until the next [`Request::Configure`]: running jobs may finish before the endpoint is deleted.
    Pause { reply: ReplySender<()> },
    /// The server stops: answers parked takes and drops waiters. Later takes and waits end immediately.
    ReleaseWaits { reply: ReplySender<()> },
    /// The endpoint is deleted: deletes its jobs, replies when that is durable, and ends the actor.
    Delete { reply: ReplySender<()> },
    /// A test corrupts the queue.
    #[cfg(test)]
    Corrupt(Box<dyn FnOnce(&mut longshore_queue::Queue) + Send>),
}

// Requests lie in the mailbox by value.
const _: () = assert!(size_of::<Request>() <= 128);

/// The party that causes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// A client. Its request may be rejected; the client repeats it.
    Client,
    /// A worker. Its request renews the worker's lease even if it is rejected.
    Worker(&'a WorkerId),
    /// A component of the engine, which waits for the reply, or follows up an earlier request. Never rejected for its size.
    Engine,
}

/// The jobs that a take delivers; empty if the take ended without a job.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The rows of the jobs in their new attempt, in the order of the queue.
    pub(crate) rows: Vec<JobRow>,
    /// The permit for the jobs' inputs, to be held until they are sent.
    pub(crate) room: BudgetPermit,
}

/// The result of an append.
#[derive(Debug)]
pub(crate) enum Appended {
    /// The chunks are durable, from this post or an earlier one with its number, or were dropped because the worker does not run
    /// the job.
    Done,
    /// The actor does not know this stream, and returns the chunks. Read the stream's row, send [`Request::WarmStream`],
    /// and repeat the request.
    Cold(JobKey, Vec<Bytes>),
}

/// The result of looking up a stream.
#[derive(Debug)]
pub(crate) enum StreamLookup {
    /// The job's row, the row of its stream, and the bytes of its chunks if they were counted.
    Here(Box<(JobRow, StreamRow, Option<u64>)>),
    /// The actor does not know this stream: as for [`Appended::Cold`].
    Cold(JobKey),
}

/// The result of looking up the tail of a stream.
#[derive(Debug)]
pub(crate) enum TailLookup {
    /// The tail that all followers share.
    Here(Arc<StreamTail>),
    /// The actor does not know this stream: as for [`Appended::Cold`].
    Cold(JobKey),
}

/// Returns the error of a request whose stored payload or row could not be read.
pub(crate) fn unread(error: &StoreError) -> EndpointError {
    match error {
        StoreError::Corrupt(_) => EndpointError::Damaged(error.to_string()),
        _ => EndpointError::Unreadable(error.to_string()),
    }
}

/// Returns the error of a request whose queue could not be loaded.
pub(crate) fn unavailable(error: &StoreError) -> EndpointError {
    EndpointError::Unavailable(error.to_string())
}

impl Request {
    /// Whether the request is served during the pause after a reload: it writes no row, or its loss would leave the queue
    /// with old settings.
    pub(crate) fn is_served_during_pause(&self) -> bool {
        match self {
            Self::TouchWorker { .. }
            | Self::Query(_)
            | Self::Wait { .. }
            | Self::Stream { .. }
            | Self::Follow { .. }
            | Self::WarmStream { .. }
            | Self::Configure(_) => true,
            Self::Submit { .. }
            | Self::Take { .. }
            | Self::Undelivered { .. }
            | Self::Unpark { .. }
            | Self::Report { .. }
            | Self::Progress { .. }
            | Self::Append { .. }
            | Self::Ping { .. }
            | Self::Cancel { .. }
            | Self::Retry { .. }
            | Self::SetTtl { .. }
            | Self::Purge { .. }
            | Self::RegisterWorker { .. }
            | Self::DrainWorker { .. }
            | Self::LoseWorker { .. }
            | Self::SettleWebhook { .. }
            | Self::RedeliverWebhook { .. }
            | Self::Consume { .. }
            | Self::WebhookAttempted { .. }
            | Self::OwnBlobs { .. }
            | Self::Pause { .. }
            | Self::ReleaseWaits { .. }
            | Self::Delete { .. } => false,
            #[cfg(test)]
            Self::Corrupt(_) => true,
        }
    }

    /// The party that causes the request.
    pub(crate) fn source(&self) -> Source<'_> {
        match self {
            Self::Take { worker, .. }
            | Self::Report { worker, .. }
            | Self::Progress { worker, .. }
            | Self::Append { worker, .. }
            | Self::TouchWorker { worker }
            | Self::Ping { worker, .. } => Source::Worker(worker),
            Self::Submit { .. }
            | Self::Cancel { .. }
            | Self::Retry { .. }
            | Self::SetTtl { .. }
            | Self::Purge { .. }
            | Self::RedeliverWebhook { .. }
            | Self::Query(
                Query::Job { .. }
                | Query::Position { .. }
                | Query::Jobs { .. }
                | Query::Health { .. }
                | Query::Waiting { .. },
            )
            | Self::Wait { .. }
            | Self::Stream { .. }
            | Self::Follow { .. }
            // Also caused by a worker that asks to be replaced, which is no contact and may be repeated like a client's request.
            | Self::DrainWorker { .. } => Source::Client,
            Self::Query(Query::Fleet { .. })
            | Self::RegisterWorker { .. }
            | Self::LoseWorker { .. }
            | Self::Unpark { .. }
            | Self::Undelivered { .. }
            | Self::SettleWebhook { .. }
            | Self::WebhookAttempted { .. }
            | Self::OwnBlobs { .. }
            | Self::WarmStream { .. }
            | Self::Consume { .. }
            | Self::Configure(_)
            | Self::Pause { .. }
            | Self::ReleaseWaits { .. }
            | Self::Delete { .. } => Source::Engine,
            #[cfg(test)]
            Self::Corrupt(_) => Source::Engine,
        }
    }

    /// Sends the error as the reply. The queue is not changed.
    pub(crate) fn reject(self, why: &EndpointError) {
        fn no<T>(reply: ReplySender<T>, why: &EndpointError) {
            // The receiver may have disconnected.
            let _ = reply.send(Err(why.clone()));
        }
        match self {
            Self::Submit { reply, .. } => no(reply, why),
            Self::Take { reply, .. } => no(reply, why),
            Self::Report { reply, .. } => no(reply, why),
            Self::Append { reply, .. } => no(reply, why),
            Self::Purge { reply } => no(reply, why),
            Self::Stream { reply, .. } => no(reply, why),
            Self::OwnBlobs { reply, .. } => no(reply, why),
            Self::Follow { reply, .. } => no(reply, why),
            Self::Cancel { reply, .. }
            | Self::Retry { reply, .. }
            | Self::SetTtl { reply, .. }
            | Self::RedeliverWebhook { reply, .. }
            | Self::Wait { reply, .. } => no(reply, why),
            Self::Progress { reply, .. }
            | Self::Undelivered { reply, .. }
            | Self::Ping { reply, .. }
            | Self::RegisterWorker { reply, .. }
            | Self::DrainWorker { reply, .. }
            | Self::LoseWorker { reply, .. }
            | Self::SettleWebhook { reply, .. }
            | Self::WebhookAttempted { reply, .. }
            | Self::Pause { reply }
            | Self::ReleaseWaits { reply }
            | Self::Delete { reply } => no(reply, why),
            Self::Query(query) => query.reject(why),
            // These have no reply.
            Self::Unpark { .. }
            | Self::TouchWorker { .. }
            | Self::WarmStream { .. }
            | Self::Consume { .. }
            | Self::Configure(_) => {}
            #[cfg(test)]
            Self::Corrupt(_) => {}
        }
    }
}
