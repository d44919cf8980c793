//! What happens where an invariant of the queue, or of its actor, is broken.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Actor;

#[cfg(test)]
mod tests;

impl Actor {
    /// Decides something, and flushes it. A panic means a broken invariant: what the queue says may be wrong, and so may
    /// be all of this round. The round is void, and the caller has to reload the queue.
    pub(super) fn decide(&mut self, decide: impl FnOnce(&mut Self)) {
        // Nothing of the actor is looked at after a panic before the queue is loaded again, but what does not belong to it.
        let round = AssertUnwindSafe(|| {
            decide(self);
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

/// What the panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
