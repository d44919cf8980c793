//! Polls the number of finished jobs of a queue that does not notify clients.

use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{Answer, Request};
use crate::load::{ConnectionId, EventLoop, Role, Tally, ask};

/// Interval of polls, long enough not to disturb the measurement.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a worker may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// Waits until the first job, which must have been submitted, is finished. Slow workers and just-in-time compilers
/// are ready then.
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

/// Polls `GET /finished`, whose response is a number. The first job is not counted.
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
