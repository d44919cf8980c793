//! Readers of server-sent events. Each holds one response open and measures the age of the timestamps that arrive.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::closed_loop::Span;
use super::event_loop::{ConnectionId, EventLoop, Role};
use super::tally::Tally;
use super::times::Times;
use super::timestamp::stamps;
use crate::http::Answer;

/// Readers of server-sent events. `readers_each` of them read the same job, which the tally counts once.
pub struct Listeners {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    /// Number of readers of the same job.
    readers_each: u64,
    tally: Rc<Tally>,
    span: Span,
    after: Duration,
    first_line: ConnectionId,
    counts_from: Instant,
    ends: Instant,
    /// The unfinished line of each response; `None` before the body starts.
    parts: Vec<Option<Vec<u8>>>,
    heard: u64,
    times: Times,
}

impl Listeners {
    /// Opens one connection per request. `readers_each` of them read the same job.
    pub fn new(
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        readers_each: u64,
        span: Span,
        tally: Rc<Tally>,
    ) -> Self {
        let now = Instant::now();
        let parts = vec![None; requests.len()];
        Self {
            address,
            requests,
            readers_each,
            tally,
            span,
            after: Duration::ZERO,
            first_line: 0,
            counts_from: now,
            ends: now,
            parts,
            heard: 0,
            times: Times::new(),
        }
    }

    /// Delays the start of counting by `after`.
    #[must_use]
    pub fn counting_after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// Age of timestamps when they arrived.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Timestamps received per second, by all readers together.
    pub fn per_s(&self) -> f64 {
        self.times.count() as f64 / self.span.counted.as_secs_f64()
    }
}

impl Role for Listeners {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.requests.len(), self.address)?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.counts_from = now + self.after + self.span.warm_up;
        self.ends = self.counts_from + self.span.counted;
        let mut requests = (self.first_line..).zip(&self.requests);
        requests.try_for_each(|(line, request)| event_loop.listen(line, request))
    }

    fn answered(&mut self, _: &mut EventLoop, _: ConnectionId, _: &Answer<'_>) -> Result<(), String> {
        Ok(())
    }

    fn heard(&mut self, line: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        let now = Instant::now();
        let part = &mut self.parts[line - self.first_line];
        if part.is_none() && !bytes.starts_with(b"HTTP/1.1 200") {
            return Err(format!("no stream: {}", String::from_utf8_lossy(bytes)));
        }
        let part = part.get_or_insert_default();
        part.extend_from_slice(bytes);
        let Some(end) = part.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        for caused in stamps(&part[..end]) {
            self.heard += 1;
            if (self.counts_from..self.ends).contains(&now) {
                self.times.add(now.saturating_duration_since(caused));
            }
        }
        part.drain(..=end);
        self.tally.finished_until_now(self.heard / self.readers_each);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.tally.is_settled()
    }
}
