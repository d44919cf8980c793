//! A closed loop: each client sends its next request after the response to the last one.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::tally::Tally;
use super::target::Target;
use super::times::Times;
use crate::http::Answer;

/// Duration of a load: a warm-up that is not counted, then the counted time.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Duration of the warm-up, which is not counted.
    pub warm_up: Duration,
    /// Duration that is counted, after the warm-up.
    pub counted: Duration,
}

/// Time limit of a load with a fixed number of requests.
const FILLING_TIME_MAX: Duration = Duration::from_hours(1);

/// Where requests come from.
enum Source {
    Same(Rc<[u8]>),
    Made(Box<dyn FnMut() -> Vec<u8>>),
}

/// Clients that send requests repeatedly, each on its own connection.
pub struct ClosedLoop {
    dial: Target,
    request: Source,
    span: Span,
    tally: Rc<Tally>,
    connections: usize,
    /// Number of requests that remain to be sent.
    left: u64,
    sent: Vec<Instant>,
    first_line: ConnectionId,
    counts_from: Instant,
    ends: Instant,
    open: usize,
    /// Whether each request waits until a worker is parked, and the connections that wait.
    gate: bool,
    waiting: Vec<ConnectionId>,
    times: Times,
}

impl ClosedLoop {
    /// Creates clients that send the same request for `span`.
    pub fn new(dial: impl Into<Target>, request: Vec<u8>, connections: usize, span: Span) -> Self {
        let now = Instant::now();
        Self {
            dial: dial.into(),
            request: Source::Same(request.into()),
            left: u64::MAX,
            span,
            tally: Rc::new(Tally::submitting()),
            connections,
            sent: vec![now; connections],
            first_line: 0,
            counts_from: now,
            ends: now,
            open: 0,
            gate: false,
            waiting: Vec::new(),
            times: Times::new(),
        }
    }

    /// Creates clients that send `count` requests in total, without a time limit.
    pub fn filling(
        address: SocketAddr,
        make: impl FnMut() -> Vec<u8> + 'static,
        connections: usize,
        requests: u64,
    ) -> Self {
        let span = Span { warm_up: Duration::ZERO, counted: FILLING_TIME_MAX };
        let connections = connections.min(requests as usize);
        let request = Source::Made(Box::new(make));
        Self { request, left: requests, ..Self::new(address, Vec::new(), connections, span) }
    }

    /// Counts accepted requests in `tally`.
    #[must_use]
    pub fn counting(mut self, tally: Rc<Tally>) -> Self {
        self.tally = tally;
        self
    }

    /// Makes each request wait until a worker is parked.
    #[must_use]
    pub fn when_parked(mut self) -> Self {
        self.gate = true;
        self
    }

    /// Successful responses per second of the counted time.
    pub fn per_s(&self) -> f64 {
        self.times.count() as f64 / (self.ends - self.counts_from).as_secs_f64()
    }

    /// Time from each request to its response.
    pub fn times(&self) -> &Times {
        &self.times
    }

    fn close_if_over(&self) {
        if self.open == 0 {
            self.tally.close();
        }
    }

    fn send(&mut self, event_loop: &mut EventLoop, line: ConnectionId, now: Instant) -> Result<(), String> {
        self.sent[line - self.first_line] = now;
        self.open += 1;
        self.left -= 1;
        match &mut self.request {
            Source::Same(bytes) => event_loop.send(line, bytes),
            Source::Made(make) => event_loop.send(line, &make()),
        }
    }
}

impl Role for ClosedLoop {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.connections, self.dial)?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.counts_from = now + self.span.warm_up;
        self.ends = self.counts_from + self.span.counted;
        let lines = self.first_line..self.first_line + self.connections;
        if self.gate {
            self.waiting.extend(lines);
            return Ok(());
        }
        lines.into_iter().try_for_each(|line| self.send(event_loop, line, now))
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        let now = Instant::now();
        self.open -= 1;
        must_be_200(answer)?;
        self.tally.submit();
        if now >= self.ends && self.times.count() == 0 && !self.gate {
            // The server stalled for the whole span: it lasts until the first response.
            self.ends = now + Duration::from_nanos(1);
        }
        if (self.counts_from..self.ends).contains(&now) {
            self.times.add(now - self.sent[line - self.first_line]);
        }
        if now >= self.ends || self.left == 0 {
            self.close_if_over();
        } else if self.gate {
            self.waiting.push(line);
        } else {
            self.send(event_loop, line, now)?;
        }
        Ok(())
    }

    fn turn(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        if now >= self.ends {
            self.waiting.clear();
            self.close_if_over();
        } else if self.tally.is_parked() {
            while let Some(line) = self.waiting.pop() {
                self.send(event_loop, line, now)?;
            }
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        self.open == 0 && self.waiting.is_empty()
    }
}
