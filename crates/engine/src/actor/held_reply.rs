//! Held replies: results of a round that are sent when the commit that covers them is durable.

use std::sync::Arc;

use longshore_model::JobRow;
use longshore_queue::Page;

use super::post_commit::PostCommit;
use super::query::{QueueHealth, Waiting};
use super::request::{Appended, Given, ReplySender, StreamLookup, TailLookup};
use crate::endpoint_shared::EndpointShared;
use crate::workers::take;
use crate::{Accepted, EndpointError, FleetView};

/// A result of a request, and the channel to send it on.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    to: ReplySender<T>,
    result: Result<T, EndpointError>,
}

impl<T> Reply<T> {
    /// Returns a reply with this result. A refusal is held like any other result, because it may depend on a row that is
    /// not durable yet.
    pub(crate) fn new(to: ReplySender<T>, result: Result<T, EndpointError>) -> Self {
        Self { to, result }
    }

    /// Sends the result, or the commit's error in its place.
    fn release(self, commit: Result<(), &EndpointError>) {
        // The receiver may have disconnected.
        let _ = self.try_release(commit);
    }

    /// As [`release`](Self::release). Fails with what was to be sent if the receiver has disconnected.
    fn try_release(self, commit: Result<(), &EndpointError>) -> Result<(), Result<T, EndpointError>> {
        let result = commit.map_err(EndpointError::clone).and(self.result);
        self.to.send(result)
    }
}

/// A reply that a round holds until its commit; one variant for each type of result. The committer releases replies and
/// never reads them. Rows are boxed, so that the 256 replies of a round stay in the processor's first cache.
pub(crate) enum HeldReply {
    Accepted(Reply<Accepted>),
    /// Jobs for a worker. They return to the queue if the worker has disconnected since the queue delivered them.
    Jobs(Reply<Given>, Arc<EndpointShared>),
    Counted(Reply<bool>),
    Done(Reply<()>),
    Row(Reply<Box<JobRow>>),
    MaybeRow(Reply<Option<Box<JobRow>>>),
    Purged(Reply<u64>),
    Appended(Reply<Appended>),
    Stream(Reply<StreamLookup>),
    Tail(Reply<TailLookup>),
    Position(Reply<Option<u64>>),
    Page(Reply<Box<Page>>),
    Health(Reply<Box<QueueHealth>>),
    Fleet(Reply<Box<FleetView>>),
    Waiting(Reply<Box<Waiting>>),
    Orphans(Reply<Vec<String>>),
    /// The signals of the round: the last reply of its round, and dropped after a failed commit.
    PostCommit(Box<PostCommit>, Arc<EndpointShared>),
}

// The replies of a round of 256 requests take at most 16 KiB.
const _: () = assert!(size_of::<HeldReply>() <= 64);

impl HeldReply {
    /// Sends the reply. `commit` is the result of the commit that covers the reply: after an `Err` every reply becomes that
    /// error, and the signals of the round are dropped.
    pub(crate) fn release(self, commit: Result<(), &EndpointError>) {
        match self {
            Self::Accepted(reply) => reply.release(commit),
            Self::Jobs(reply, shared) => {
                if let Err(Ok(given)) = reply.try_release(commit) {
                    take::return_unread(shared, given);
                }
            }
            Self::Counted(reply) => reply.release(commit),
            Self::Done(reply) => reply.release(commit),
            Self::Row(reply) => reply.release(commit),
            Self::MaybeRow(reply) => reply.release(commit),
            Self::Purged(reply) => reply.release(commit),
            Self::Appended(reply) => reply.release(commit),
            Self::Stream(reply) => reply.release(commit),
            Self::Tail(reply) => reply.release(commit),
            Self::Position(reply) => reply.release(commit),
            Self::Page(reply) => reply.release(commit),
            Self::Health(reply) => reply.release(commit),
            Self::Fleet(reply) => reply.release(commit),
            Self::Waiting(reply) => reply.release(commit),
            Self::Orphans(reply) => reply.release(commit),
            Self::PostCommit(post_commit, shared) => match commit {
                Ok(()) => post_commit.release(&shared),
                Err(_) => shared.note_unsure_calls(&post_commit.webhooks),
            },
        }
    }
}
