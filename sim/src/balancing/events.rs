//! What will happen in a world of a load-balancing endpoint, in the order of time.

use std::collections::BTreeMap;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum BalanceEvent {
    /// A client sends a request.
    Arrival,
    /// The workers or the server change.
    Change,
    /// A worker is checked.
    Check(usize),
    /// A request that was sent again this number of times ends at its worker.
    Answer { request: u64, server: usize, retries: u32 },
    /// A request asks again for a worker.
    Again(u64),
    /// A client closes its connection.
    Leave(u64),
    /// A request has waited for as long as it may.
    WaitOver(u64),
}

/// The future events. Events of the same time happen in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: BTreeMap<(u64, u64), BalanceEvent>,
    added: u64,
}

impl Events {
    /// Adds an event at this time in ms.
    pub(super) fn push(&mut self, at: u64, event: BalanceEvent) {
        self.added += 1;
        self.queue.insert((at, self.added), event);
    }

    /// Removes the next event, with its time in ms.
    pub(super) fn pop(&mut self) -> Option<(u64, BalanceEvent)> {
        self.queue.pop_first().map(|((at, _), event)| (at, event))
    }
}
