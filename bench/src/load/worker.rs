//! A fast worker: it speaks the worker protocol with batch takes and reports each job the moment it has it.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::tally::Tally;
use super::wire::{LineId, Role, Wire, must_be_200};
use crate::http::Answer;
use crate::server::Endpoint;

const OUTPUT: &[u8] = br#"{"output":{"ok":true}}"#;

/// One worker with some slots: a connection for its takes and one per slot for its reports.
pub struct Worker {
    endpoint: Endpoint,
    name: String,
    slots: usize,
    tally: Rc<Tally>,
    take_line: LineId,
    idle: Vec<LineId>,
    is_taking: bool,
    is_over: bool,
    working_for: Option<Duration>,
    ends: Option<Instant>,
    takes: u64,
    last_job: Option<String>,
}

impl Worker {
    /// A worker of that endpoint.
    pub fn new(endpoint: &Endpoint, name: impl Into<String>, slots: usize, tally: Rc<Tally>) -> Self {
        Self {
            endpoint: endpoint.clone(),
            name: name.into(),
            slots,
            tally,
            take_line: 0,
            idle: Vec::with_capacity(slots),
            is_taking: false,
            is_over: false,
            working_for: None,
            ends: None,
            takes: 0,
            last_job: None,
        }
    }

    /// It stops after that time, whatever is left.
    #[must_use]
    pub fn working_for(mut self, time: Duration) -> Self {
        self.working_for = Some(time);
        self
    }

    /// How many takes brought jobs.
    pub fn takes(&self) -> u64 {
        self.takes
    }

    /// A job that it has reported on, once the load is over.
    pub fn last_job(&self) -> Option<&str> {
        self.last_job.as_deref()
    }

    fn take(&mut self, wire: &mut Wire) -> Result<(), String> {
        let (free, busy) = (self.idle.len(), u8::from(self.idle.len() < self.slots));
        let operation =
            format!("job-take-batch/{}?gpu=none&job_in_progress={busy}&batch_size={free}", self.name);
        self.is_taking = true;
        self.tally.park();
        wire.send(self.take_line, &self.endpoint.worker_get(&operation).bare())
    }

    fn report(&mut self, wire: &mut Wire, job: &str) -> Result<(), String> {
        let Some(line) = self.idle.pop() else { return Err("more jobs than were asked for".to_owned()) };
        let operation = format!("job-done/{}/{job}?gpu=none&isStream=false", self.name);
        wire.send(line, &self.endpoint.worker_post(&operation).with_body(OUTPUT))
    }
}

impl Role for Worker {
    fn open(&mut self, wire: &mut Wire) -> Result<(), String> {
        self.take_line = wire.open(self.endpoint.address())?;
        for _ in 0..self.slots {
            self.idle.push(wire.open(self.endpoint.address())?);
        }
        Ok(())
    }

    fn begin(&mut self, wire: &mut Wire, now: Instant) -> Result<(), String> {
        self.ends = self.working_for.map(|time| now + time);
        self.take(wire)
    }

    fn answered(&mut self, wire: &mut Wire, line: LineId, answer: &Answer<'_>) -> Result<(), String> {
        if line == self.take_line {
            self.is_taking = false;
            self.tally.unpark();
            if answer.status == 204 {
                return Ok(());
            }
            must_be_200(answer)?;
            self.takes += 1;
            self.last_job = job_ids(&answer.body).last().map(str::to_owned);
            return job_ids(&answer.body).try_for_each(|job| self.report(wire, job));
        }
        must_be_200(answer)?;
        self.tally.finish();
        self.idle.push(line);
        Ok(())
    }

    fn turn(&mut self, wire: &mut Wire, now: Instant) -> Result<Option<Instant>, String> {
        if self.ends.is_some_and(|ends| ends <= now) {
            self.is_over = true;
            return Ok(None);
        }
        // Once per round and not per report: reports that are answered together free their slots together.
        if !self.is_taking && !self.idle.is_empty() && !self.tally.is_settled() {
            self.take(wire)?;
        }
        Ok(self.ends)
    }

    fn is_done(&self) -> bool {
        // A take may stay open: nobody will answer it.
        self.tally.is_settled() || self.is_over && self.idle.len() == self.slots
    }
}

/// The ids in a take's answer. The inputs that are in it too are the generator's own and have no member `id`.
pub fn job_ids(body: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.split("\"id\":\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_batch_are_found() {
        let batch = br#"[{"id":"a-1","input":{"n":1}},{"id":"b-2","input":{}}]"#;
        assert_eq!(job_ids(batch).collect::<Vec<_>>(), ["a-1", "b-2"]);
        assert_eq!(job_ids(b"[]").count(), 0);
    }
}
