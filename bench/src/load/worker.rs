//! A fast worker: takes batches and reports each job immediately.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::tally::Tally;
use super::target::Target;
use crate::http::Answer;
use crate::server::Endpoint;

const OUTPUT: &[u8] = br#"{"output":{"ok":true}}"#;

/// The requests of a worker, and the server's responses.
pub trait Protocol {
    /// The server's address and protocol.
    fn dial(&self) -> Target;
    /// The request for up to `free` jobs.
    fn take(&self, free: usize, busy: bool) -> Vec<u8>;
    /// The job ids in the response to a take.
    fn jobs(&self, answer: &[u8]) -> Result<Vec<String>, String>;
    /// The request that reports a result.
    fn done(&self, job: &str) -> Vec<u8>;
    /// Pause after a response without jobs; zero if the server holds takes.
    fn pause(&self) -> Duration {
        Duration::ZERO
    }
}

/// Longshore's worker protocol.
struct LongshoreProtocol {
    endpoint: Endpoint,
    name: String,
}

impl Protocol for LongshoreProtocol {
    fn dial(&self) -> Target {
        self.endpoint.address().into()
    }

    fn take(&self, free: usize, busy: bool) -> Vec<u8> {
        let (name, busy) = (&self.name, u8::from(busy));
        let take = format!("job-take-batch/{name}?gpu=none&job_in_progress={busy}&batch_size={free}");
        self.endpoint.worker_get(&take).bare()
    }

    fn jobs(&self, answer: &[u8]) -> Result<Vec<String>, String> {
        Ok(job_ids(answer).map(str::to_owned).collect())
    }

    fn done(&self, job: &str) -> Vec<u8> {
        let done = format!("job-done/{}/{job}?gpu=none&isStream=false", self.name);
        self.endpoint.worker_post(&done).with_body(OUTPUT)
    }
}

/// A worker with a connection for takes and one per slot for reports.
pub struct Worker {
    protocol: Box<dyn Protocol>,
    slots: usize,
    tally: Rc<Tally>,
    take_line: ConnectionId,
    idle: Vec<ConnectionId>,
    is_taking: bool,
    is_over: bool,
    working_for: Option<Duration>,
    ends: Option<Instant>,
    rests_until: Option<Instant>,
    takes: u64,
    last_job: Option<String>,
}

impl Worker {
    /// Creates a worker of a Longshore endpoint.
    pub fn new(endpoint: &Endpoint, name: impl Into<String>, slots: usize, tally: Rc<Tally>) -> Self {
        let protocol = LongshoreProtocol { endpoint: endpoint.clone(), name: name.into() };
        Self::speaking(protocol, slots, tally)
    }

    /// Creates a worker with another protocol.
    pub fn speaking(protocol: impl Protocol + 'static, slots: usize, tally: Rc<Tally>) -> Self {
        Self {
            protocol: Box::new(protocol),
            slots,
            tally,
            take_line: 0,
            idle: Vec::with_capacity(slots),
            is_taking: false,
            is_over: false,
            working_for: None,
            ends: None,
            rests_until: None,
            takes: 0,
            last_job: None,
        }
    }

    /// Stops the worker after `span`, even if jobs are left.
    #[must_use]
    pub fn working_for(mut self, time: Duration) -> Self {
        self.working_for = Some(time);
        self
    }

    /// Number of takes that returned jobs.
    pub fn takes(&self) -> u64 {
        self.takes
    }

    /// A job that the worker has reported, once the load is over.
    pub fn last_job(&self) -> Option<&str> {
        self.last_job.as_deref()
    }

    fn take(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.is_taking = true;
        self.tally.park();
        let free = self.idle.len();
        event_loop.send(self.take_line, &self.protocol.take(free, free < self.slots))
    }

    fn report(&mut self, event_loop: &mut EventLoop, job: &str) -> Result<(), String> {
        let Some(line) = self.idle.pop() else { return Err("more jobs than free slots".to_owned()) };
        event_loop.send(line, &self.protocol.done(job))
    }
}

impl Role for Worker {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.take_line = event_loop.open(self.protocol.dial())?;
        for _ in 0..self.slots {
            self.idle.push(event_loop.open(self.protocol.dial())?);
        }
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<(), String> {
        self.ends = self.working_for.map(|time| now + time);
        self.take(event_loop)
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        if line == self.take_line {
            self.is_taking = false;
            self.tally.unpark();
            if answer.status == 204 {
                return Ok(());
            }
            must_be_200(answer)?;
            let mut jobs = self.protocol.jobs(&answer.body)?;
            if jobs.is_empty() {
                self.rests_until = Some(Instant::now() + self.protocol.pause());
                return Ok(());
            }
            self.takes += 1;
            jobs.iter().try_for_each(|job| self.report(event_loop, job))?;
            self.last_job = jobs.pop();
            return Ok(());
        }
        must_be_200(answer)?;
        self.tally.finish();
        self.idle.push(line);
        Ok(())
    }

    fn turn(&mut self, event_loop: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        if self.ends.is_some_and(|ends| ends <= now) {
            self.is_over = true;
            return Ok(None);
        }
        if self.rests_until.is_some_and(|end| now < end) {
            return Ok(self.rests_until);
        }
        // Once per round: reports that are answered together free their slots together, so one take asks for all of
        // them.
        if !self.is_taking && !self.idle.is_empty() && !self.tally.is_settled() {
            self.take(event_loop)?;
        }
        Ok(self.ends)
    }

    fn is_done(&self) -> bool {
        // A parked take may remain; the server has no job for it.
        self.tally.is_settled() || self.is_over && self.idle.len() == self.slots
    }
}

/// The job ids in a take's response. The generator's inputs, which are also in it, have no member `id`.
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
