//! One job after another, each up to its first chunk: submit, take, yield, read.

use std::time::Instant;

use super::closed_loop::Span;
use super::times::Times;
use super::wire::{LineId, Role, Wire, must_be_200};
use super::worker::job_ids;
use crate::http::Answer;
use crate::server::Endpoint;

const WORKER: &str = "first-chunk";

/// A client and a worker that know of each other only what the server tells them.
pub struct FirstChunk {
    endpoint: Endpoint,
    span: Span,
    lines: Lines,
    began: Instant,
    ends: Instant,
    job: String,
    /// What is still to come before the next job.
    open: Open,
    times: Times,
    over: bool,
}

#[derive(Clone, Copy, Default)]
struct Lines {
    client: LineId,
    reader: LineId,
    taker: LineId,
    reporter: LineId,
}

/// Answers that are awaited.
#[derive(Clone, Copy, Default, PartialEq)]
struct Open {
    submit: bool,
    chunk: bool,
    report: bool,
}

impl FirstChunk {
    /// For that long.
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

    /// From a job's submission to its reader's first chunk.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Asks for a job first: the worker waits when it comes.
    fn next_job(&mut self, wire: &mut Wire) -> Result<(), String> {
        let take = format!("job-take/{WORKER}?gpu=none&job_in_progress=0");
        wire.send(self.lines.taker, &self.endpoint.worker_get(&take).bare())?;
        self.open = Open { submit: true, chunk: true, report: false };
        self.began = Instant::now();
        wire.send(self.lines.client, &self.endpoint.post("run").with_body(b"{\"input\":{}}"))
    }

    fn report(&self, wire: &mut Wire, kind: &str, body: &[u8]) -> Result<(), String> {
        let path = format!("{kind}/{WORKER}/{}?gpu=none&isStream=false", self.job);
        wire.send(self.lines.reporter, &self.endpoint.worker_post(&path).with_body(body))
    }

    fn read(&self, wire: &mut Wire, job: &str) -> Result<(), String> {
        wire.send(self.lines.reader, &self.endpoint.get(&format!("stream/{job}?wait=5000")).bare())
    }
}

impl Role for FirstChunk {
    fn open(&mut self, wire: &mut Wire) -> Result<(), String> {
        let address = self.endpoint.address();
        let mut open = || wire.open(address);
        self.lines = Lines { client: open()?, reader: open()?, taker: open()?, reporter: open()? };
        Ok(())
    }

    fn begin(&mut self, wire: &mut Wire, now: Instant) -> Result<(), String> {
        self.ends = now + self.span.counted;
        self.next_job(wire)
    }

    fn answered(&mut self, wire: &mut Wire, line: LineId, answer: &Answer<'_>) -> Result<(), String> {
        must_be_200(answer)?;
        let Lines { client, reader, taker, .. } = self.lines;
        let mut ids = job_ids(&answer.body);
        if line == client {
            self.open.submit = false;
            return self.read(wire, ids.next().unwrap_or_default());
        }
        if line == taker {
            ids.next().unwrap_or_default().clone_into(&mut self.job);
            return self.report(wire, "job-stream", b"{\"output\":\"a\"}");
        }
        if line == reader && *answer.body == *b"[]" {
            let job = self.job.clone();
            return self.read(wire, &job);
        }
        if line == reader {
            self.times.add(self.began.elapsed());
            self.open.chunk = false;
        } else if self.open.report {
            // The result was accepted: the worker is free again.
            self.over = Instant::now() >= self.ends;
            return if self.over { Ok(()) } else { self.next_job(wire) };
        } else {
            self.open.report = true;
        }
        // Both the chunk's acceptance and its delivery are there.
        if self.open == (Open { submit: false, chunk: false, report: true }) {
            return self.report(wire, "job-done", b"{\"output\":1}");
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.over
    }
}
