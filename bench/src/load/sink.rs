//! Readers that receive and discard streamed responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::event_loop::{ConnectionId, EventLoop, Role};
use crate::http::Answer;

/// Interval of checks whether the load has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Readers of streamed responses, until `may_leave` is set.
pub struct Sink {
    address: SocketAddr,
    request: Vec<u8>,
    readers: usize,
    may_leave: Arc<AtomicBool>,
}

impl Sink {
    /// Opens `readers` connections with the same request.
    pub fn new(address: SocketAddr, request: Vec<u8>, readers: usize, may_leave: Arc<AtomicBool>) -> Self {
        Self { address, request, readers, may_leave }
    }
}

impl Role for Sink {
    fn open(&mut self, event_loop: &mut EventLoop) -> Result<(), String> {
        for _ in 0..self.readers {
            let line = event_loop.open(self.address)?;
            event_loop.listen(line, &self.request)?;
        }
        Ok(())
    }

    fn begin(&mut self, _: &mut EventLoop, _: Instant) -> Result<(), String> {
        Ok(())
    }

    fn answered(&mut self, _: &mut EventLoop, _: ConnectionId, _: &Answer<'_>) -> Result<(), String> {
        Ok(())
    }

    fn turn(&mut self, _: &mut EventLoop, now: Instant) -> Result<Option<Instant>, String> {
        Ok(Some(now + LOOK))
    }

    fn is_done(&self) -> bool {
        self.may_leave.load(Ordering::Relaxed)
    }
}
