//! What can be put into an actor's mailbox.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, JobKey, JobRow, Millis, WorkerId};
use longshore_queue::{Report, Submit};
use longshore_store::{OutcomeRow, Payload, StoreError, StreamRow};
use tokio::sync::oneshot;

use super::query::Query;
use crate::handle::take::Undelivered;
use crate::payload_budget::BudgetPermit;
use crate::stream_tail::StreamTail;
use crate::{Accepted, EndpointError};

/// Where an answer goes. Whoever waits may have hung up; that is their right.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, EndpointError>>;

/// Hears of a job's end once; dropped when the job is deleted or nobody can say any more.
pub(crate) type EndWaiter = oneshot::Sender<JobRow>;

/// What can be asked of an actor. Whatever is answered carries the channel for an answer of its type.
pub(crate) enum Request {
    /// A client hands in a job, and perhaps waits for its end.
    Submit { submit: Submit, input: Payload, watch: Option<EndWaiter>, reply: ReplySender<Accepted> },
    /// A worker asks for jobs; held until there is one.
    Take { worker: WorkerId, slots: u32, says_busy: Option<bool>, reply: ReplySender<Given> },
    /// Jobs that were handed out did not leave.
    Undelivered { jobs: Vec<Undelivered>, reply: ReplySender<()> },
    /// Answer the worker's open takes now, with nothing unless a job is on its way to them.
    Unpark { worker: WorkerId },
    /// A worker reports how a job came out. Answers whether it counted.
    Report { worker: WorkerId, job: JobId, report: Report, outcome: OutcomeRow, reply: ReplySender<bool> },
    /// A worker reports how far a job is.
    Progress { worker: WorkerId, job: JobId, outcome: OutcomeRow, reply: ReplySender<()> },
    /// A worker appends to a job's stream.
    Append { worker: WorkerId, job: JobId, chunks: Vec<Bytes>, reply: ReplySender<Appended> },
    /// A worker asks what to stop: it lives. Nobody waits for an answer.
    TouchWorker { worker: WorkerId },
    /// A worker shows that it lives, and the jobs that it holds (none: it does not say).
    Ping { worker: WorkerId, holds: Option<Vec<JobId>>, reply: ReplySender<()> },
    /// A client cancels a job.
    Cancel { job: JobId, reply: ReplySender<Box<JobRow>> },
    /// A client queues a failed or timed-out job again.
    Retry { job: JobId, reply: ReplySender<Box<JobRow>> },
    /// A client sets the time of a job's deletion.
    SetTtl { job: JobId, ttl_ms: u64, reply: ReplySender<Box<JobRow>> },
    /// A client cancels every queued job. Answers how many.
    Purge { reply: ReplySender<u64> },
    /// A launcher started a worker, or found it alive.
    RegisterWorker { worker: WorkerId, reply: ReplySender<()> },
    /// A worker gets no more jobs; its open takes are answered.
    DrainWorker { worker: WorkerId, reply: ReplySender<()> },
    /// A worker has ended; its open takes are answered.
    LoseWorker { worker: WorkerId, counts_retry: bool, reason: String, reply: ReplySender<()> },
    /// A webhook call that reports this end is settled.
    SettleWebhook { job: JobId, end: JobEnd, reply: ReplySender<()> },
    /// A client has the receiver of a job's webhook called again for this end.
    RedeliverWebhook { job: JobId, end: JobEnd, reply: ReplySender<Box<JobRow>> },
    /// Reads the queue and changes nothing. Held until what was read is durable.
    Query(Query),
    /// Hear of a job's end; answers the job as it is.
    Wait { job: JobId, watch: EndWaiter, reply: ReplySender<Box<JobRow>> },
    /// Where a job's stream stands; `watch` hears of the next chunk or of the end.
    Stream { job: JobId, watch: oneshot::Sender<()>, reply: ReplySender<StreamLookup> },
    /// Follow a job's stream.
    Follow { job: JobId, reply: ReplySender<TailLookup> },
    /// What the store says of a stream that an actor did not know, and how long its chunks are together if that
    /// was asked.
    WarmStream { key: JobKey, stream: StreamRow, bytes: Option<u64> },
    /// Chunks below `offset` reached their reader.
    Consume { job: JobId, offset: u64 },
    /// A webhook that reports this end was tried and will be tried again.
    WebhookAttempted { job: JobId, end: JobEnd, attempts: u32, due_at: Millis, reply: ReplySender<()> },
    /// The endpoint's record changed.
    Configure(Box<Endpoint>),
    /// No more jobs are handed out until the next [`Request::Configure`]: those that run may finish, and the endpoint is deleted.
    Pause { reply: ReplySender<()> },
    /// Answer every open poll: the server stops. Later polls are answered at once.
    ReleaseWaits { reply: ReplySender<()> },
    /// The endpoint is deleted: remove its jobs, then end.
    Delete { reply: ReplySender<()> },
    /// A test spoils the queue.
    #[cfg(test)]
    Spoil(Box<dyn FnOnce(&mut longshore_queue::Queue) + Send>),
}

// A mailbox holds them by value.
const _: () = assert!(size_of::<Request>() <= 128);

/// What a worker gets.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) rows: Vec<JobRow>,
    /// For their inputs.
    pub(crate) room: BudgetPermit,
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum Appended {
    Done,
    /// The actor does not know where this stream stands: read its row, [`Request::WarmStream`] it, and ask again.
    Cold(JobKey, Vec<Bytes>),
}

/// Where a stream stands.
#[derive(Debug)]
pub(crate) enum StreamLookup {
    Here(Box<JobRow>, StreamRow),
    /// As for [`Appended::Cold`].
    Cold(JobKey),
}

/// The end of a job's stream.
#[derive(Debug)]
pub(crate) enum TailLookup {
    Here(Arc<StreamTail>),
    /// As for [`Appended::Cold`].
    Cold(JobKey),
}

/// A store's failure to read as the reader hears of it.
pub(crate) fn unread(error: &StoreError) -> EndpointError {
    match error {
        StoreError::Corrupt(_) => EndpointError::Damaged(error.to_string()),
        _ => EndpointError::Unreadable(error.to_string()),
    }
}

/// A store's failure to commit as clients and workers hear of it.
pub(crate) fn unavailable(error: &StoreError) -> EndpointError {
    EndpointError::Unavailable(error.to_string())
}

impl Request {
    /// Whether it is heard while the disk gets a pause: it changes no job, or would get lost.
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
            | Self::Pause { .. }
            | Self::ReleaseWaits { .. }
            | Self::Delete { .. } => false,
            #[cfg(test)]
            Self::Spoil(_) => true,
        }
    }

    /// The worker that sends it: a contact even where it is turned away, which a pinging one is not told.
    pub(crate) fn sender(&self) -> Option<&WorkerId> {
        match self {
            Self::Take { worker, .. }
            | Self::Report { worker, .. }
            | Self::Progress { worker, .. }
            | Self::Append { worker, .. }
            | Self::TouchWorker { worker }
            | Self::Ping { worker, .. } => Some(worker),
            // These are about a worker, and come from the supervisor or from a take whose hold is over.
            Self::RegisterWorker { .. }
            | Self::DrainWorker { .. }
            | Self::LoseWorker { .. }
            | Self::Unpark { .. } => None,
            Self::Submit { .. }
            | Self::Undelivered { .. }
            | Self::Cancel { .. }
            | Self::Retry { .. }
            | Self::SetTtl { .. }
            | Self::Purge { .. }
            | Self::SettleWebhook { .. }
            | Self::RedeliverWebhook { .. }
            | Self::Query(_)
            | Self::Wait { .. }
            | Self::Stream { .. }
            | Self::Follow { .. }
            | Self::WarmStream { .. }
            | Self::Consume { .. }
            | Self::WebhookAttempted { .. }
            | Self::Configure(_)
            | Self::Pause { .. }
            | Self::ReleaseWaits { .. }
            | Self::Delete { .. } => None,
            #[cfg(test)]
            Self::Spoil(_) => None,
        }
    }

    /// Answers without asking the queue.
    pub(crate) fn reject(self, why: &EndpointError) {
        fn no<T>(reply: ReplySender<T>, why: &EndpointError) {
            let _ = reply.send(Err(why.clone()));
        }
        match self {
            Self::Submit { reply, .. } => no(reply, why),
            Self::Take { reply, .. } => no(reply, why),
            Self::Report { reply, .. } => no(reply, why),
            Self::Append { reply, .. } => no(reply, why),
            Self::Purge { reply } => no(reply, why),
            Self::Stream { reply, .. } => no(reply, why),
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
            // There is no answer to these.
            Self::Unpark { .. }
            | Self::TouchWorker { .. }
            | Self::WarmStream { .. }
            | Self::Consume { .. }
            | Self::Configure(_) => {}
            #[cfg(test)]
            Self::Spoil(_) => {}
        }
    }
}
