//! The requests that wait for a worker, in order of arrival.

use alloc::collections::VecDeque;

use longshore_model::Millis;

/// Identifies a waiting request. Tickets ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Waiting requests, the first one first.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingRequests {
    requests: VecDeque<(Ticket, Millis)>,
    last: u64,
}

impl WaitingRequests {
    /// Adds a request at the end.
    pub(super) fn push(&mut self, now: Millis) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.requests.push_back((ticket, now));
        ticket
    }

    /// Removes the first request.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        self.requests.pop_front().map(|(ticket, _)| ticket)
    }

    /// Removes a request, wherever it stands.
    pub(super) fn remove(&mut self, ticket: Ticket) {
        if let Ok(place) = self.requests.binary_search_by_key(&ticket, |(ticket, _)| *ticket) {
            self.requests.remove(place);
        }
    }

    /// When the first request arrived; `None` if none waits.
    pub(super) fn oldest(&self) -> Option<Millis> {
        self.requests.front().map(|(_, since)| *since)
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}
