//! What can be put into an actor's mailbox.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{End, Endpoint, JobId, JobKey, JobRow, Millis, WorkerId};
use longshore_queue::{Command, Queue, Reply, Submit, Verdict};
use longshore_store::{OutcomeRow, Payload, StoreError, StreamRow};
use tokio::sync::oneshot;

use crate::committer::Release;
use crate::handle::take::Undelivered;
use crate::room::Held;
use crate::tail::Tail;
use crate::{Accepted, AskError};

/// Where an answer goes. Whoever waits may have hung up; that is their right.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, AskError>>;

/// Hears of a job's end once; dropped when the job is deleted or nobody can say any more.
pub(crate) type Watch = oneshot::Sender<JobRow>;

/// A look at the machine: reads what it wants at once and answers what releases the answer later.
pub(crate) type Inspection = Box<dyn FnOnce(&Queue, Millis) -> Release + Send>;

pub(crate) enum Ask {
    /// A client hands in a job, and perhaps waits for its end.
    Submit { submit: Submit, input: Payload, watch: Option<Watch>, reply: Answer<Accepted> },
    /// A worker asks for jobs; held until there is one.
    Take { worker: WorkerId, slots: u32, says_busy: Option<bool>, reply: Answer<Given> },
    /// Jobs that were handed out did not leave.
    Undelivered { jobs: Vec<Undelivered>, reply: Answer<()> },
    /// Answer the worker's open takes now, with nothing unless a job is on its way to them.
    Unpark { worker: WorkerId },
    /// A worker reports how a job came out. Answers whether it counted.
    Finish { worker: WorkerId, job: JobId, verdict: Verdict, outcome: OutcomeRow, reply: Answer<bool> },
    /// A worker reports how far a job is.
    Progress { worker: WorkerId, job: JobId, outcome: OutcomeRow, reply: Answer<()> },
    /// A worker appends to a job's stream.
    Append { worker: WorkerId, job: JobId, chunks: Vec<Bytes>, reply: Answer<Appended> },
    /// A worker asks what to stop: it lives. Nobody waits for an answer.
    Alive { worker: WorkerId },
    /// Any command that carries no payload.
    Command { command: Command, reply: Answer<Reply> },
    /// Read something; answered when everything that was seen is durable.
    Inspect(Inspection),
    /// Hear of a job's end; answers the job as it is.
    Watch { job: JobId, watch: Watch, reply: Answer<JobRow> },
    /// Where a job's stream stands; `watch` hears of the next chunk or of the end.
    Stream { job: JobId, watch: oneshot::Sender<()>, reply: Answer<StreamLook> },
    /// Follow a job's stream.
    Follow { job: JobId, reply: Answer<FollowLook> },
    /// What the store says of a stream that an actor did not know, and how long its chunks are together if that
    /// was asked.
    Warm { key: JobKey, stream: StreamRow, bytes: Option<u64> },
    /// Chunks below `offset` reached their reader.
    Drained { job: JobId, offset: u64 },
    /// A webhook that reports this end was tried and will be tried again.
    HookAttempted { job: JobId, end: End, attempts: u32, due_at: Millis, reply: Answer<()> },
    /// The endpoint's record changed.
    Configure(Box<Endpoint>),
    /// Answer every open poll: the server stops. Later polls are answered at once.
    ReleasePolls { reply: Answer<()> },
    /// The endpoint is deleted: remove its jobs, then end.
    Demolish { reply: Answer<()> },
}

/// What a worker gets.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) rows: Vec<JobRow>,
    /// For their inputs.
    pub(crate) room: Held,
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum Appended {
    Done,
    /// The actor does not know where this stream stands: read its row, [`Ask::Warm`] it, and ask again.
    Cold(JobKey, Vec<Bytes>),
}

/// Where a stream stands.
#[derive(Debug)]
pub(crate) enum StreamLook {
    Here(Box<JobRow>, StreamRow),
    /// As for [`Appended::Cold`].
    Cold(JobKey),
}

/// The end of a job's stream.
#[derive(Debug)]
pub(crate) enum FollowLook {
    Here(Arc<Tail>),
    /// As for [`Appended::Cold`].
    Cold(JobKey),
}

/// A store's failure as a client hears of it.
/// What it means to somebody who reads that the store could not.
pub(crate) fn unread(error: &StoreError) -> AskError {
    match error {
        StoreError::Corrupt(_) => AskError::Damaged(error.to_string()),
        _ => AskError::Unreadable(error.to_string()),
    }
}

pub(crate) fn unavailable(error: &StoreError) -> AskError {
    AskError::Unavailable(error.to_string())
}

/// A release that answers `value` once it is durable.
pub(crate) fn answer<T: Send + 'static>(reply: Answer<T>, value: T) -> Release {
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
pub(crate) fn refuse<T: Send + 'static>(reply: Answer<T>, refusal: AskError) -> Release {
    Box::new(move |durable| {
        let _ = reply.send(Err(match durable {
            Ok(()) => refusal,
            Err(error) => unavailable(error),
        }));
    })
}

impl Ask {
    /// Whether it is heard while the disk gets a pause: it changes no job, or would get lost.
    pub(crate) fn is_heard_in_pauses(&self) -> bool {
        matches!(
            self,
            Self::Alive { .. }
                | Self::Inspect(_)
                | Self::Watch { .. }
                | Self::Stream { .. }
                | Self::Follow { .. }
                | Self::Warm { .. }
                | Self::Configure(_)
        )
    }

    /// The worker that speaks: a sign of life even where it is turned away, which a pinging one is not told.
    pub(crate) fn sender(&self) -> Option<&WorkerId> {
        match self {
            Self::Take { worker, .. }
            | Self::Finish { worker, .. }
            | Self::Progress { worker, .. }
            | Self::Append { worker, .. }
            | Self::Command { command: Command::Ping { worker, .. }, .. } => Some(worker),
            _ => None,
        }
    }

    /// Answers without asking the machine.
    pub(crate) fn turn_away(self, why: &AskError) {
        fn no<T>(reply: Answer<T>, why: &AskError) {
            let _ = reply.send(Err(why.clone()));
        }
        match self {
            Self::Submit { reply, .. } => no(reply, why),
            Self::Take { reply, .. } => no(reply, why),
            Self::Finish { reply, .. } => no(reply, why),
            Self::Progress { reply, .. }
            | Self::Undelivered { reply, .. }
            | Self::HookAttempted { reply, .. }
            | Self::ReleasePolls { reply }
            | Self::Demolish { reply } => no(reply, why),
            Self::Append { reply, .. } => no(reply, why),
            Self::Command { reply, .. } => no(reply, why),
            Self::Watch { reply, .. } => no(reply, why),
            Self::Stream { reply, .. } => no(reply, why),
            Self::Follow { reply, .. } => no(reply, why),
            // The asker hears of it by the dropped channel, or does not wait.
            Self::Unpark { .. }
            | Self::Alive { .. }
            | Self::Inspect(_)
            | Self::Warm { .. }
            | Self::Drained { .. }
            | Self::Configure(_) => {}
        }
    }
}
