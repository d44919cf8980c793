//! A broken invariant of the queue or its actor: the panic voids the round, and the queue is reloaded from rows.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Actor;

#[cfg(test)]
mod tests;

impl Actor {
    /// Runs `handle` as one round and flushes it. A panic means that an invariant is broken, so that the queue and the
    /// round's results may be wrong. `is_broken` is then set: the round is void, and the caller has to reload the queue.
    pub(super) fn run_round(&mut self, handle: impl FnOnce(&mut Self)) {
        // Unwind safe: after a panic the queue and the round are read by no handler before the reload replaces them.
        let round = AssertUnwindSafe(|| {
            handle(self);
            self.queue.check_sample();
            self.flush();
        });
        if let Err(panic) = catch_unwind(round) {
            self.is_broken = true;
            self.shared.services.metrics.invariant_broken();
            let invariant = message(panic.as_ref());
            tracing::error!(endpoint = %self.shared.id, invariant, "invariant broken, reloading queue");
        }
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
