//! Replies that wait for the commit that covers them.

use std::sync::Arc;

use longshore_model::JobRow;
use longshore_queue::Page;

use super::post_commit::PostCommit;
use super::query::QueueHealth;
use super::request::{Appended, Given, ReplySender, StreamLookup, TailLookup};
use crate::endpoint_shared::EndpointShared;
use crate::{Accepted, EndpointError, FleetView};

/// A result, and the channel that it goes to.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    to: ReplySender<T>,
    result: Result<T, EndpointError>,
}

impl<T> Reply<T> {
    /// A refusal is held like any other result: it may rest on a row that is not written yet.
    pub(crate) fn new(to: ReplySender<T>, result: Result<T, EndpointError>) -> Self {
        Self { to, result }
    }

    /// Sends the result; or, if the commit failed, why.
    fn release(self, commit: Result<(), &EndpointError>) {
        let result = commit.map_err(EndpointError::clone).and(self.result);
        // The receiver may have disconnected.
        let _ = self.to.send(result);
    }
}

/// What a round holds until its commit. The variants are the types that requests are answered with: the committer sends
/// them and never looks into them. Rows are boxed, so that those of a round stay in the fastest cache.
pub(crate) enum HeldReply {
    Accepted(Reply<Accepted>),
    Jobs(Reply<Given>),
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
    /// What else follows from the round; its last reply. After a failed commit nothing does.
    PostCommit(Box<PostCommit>, Arc<EndpointShared>),
}

// A round holds 256 of them at most: together they stay within 16 KiB.
const _: () = assert!(size_of::<HeldReply>() <= 64);

impl HeldReply {
    /// Lets it leave once the commit that covers it is durable, or could not be made so.
    pub(crate) fn release(self, commit: Result<(), &EndpointError>) {
        match self {
            Self::Accepted(reply) => reply.release(commit),
            Self::Jobs(reply) => reply.release(commit),
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
            Self::PostCommit(after, shared) => {
                if commit.is_ok() {
                    after.carry_out(&shared);
                }
            }
        }
    }
}
