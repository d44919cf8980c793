//! Room for the inputs that takes are answered with.
//!
//! It is held before a job is handed out. While there is none for the job that is next, takes wait as if there were no
//! job; as soon as there is, they go on.

use std::pin::Pin;

use longshore_model::JobRow;
use longshore_queue::Take;
use tokio::sync::OwnedSemaphorePermit;

use super::Actor;
use super::request::Given;
use crate::payload_budget::{BudgetPermit, SMALL_BYTES};

/// The inputs that one take is answered with, in bytes; a single longer one is more.
const BATCH_BYTES_MAX: usize = 16_000_000;

/// Waits for room.
pub(super) type Turn = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Actor {
    /// Lets the queue answer a take with the jobs that there is room for.
    pub(super) fn take_within_room(&mut self, take: Take) -> Given {
        let mut take = take;
        loop {
            let next = self.next_bytes();
            let permit = self.room_for(next, take.slots);
            let bytes_max = match (&permit, next) {
                // It is larger than the whole room, and has all of it.
                (Some(permit), Some(next)) => next.max(permit.num_permits()),
                _ => SMALL_BYTES,
            };
            take.input_bytes_max = bytes_max as u64;
            let rows = self.apply(|queue, now, out| queue.take(now, &take, out));
            if rows.is_empty() {
                match self.next_bytes() {
                    // Those before it were over, or it has come back with this take.
                    Some(bytes) if self.next_bytes() != next && bytes > bytes_max => {
                        take.says_busy = None;
                        continue;
                    }
                    Some(bytes) if bytes > bytes_max && self.turn.is_none() => {
                        self.turn = Some(Box::pin(self.shared.services.inputs.take(bytes)));
                    }
                    _ => {}
                }
            }
            return Given { room: kept(permit, &rows), rows };
        }
    }

    /// The input of the job that is next, in bytes.
    fn next_bytes(&self) -> Option<usize> {
        self.queue.next_input_bytes().map(|bytes| bytes as usize)
    }

    /// Room for the next job, and for a batch as far as there is some. None is needed where what comes is small.
    fn room_for(&mut self, next: Option<usize>, slots: u32) -> Option<OwnedSemaphorePermit> {
        let next = next.filter(|next| slots > 1 || *next > SMALL_BYTES)?;
        let room = &self.shared.services.inputs;
        let wanted = if slots > 1 { next.max(BATCH_BYTES_MAX) } else { next }.min(room.bytes_max());
        let turn = self.room.take();
        let more = wanted.saturating_sub(turn.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        let permit = match (turn, room.try_take(more.min(room.bytes_free()))) {
            (Some(mut turn), Some(more)) => {
                turn.merge(more);
                Some(turn)
            }
            (turn, more) => turn.or(more),
        };
        permit.filter(|permit| permit.num_permits() >= next.min(room.bytes_max()))
    }

    /// It is its turn: takes that wait may go on.
    pub(super) fn has_room(&mut self, room: Option<OwnedSemaphorePermit>) {
        (self.room, self.turn) = (room, None);
        self.jobs_are_ready = true;
    }
}

/// The end of the wait, if there is one.
pub(super) async fn come(turn: &mut Option<Turn>) -> Option<OwnedSemaphorePermit> {
    match turn {
        Some(turn) => turn.await,
        None => None,
    }
}

/// What these jobs need of it.
fn kept(permit: Option<OwnedSemaphorePermit>, rows: &[JobRow]) -> BudgetPermit {
    let bytes: usize = rows.iter().map(|row| row.input_bytes as usize).sum();
    match permit {
        Some(mut permit) if bytes > SMALL_BYTES => {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
            BudgetPermit::of(permit)
        }
        _ => BudgetPermit::default(),
    }
}
