//! What can be put into an actor's mailbox.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, JobKey, JobRow, Millis, WorkerId};
use longshore_queue::{Command, Queue, Reply, Report, Submit};
use longshore_store::{OutcomeRow, Payload, StoreError, StreamRow};
use tokio::sync::oneshot;

use crate::committer::HeldReply;
use crate::handle::take::Undelivered;
use crate::payload_budget::BudgetPermit;
use crate::stream_tail::StreamTail;
use crate::{Accepted, EndpointError};

/// Where an answer goes. Whoever waits may have hung up; that is their right.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, EndpointError>>;

/// Hears of a job's end once; dropped when the job is deleted or nobody can say any more.
pub(crate) type EndWaiter = oneshot::Sender<JobRow>;

/// A look at the machine: reads what it wants at once and answers what releases the answer later.
pub(crate) type Inspection = Box<dyn FnOnce(&Queue, Millis) -> HeldReply + Send>;

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
    /// Any command that carries no payload.
    Command { command: Command, reply: ReplySender<Reply> },
    /// Read something; answered when everything that was seen is durable.
    Inspect(Inspection),
    /// Hear of a job's end; answers the job as it is.
    Wait { job: JobId, watch: EndWaiter, reply: ReplySender<JobRow> },
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
    /// Answer every open poll: the server stops. Later polls are answered at once.
    ReleaseWaits { reply: ReplySender<()> },
    /// The endpoint is deleted: remove its jobs, then end.
    Delete { reply: ReplySender<()> },
}

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

/// A store's failure as a client hears of it.
/// What it means to somebody who reads that the store could not.
pub(crate) fn unread(error: &StoreError) -> EndpointError {
    match error {
        StoreError::Corrupt(_) => EndpointError::Damaged(error.to_string()),
        _ => EndpointError::Unreadable(error.to_string()),
    }
}

pub(crate) fn unavailable(error: &StoreError) -> EndpointError {
    EndpointError::Unavailable(error.to_string())
}

/// A release that answers `value` once it is durable.
pub(crate) fn answer<T: Send + 'static>(reply: ReplySender<T>, value: T) -> HeldReply {
    Box::new(move |durable| {
        // The asker may have hung up.
        let _ = reply.send(match durable {
            Ok(()) => Ok(value),
            Err(error) => Err(unavailable(error)),
        });
    })
}

/// A release that answers a refusal once what it rests on is durable. If that cannot be kept, nobody knows
/// whether the refusal is right.
pub(crate) fn refuse<T: Send + 'static>(reply: ReplySender<T>, refusal: EndpointError) -> HeldReply {
    Box::new(move |durable| {
        let _ = reply.send(Err(match durable {
            Ok(()) => refusal,
            Err(error) => unavailable(error),
        }));
    })
}

impl Request {
    /// Whether it is heard while the disk gets a pause: it changes no job, or would get lost.
    pub(crate) fn is_served_during_pause(&self) -> bool {
        matches!(
            self,
            Self::TouchWorker { .. }
                | Self::Inspect(_)
                | Self::Wait { .. }
                | Self::Stream { .. }
                | Self::Follow { .. }
                | Self::WarmStream { .. }
                | Self::Configure(_)
        )
    }

    /// The worker that speaks: a sign of life even where it is turned away, which a pinging one is not told.
    pub(crate) fn sender(&self) -> Option<&WorkerId> {
        match self {
            Self::Take { worker, .. }
            | Self::Report { worker, .. }
            | Self::Progress { worker, .. }
            | Self::Append { worker, .. }
            | Self::Command { command: Command::Ping { worker, .. }, .. } => Some(worker),
            _ => None,
        }
    }

    /// Answers without asking the machine.
    pub(crate) fn reject(self, why: &EndpointError) {
        fn no<T>(reply: ReplySender<T>, why: &EndpointError) {
            let _ = reply.send(Err(why.clone()));
        }
        match self {
            Self::Submit { reply, .. } => no(reply, why),
            Self::Take { reply, .. } => no(reply, why),
            Self::Report { reply, .. } => no(reply, why),
            Self::Progress { reply, .. }
            | Self::Undelivered { reply, .. }
            | Self::WebhookAttempted { reply, .. }
            | Self::ReleaseWaits { reply }
            | Self::Delete { reply } => no(reply, why),
            Self::Append { reply, .. } => no(reply, why),
            Self::Command { reply, .. } => no(reply, why),
            Self::Wait { reply, .. } => no(reply, why),
            Self::Stream { reply, .. } => no(reply, why),
            Self::Follow { reply, .. } => no(reply, why),
            // The asker hears of it by the dropped channel, or does not wait.
            Self::Unpark { .. }
            | Self::TouchWorker { .. }
            | Self::Inspect(_)
            | Self::WarmStream { .. }
            | Self::Consume { .. }
            | Self::Configure(_) => {}
        }
    }
}
