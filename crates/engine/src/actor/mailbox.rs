//! An actor's mailbox: the channel of its requests, bounded in bytes by the engine's request budget.
//!
//! A request holds a permit of the budget from its sending until the round that serves it is durable. The permit does not
//! belong to the client: a client that disconnects and sends again while a disk hangs does not get its bytes back. Clients
//! may use [`CLIENTS_PERCENT`] of the budget. The rest is for workers, whose results would be lost with their jobs' work.

use longshore_store::{OutcomeRow, Payload};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Actor;
use super::request::{Request, Source};
use crate::EndpointError;
use crate::payload_budget::PayloadBudget;

#[cfg(test)]
mod tests;

/// Memory of a request without its payload, in bytes: the request, its reply and channel, and its row and write in a round.
const REQUEST_BYTES: usize = 1024;
/// Memory of an inline payload, in bytes, at least: a slice of a connection's read buffer keeps the whole buffer.
const PAYLOAD_BYTES_MIN: usize = 8 * 1024;
/// The part of the budget that requests of clients may use, in percent.
const CLIENTS_PERCENT: usize = 75;
/// The part of the budget that clients and workers may use, in percent. The rest is for requests that an actor rejects: they
/// reach it because a rejected request of a worker renews the worker's lease.
const WORKERS_PERCENT: usize = 94;

/// A request, and its permit of the request budget. A request of the engine itself may have none.
pub(crate) struct Admitted {
    request: Request,
    permit: Option<OwnedSemaphorePermit>,
}

/// Why a request is not in the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The request budget is used up. The request may be repeated.
    Overloaded,
    /// The actor has ended.
    Closed,
}

/// Sends requests to an actor. One per endpoint.
pub(crate) struct MailboxSender {
    sender: mpsc::UnboundedSender<Admitted>,
    budget: PayloadBudget,
}

/// Receives the requests of an actor, in the order of their sending.
pub(crate) type Mailbox = mpsc::UnboundedReceiver<Admitted>;

/// Returns an empty mailbox whose requests count against this budget.
pub(crate) fn mailbox(budget: PayloadBudget) -> (MailboxSender, Mailbox) {
    // No limit of length, because a request is sent before its future exists. Each request of a client or a worker has a
    // permit of at least 1 KiB, so the budget bounds length and bytes, also while the actor loads its queue. Requests of the
    // engine itself are bounded by its tasks and by the requests that cause them: each of these sends a few and waits for
    // the reply.
    let (sender, receiver) = mpsc::unbounded_channel();
    (MailboxSender { sender, budget }, receiver)
}

impl MailboxSender {
    /// Puts a request into the mailbox.
    ///
    /// # Errors
    ///
    /// [`NotSent::Overloaded`] for a request of a client or a worker that does not fit in the budget; [`NotSent::Closed`] if
    /// the actor has ended. The request is dropped.
    pub(crate) fn send(&self, request: Request) -> Result<(), NotSent> {
        let permit = self.admit(&request)?;
        self.sender.send(Admitted { request, permit }).map_err(|_| NotSent::Closed)
    }

    fn admit(&self, request: &Request) -> Result<Option<OwnedSemaphorePermit>, NotSent> {
        let bytes = bytes(request);
        let source = request.source();
        if matches!(source, Source::Client)
            && used(&self.budget) + bytes > part(&self.budget, CLIENTS_PERCENT)
        {
            return Err(NotSent::Overloaded);
        }
        let permit = self.budget.try_take(bytes);
        if permit.is_none() && !matches!(source, Source::Engine) {
            return Err(NotSent::Overloaded);
        }
        Ok(permit)
    }
}

impl Admitted {
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Sends the error as the reply, and releases the permit.
    pub(super) fn reject(self, why: &EndpointError) {
        self.request.reject(why);
    }
}

impl Actor {
    /// Handles a request as a part of this round, which takes over its permit. A request of a worker is rejected while the
    /// budget is used up, and renews the worker's lease all the same.
    pub(super) fn accept(&mut self, Admitted { request, permit }: Admitted) {
        if let Source::Worker(worker) = request.source() {
            let budget = &self.shared.services.requests;
            if used(budget) > part(budget, WORKERS_PERCENT) {
                self.apply(|queue, now, _| queue.touch_worker(now, worker));
                request.reject(&EndpointError::Overloaded);
                return;
            }
        }
        match (&mut self.permit, permit) {
            (Some(held), Some(permit)) => held.merge(permit),
            (held, permit) => *held = held.take().or(permit),
        }
        self.handle(request);
    }
}

fn used(budget: &PayloadBudget) -> usize {
    budget.bytes_max() - budget.bytes_free()
}

fn part(budget: &PayloadBudget, percent: usize) -> usize {
    budget.bytes_max() / 100 * percent
}

/// The memory that a request takes until it is durable, in bytes.
fn bytes(request: &Request) -> usize {
    let payload = match request {
        Request::Submit { input, .. } => inline(input),
        Request::Report { outcome, .. } | Request::Progress { outcome, .. } => of_outcome(outcome),
        Request::Append { chunks, .. } => chunks.iter().map(|chunk| chunk.len().max(PAYLOAD_BYTES_MIN)).sum(),
        Request::Ping { holds, .. } => holds.as_ref().map_or(0, |holds| size_of_val(holds.as_slice())),
        _ => 0,
    };
    REQUEST_BYTES + payload
}

fn of_outcome(outcome: &OutcomeRow) -> usize {
    let error = outcome.error.as_ref().map_or(0, |error| error.len());
    outcome.output.as_ref().map_or(0, inline) + error
}

/// The bytes of a payload in memory; a payload in a file has none.
fn inline(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(bytes) => bytes.len().max(PAYLOAD_BYTES_MIN),
        Payload::Blob(_) => 0,
    }
}
