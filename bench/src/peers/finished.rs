//! Looks how many jobs a queue has finished, where only the queue knows.

use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{Answer, Request};
use crate::load::{ConnectionId, EventLoop, Role, Tally, ask};

/// Between two looks: rare enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a worker may take to come up.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// Sees the first job through before anything is measured: programs that compile as they run, and workers that come up
/// slowly, are ready then. It must have been submitted.
pub(super) fn wait_first(address: SocketAddr) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < START_TIME_MAX {
        if ask(address, &Request::get("/finished").bare())? == b"1" {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(format!("the first job was not done within {} s", START_TIME_MAX.as_secs()))
}

/// Asks `GET /finished` now and then; the answer is a number. The first job does not count.
pub(super) struct Finished {
    address: SocketAddr,
    tally: Rc<Tally>,
    line: ConnectionId,
    next: Option<Instant>,
}

impl Finished {
    pub fn new(address: SocketAddr, tally: Rc<Tally>) -> Self {
        Self { address, tally, line: 0, next: None }
    }
}

impl Role for Finished {
    fn open(&mut self, wire: &mut EventLoop) -> Result<(), String> {
        self.line = wire.open(self.address)?;
        Ok(())
    }

    fn begin(&mut self, _: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.next = Some(now + PAUSE);
        Ok(())
    }

    fn answered(&mut self, _: &mut EventLoop, _: ConnectionId, answer: &Answer<'_>) -> Result<(), String> {
        let text = String::from_utf8_lossy(&answer.body);
        let count: u64 = text.trim().parse().map_err(|_| format!("not a number of jobs: {text}"))?;
        self.tally.finished_until_now(count.saturating_sub(1));
        self.next = Some(Instant::now() + PAUSE);
        Ok(())
    }

    fn turn(&mut self, wire: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        if self.next.is_some_and(|next| next <= now) {
            self.next = None;
            wire.send(self.line, &Request::get("/finished").bare())?;
        }
        Ok(self.next)
    }

    fn is_done(&self) -> bool {
        self.tally.is_settled()
    }
}
