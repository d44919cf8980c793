//! A worker that takes jobs at a given time and leaves the reports to other roles.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::worker::job_ids;
use crate::http::Answer;
use crate::server::Endpoint;

/// Most jobs per take.
const BATCH: usize = 1_000;

/// Ids of taken jobs, in order.
pub type Taken = Rc<RefCell<VecDeque<String>>>;

/// Takes `wanted` jobs, starting `after` the load began.
pub struct Taker {
    endpoint: Endpoint,
    after: Duration,
    wanted: usize,
    taken: Taken,
    line: ConnectionId,
    begins: Option<Instant>,
}

impl Taker {
    /// Creates the taker. The job ids are appended to `taken`.
    pub fn new(endpoint: &Endpoint, after: Duration, wanted: usize, taken: Taken) -> Self {
        Self { endpoint: endpoint.clone(), after, wanted, taken, line: 0, begins: None }
    }

    fn take(&self, event_loop: &mut EventLoop) -> Result<(), String> {
        let have = self.taken.borrow().len();
        let (size, busy) = (BATCH.min(self.wanted - have), u8::from(have > 0));
        let operation = format!("job-take-batch/taker?gpu=none&job_in_progress={busy}&batch_size={size}");
        event_loop.send(self.line, &self.endpoint.worker_get(&operation).bare())
    }
}

impl Role for Taker {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.line = event_loop.open(self.endpoint.address())?;
        Ok(())
    }

    fn begin(&mut self, _: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.begins = Some(now + self.after);
        Ok(())
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        _: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        self.taken.borrow_mut().extend(job_ids(&answer.body).map(str::to_owned));
        if self.taken.borrow().len() < self.wanted { self.take(event_loop) } else { Ok(()) }
    }

    fn turn(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        if self.begins.is_some_and(|begins| begins <= now) {
            self.begins = None;
            self.take(event_loop)?;
        }
        Ok(self.begins)
    }

    fn is_done(&self) -> bool {
        true
    }
}
