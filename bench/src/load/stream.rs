//! Streams: per job a worker that posts chunks and a client that reads them.

use std::rc::Rc;
use std::time::Instant;

use super::closed_loop::Span;
use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::tally::Tally;
use super::times::Times;
use super::timestamp::{stamp, stamps};
use crate::http::Answer;
use crate::server::Endpoint;

/// The worker's side of running jobs: each posts the next chunk after the last one was accepted.
pub struct Yielding {
    endpoint: Endpoint,
    worker: String,
    jobs: Vec<String>,
    span: Span,
    tally: Rc<Tally>,
    first_line: ConnectionId,
    counts_from: Instant,
    ends: Instant,
    running: usize,
    counted: u64,
}

impl Yielding {
    /// Creates the worker's side of jobs that `worker` has taken.
    pub fn new(endpoint: &Endpoint, worker: &str, jobs: Vec<String>, span: Span, tally: Rc<Tally>) -> Self {
        let (worker, running, now) = (worker.to_owned(), jobs.len(), Instant::now());
        Self {
            endpoint: endpoint.clone(),
            worker,
            jobs,
            span,
            tally,
            first_line: 0,
            counts_from: now,
            ends: now,
            running,
            counted: 0,
        }
    }

    /// Chunks accepted per second.
    pub fn per_s(&self) -> f64 {
        self.counted as f64 / self.span.counted.as_secs_f64()
    }

    fn send(&self, event_loop: &mut EventLoop, at: usize, now: Instant) -> Result<(), String> {
        let path = format!("job-stream/{}/{}?gpu=none&isStream=false", self.worker, self.jobs[at]);
        let chunk = format!("{{\"output\":{}}}", stamp(now));
        event_loop.send(self.first_line + at, &self.endpoint.worker_post(&path).with_body(chunk.as_bytes()))
    }
}

impl Role for Yielding {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.jobs.len(), self.endpoint.address())?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.counts_from = now + self.span.warm_up;
        self.ends = self.counts_from + self.span.counted;
        (0..self.jobs.len()).try_for_each(|at| self.send(event_loop, at, now))
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        self.tally.submit();
        let now = Instant::now();
        self.counted += u64::from((self.counts_from..self.ends).contains(&now));
        if now < self.ends {
            return self.send(event_loop, line - self.first_line, now);
        }
        self.running -= 1;
        if self.running == 0 {
            self.tally.close();
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.running == 0
    }
}

/// The client's side: one reader per job, which requests the next chunks after each response.
pub struct Reading {
    endpoint: Endpoint,
    requests: Vec<Vec<u8>>,
    span: Span,
    tally: Rc<Tally>,
    first_line: ConnectionId,
    counts_from: Instant,
    ends: Instant,
    times: Times,
}

impl Reading {
    /// Creates one reader for each of the jobs.
    pub fn new(endpoint: &Endpoint, jobs: &[String], span: Span, tally: Rc<Tally>) -> Self {
        let requests =
            jobs.iter().map(|job| endpoint.get(&format!("stream/{job}?wait=1000")).bare()).collect();
        let now = Instant::now();
        let (first_line, counts_from, ends) = (0, now, now);
        Self {
            endpoint: endpoint.clone(),
            requests,
            span,
            tally,
            first_line,
            counts_from,
            ends,
            times: Times::new(),
        }
    }

    /// Time from a chunk's post to its arrival at the reader.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Chunks received per second, by all readers together.
    pub fn per_s(&self) -> f64 {
        self.times.count() as f64 / self.span.counted.as_secs_f64()
    }
}

impl Role for Reading {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.requests.len(), self.endpoint.address())?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.counts_from = now + self.span.warm_up;
        self.ends = self.counts_from + self.span.counted;
        let mut requests = (self.first_line..).zip(&self.requests);
        requests.try_for_each(|(line, request)| event_loop.send(line, request))
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        let now = Instant::now();
        for yielded in stamps(&answer.body) {
            self.tally.finish();
            if (self.counts_from..self.ends).contains(&now) {
                self.times.add(now.saturating_duration_since(yielded));
            }
        }
        if self.tally.is_settled() {
            Ok(())
        } else {
            event_loop.send(line, &self.requests[line - self.first_line])
        }
    }

    fn is_done(&self) -> bool {
        self.tally.is_settled()
    }
}
