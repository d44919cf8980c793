//! Requests that wait in the server, each on its own connection, for a response with the timestamp of its cause.

use std::net::SocketAddr;
use std::time::Instant;

use super::event_loop::{ConnectionId, EventLoop, Role, must_be_200};
use super::times::Times;
use super::timestamp::stamps;
use crate::http::Answer;

/// Parked requests that wait until `wanted` of them are answered.
pub struct Parked {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    wanted: u64,
    first_line: ConnectionId,
    times: Times,
}

impl Parked {
    /// Opens one connection per request. Done after `wanted` responses.
    pub fn new(address: SocketAddr, requests: Vec<Vec<u8>>, wanted: u64) -> Self {
        Self { address, requests, wanted, first_line: 0, times: Times::new() }
    }

    /// Time from the cause to the response.
    pub fn times(&self) -> &Times {
        &self.times
    }
}

impl Role for Parked {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        self.first_line = event_loop.open_all(self.requests.len(), self.address)?;
        Ok(())
    }

    fn begin(&mut self, event_loop: &mut EventLoop, _: Instant) -> Result<(), String> {
        let mut requests = (self.first_line..).zip(&self.requests);
        requests.try_for_each(|(line, request)| event_loop.send(line, request))
    }

    fn answered(
        &mut self,
        event_loop: &mut EventLoop,
        line: ConnectionId,
        answer: &Answer<'_>,
    ) -> Result<(), String> {
        if answer.status == 204 {
            // The server's hold time ended without a job, so the request is sent again.
            return event_loop.send(line, &self.requests[line - self.first_line]);
        }
        must_be_200(answer)?;
        for caused in stamps(&answer.body) {
            self.times.add(caused.elapsed());
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.times.count() >= self.wanted
    }
}
