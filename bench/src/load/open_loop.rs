//! An open loop: requests at a fixed rate, independent of the server's speed. Each is timed from when it was due,
//! including the wait for a connection. So a pause of 1 s delays every request that was due in it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::closed_loop::Span;
use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::tally::Tally;
use super::times::Times;
use crate::http::Answer;

/// Returns the request that is due at an instant.
pub type MakeRequest<'a> = Box<dyn FnMut(Instant) -> Vec<u8> + 'a>;

/// Clients that send requests on a schedule.
pub struct OpenLoop<'a> {
    address: SocketAddr,
    make: MakeRequest<'a>,
    interval: Duration,
    span: Span,
    connections: usize,
    tally: Rc<Tally>,
    next: Instant,
    counts_from: Instant,
    ends: Instant,
    idle: Vec<ConnectionId>,
    /// When the request in flight on each connection was due.
    due: Vec<Instant>,
    first_line: ConnectionId,
    /// Due requests that wait for a free connection.
    late: VecDeque<Instant>,
    after: Duration,
    /// What the schedule waits for; `None` once it has begun.
    ready: Option<Box<dyn Fn() -> bool + 'a>>,
    times: Times,
}

/// How often a condition is checked that a schedule waits for.
const CHECK_EVERY: Duration = Duration::from_millis(1);

impl<'a> OpenLoop<'a> {
    /// Creates clients that share `connections` connections.
    pub fn new(
        address: SocketAddr,
        make: impl FnMut(Instant) -> Vec<u8> + 'a,
        per_s: f64,
        connections: usize,
        span: Span,
    ) -> Self {
        let now = Instant::now();
        Self {
            address,
            make: Box::new(make),
            interval: Duration::from_secs_f64(1.0 / per_s),
            span,
            connections,
            tally: Rc::new(Tally::submitting()),
            next: now,
            counts_from: now,
            ends: now,
            idle: Vec::with_capacity(connections),
            due: vec![now; connections],
            first_line: 0,
            late: VecDeque::new(),
            after: Duration::ZERO,
            ready: None,
            times: Times::new(),
        }
    }

    /// Counts accepted requests in `tally`.
    #[must_use]
    pub fn counting(mut self, tally: Rc<Tally>) -> Self {
        self.tally = tally;
        self
    }

    /// Starts the schedule this long after the load.
    #[must_use]
    pub fn starting_after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// Starts the schedule when `ready` returns true.
    #[must_use]
    pub fn starting_when(mut self, ready: impl Fn() -> bool + 'a) -> Self {
        self.ready = Some(Box::new(ready));
        self
    }

    /// Time from when each request was due to its response.
    pub fn times(&self) -> &Times {
        &self.times
    }

    fn send(&mut self, event_loop: &mut EventLoop, line: ConnectionId, due: Instant) -> Result<(), String> {
        self.due[line - self.first_line] = due;
        event_loop.send(line, &(self.make)(due))
    }

    /// Lets the schedule begin at this instant.
    fn begin_at(&mut self, begins: Instant) {
        self.next = begins;
        self.counts_from = begins + self.span.warm_up;
        self.ends = self.counts_from + self.span.counted;
    }

    fn is_over(&self) -> bool {
        self.next >= self.ends && self.late.is_empty() && self.idle.len() == self.connections
    }
}

impl Role for OpenLoop<'_> {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        for _ in 0..self.connections {
            self.idle.push(event_loop.open(self.address)?);
        }
        self.first_line = self.idle.first().copied().unwrap_or_default();
        Ok(())
    }

    fn begin(&mut self, _: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.begin_at(now + self.after);
        Ok(())
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        self.tally.submit();
        let due = self.due[line - self.first_line];
        if due >= self.counts_from {
            self.times.add(due.elapsed());
        }
        if let Some(due) = self.late.pop_front() {
            return self.send(event_loop, line, due);
        }
        self.idle.push(line);
        Ok(())
    }

    fn turn(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        if let Some(ready) = &self.ready {
            let is_ready = ready();
            self.begin_at(if is_ready { now } else { now + CHECK_EVERY });
            if !is_ready {
                return Ok(Some(self.next));
            }
            self.ready = None;
        }
        while self.next <= now && self.next < self.ends {
            match self.idle.pop() {
                Some(line) => self.send(event_loop, line, self.next)?,
                None => self.late.push_back(self.next),
            }
            self.next += self.interval;
        }
        if self.is_over() {
            self.tally.close();
        }
        Ok((self.next < self.ends).then_some(self.next))
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }
}
