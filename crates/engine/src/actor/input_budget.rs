//! The input budget: bounds the bytes of inputs in takes' replies.
//!
//! Budget is acquired before a job is delivered. While the input of the next job does not fit, takes are parked as if no
//! job were queued, and tried again when the budget is free.

use std::pin::Pin;

use longshore_model::JobRow;
use longshore_queue::Take;
use tokio::sync::OwnedSemaphorePermit;

use super::Actor;
use super::request::Given;
use crate::payload_budget::{BudgetPermit, SMALL_BYTES};

/// Bytes of the inputs in the reply to one take of several slots. A single larger input is delivered alone.
const BATCH_BYTES_MAX: usize = 16_000_000;

/// The wait for a permit of the input budget; `None` only if the budget's semaphore is closed, which never happens.
pub(super) type PermitWait = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Actor {
    /// Runs a take of the jobs whose inputs fit in the budget, and returns them with their permit. If the input of the next
    /// job does not fit, the result is empty and the actor waits for the budget.
    pub(super) fn take_within_budget(&mut self, take: Take) -> Given {
        let mut take = take;
        loop {
            let next = self.next_bytes();
            let permit = self.permit_for_next(next, take.slots);
            let bytes_max = match (&permit, next) {
                // An input that is larger than the whole budget has a permit for all of it.
                (Some(permit), Some(next)) => next.max(permit.num_permits()),
                _ => SMALL_BYTES,
            };
            take.input_bytes_max = bytes_max as u64;
            let rows = self.apply(|queue, now, out| queue.take(now, &take, out));
            if rows.is_empty() {
                match self.next_bytes() {
                    // Another job is next now: the jobs before it had expired, or the take requeued it.
                    Some(bytes) if self.next_bytes() != next && bytes > bytes_max => {
                        take.says_busy = None;
                        continue;
                    }
                    Some(bytes) if bytes > bytes_max && self.budget_wait.is_none() => {
                        self.budget_wait = Some(Box::pin(self.shared.services.inputs.take(bytes)));
                    }
                    _ => {}
                }
            }
            return Given { room: shrink(permit, &rows), rows };
        }
    }

    /// The length of the next job's input, in bytes; `None` if no job is queued.
    fn next_bytes(&self) -> Option<usize> {
        self.queue.next_input_bytes().map(|bytes| bytes as usize)
    }

    /// Acquires a permit for the next job's input and, with several slots, for up to [`BATCH_BYTES_MAX`] bytes as far as
    /// they are free. `None` if the next input does not fit, or if it is small and the only one: small inputs do not count.
    fn permit_for_next(&mut self, next: Option<usize>, slots: u32) -> Option<OwnedSemaphorePermit> {
        let next = next.filter(|next| slots > 1 || *next > SMALL_BYTES)?;
        let budget = &self.shared.services.inputs;
        let wanted = if slots > 1 { next.max(BATCH_BYTES_MAX) } else { next }.min(budget.bytes_max());
        let awaited = self.input_permit.take();
        let more = wanted.saturating_sub(awaited.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        let permit = match (awaited, budget.try_take(more.min(budget.bytes_free()))) {
            (Some(mut awaited), Some(more)) => {
                awaited.merge(more);
                Some(awaited)
            }
            (awaited, more) => awaited.or(more),
        };
        permit.filter(|permit| permit.num_permits() >= next.min(budget.bytes_max()))
    }

    /// Stores the permit that the wait returned, for the parked takes of this round.
    pub(super) fn put_input_permit(&mut self, permit: Option<OwnedSemaphorePermit>) {
        (self.input_permit, self.budget_wait) = (permit, None);
        self.jobs_are_ready = true;
    }
}

/// Waits for the permit. `None` immediately if there is no wait.
pub(super) async fn permit(wait: &mut Option<PermitWait>) -> Option<OwnedSemaphorePermit> {
    match wait {
        Some(wait) => wait.await,
        None => None,
    }
}

/// Reduces the permit to the bytes of these jobs' inputs. Inputs of up to [`SMALL_BYTES`] together do not count.
fn shrink(permit: Option<OwnedSemaphorePermit>, rows: &[JobRow]) -> BudgetPermit {
    let bytes: usize = rows.iter().map(|row| row.input_bytes as usize).sum();
    match permit {
        Some(mut permit) if bytes > SMALL_BYTES => {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
            BudgetPermit::of(permit)
        }
        _ => BudgetPermit::default(),
    }
}
