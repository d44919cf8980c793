//! Jobs one after the other, each until its first chunk: submit, take, post a chunk, read the chunk.

use std::time::Instant;

use super::closed_loop::Span;
use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::times::Times;
use super::worker::job_ids;
use crate::http::Answer;
use crate::server::Endpoint;

const WORKER: &str = "first-chunk";

/// A client and a worker that exchange jobs through the server only.
pub struct FirstChunk {
    endpoint: Endpoint,
    span: Span,
    lines: Lines,
    began: Instant,
    ends: Instant,
    job: String,
    /// Responses that are missing before the next job.
    open: Open,
    times: Times,
    over: bool,
}

#[derive(Clone, Copy, Default)]
struct Lines {
    client: ConnectionId,
    reader: ConnectionId,
    taker: ConnectionId,
    reporter: ConnectionId,
}

/// The kinds of missing responses.
#[derive(Clone, Copy, Default, PartialEq)]
struct Open {
    submit: bool,
    chunk: bool,
    report: bool,
}

impl FirstChunk {
    /// Creates the pair for an endpoint; both run for `span`.
    pub fn new(endpoint: &Endpoint, span: Span) -> Self {
        let now = Instant::now();
        Self {
            endpoint: endpoint.clone(),
            span,
            lines: Lines::default(),
            began: now,
            ends: now,
            job: String::new(),
            open: Open::default(),
            times: Times::new(),
            over: false,
        }
    }

    /// Time from a job's submit to its reader's first chunk.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Sends the take first, so that the worker is parked when the job is submitted.
    fn next_job(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        let take = format!("job-take/{WORKER}?gpu=none&job_in_progress=0");
        event_loop.send(self.lines.taker, &self.endpoint.worker_get(&take).bare())?;
        self.open = Open { submit: true, chunk: true, report: false };
        self.began = Instant::now();
        event_loop.send(self.lines.client, &self.endpoint.post("run").with_body(b"{\"input\":{}}"))
    }

    fn report(&self, event_loop: &mut EventLoop, kind: &str, body: &[u8]) -> Result<(), String> {
        let path = format!("{kind}/{WORKER}/{}?gpu=none&isStream=false", self.job);
        event_loop.send(self.lines.reporter, &self.endpoint.worker_post(&path).with_body(body))
    }

    fn read(&self, event_loop: &mut EventLoop, job: &str) -> Result<(), String> {
        event_loop.send(self.lines.reader, &self.endpoint.get(&format!("stream/{job}?wait=5000")).bare())
    }
}

impl Role for FirstChunk {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        let address = self.endpoint.address();
        let mut open = || event_loop.open(address);
        self.lines = Lines { client: open()?, reader: open()?, taker: open()?, reporter: open()? };
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.ends = now + self.span.counted;
        self.next_job(event_loop)
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        must_be_200(answer)?;
        let Lines { client, reader, taker, .. } = self.lines;
        let mut ids = job_ids(&answer.body);
        if line == client {
            self.open.submit = false;
            return self.read(event_loop, ids.next().unwrap_or_default());
        }
        if line == taker {
            ids.next().unwrap_or_default().clone_into(&mut self.job);
            return self.report(event_loop, "job-stream", b"{\"output\":\"a\"}");
        }
        if line == reader && *answer.body == *b"[]" {
            let job = self.job.clone();
            return self.read(event_loop, &job);
        }
        if line == reader {
            self.times.add(self.began.elapsed());
            self.open.chunk = false;
        } else if self.open.report {
            // The result was accepted, so the worker is free.
            self.over = Instant::now() >= self.ends;
            return if self.over { Ok(()) } else { self.next_job(event_loop) };
        } else {
            self.open.report = true;
        }
        // The chunk was both accepted and delivered.
        if self.open == (Open { submit: false, chunk: false, report: true }) {
            return self.report(event_loop, "job-done", b"{\"output\":1}");
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.over
    }
}
