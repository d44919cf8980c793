//! A fast worker: it speaks the worker protocol with batch takes and reports each job the moment it has it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use super::tally::Tally;
use super::wire::{LineId, Role, Wire};
use crate::http::{Answer, Request};
use crate::server::Endpoint;

const OUTPUT: &[u8] = br#"{"output":{"ok":true}}"#;

/// One worker with some slots: a connection for its takes and one per slot for its reports.
pub struct Worker {
    address: SocketAddr,
    name: String,
    mount: String,
    token: String,
    slots: usize,
    tally: Rc<Tally>,
    take_line: LineId,
    idle: Vec<LineId>,
    is_taking: bool,
    takes: u64,
    last_job: Option<String>,
}

impl Worker {
    /// A worker of that endpoint.
    pub fn new(endpoint: &Endpoint, name: impl Into<String>, slots: usize, tally: Rc<Tally>) -> Self {
        Self {
            address: endpoint.address(),
            name: name.into(),
            mount: endpoint.mount(),
            token: endpoint.worker_token().to_owned(),
            slots,
            tally,
            take_line: 0,
            idle: Vec::with_capacity(slots),
            is_taking: false,
            takes: 0,
            last_job: None,
        }
    }

    /// How many takes brought jobs.
    pub fn takes(&self) -> u64 {
        self.takes
    }

    /// A job that it has reported on, once the load is over.
    pub fn last_job(&self) -> Option<&str> {
        self.last_job.as_deref()
    }

    fn request(&self, request: Request) -> Request {
        // Without `keep-alive` the server closes a worker's connections, to be safe with the SDK's blocking handlers.
        request.header("Authorization", &self.token).header("Connection", "keep-alive")
    }

    fn take(&mut self, wire: &mut Wire) -> Result<(), String> {
        let (free, busy) = (self.idle.len(), u8::from(self.idle.len() < self.slots));
        let path = format!(
            "{}/job-take-batch/{}?gpu=none&job_in_progress={busy}&batch_size={free}",
            self.mount, self.name
        );
        self.is_taking = true;
        self.tally.park();
        wire.send(self.take_line, &self.request(Request::get(path)).bare())
    }

    fn report(&mut self, wire: &mut Wire, job: &str) -> Result<(), String> {
        let Some(line) = self.idle.pop() else { return Err("more jobs than were asked for".to_owned()) };
        let path = format!("{}/job-done/{}/{job}?gpu=none&isStream=false", self.mount, self.name);
        wire.send(line, &self.request(Request::post(path)).with_body(OUTPUT))
    }
}

impl Role for Worker {
    fn open(&mut self, wire: &mut Wire) -> Result<(), String> {
        self.take_line = wire.open(self.address)?;
        for _ in 0..self.slots {
            self.idle.push(wire.open(self.address)?);
        }
        Ok(())
    }

    fn begin(&mut self, wire: &mut Wire, _: Instant) -> Result<(), String> {
        self.take(wire)
    }

    fn answered(&mut self, wire: &mut Wire, line: LineId, answer: Answer<'_>) -> Result<(), String> {
        if line == self.take_line {
            self.is_taking = false;
            self.tally.unpark();
            if answer.status == 204 {
                return Ok(());
            }
            if answer.status != 200 {
                return Err(format!("take: {} {}", answer.status, String::from_utf8_lossy(answer.body)));
            }
            self.takes += 1;
            self.last_job = job_ids(answer.body).last().map(str::to_owned);
            return job_ids(answer.body).try_for_each(|job| self.report(wire, job));
        }
        if answer.status != 200 {
            return Err(format!("done: {} {}", answer.status, String::from_utf8_lossy(answer.body)));
        }
        self.tally.finish();
        self.idle.push(line);
        Ok(())
    }

    fn turn(&mut self, wire: &mut Wire, _: Instant) -> Result<Option<Instant>, String> {
        // Once per round and not per report: reports that are answered together free their slots together.
        if !self.is_taking && !self.idle.is_empty() && !self.tally.is_settled() {
            self.take(wire)?;
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        // A take may stay open: nobody will answer it.
        self.tally.is_settled()
    }
}

/// The ids in a take's answer. The inputs that are in it too are the generator's own and have no member `id`.
fn job_ids(body: &[u8]) -> impl Iterator<Item = &str> {
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
