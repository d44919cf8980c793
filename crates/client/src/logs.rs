//! What workers print.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::{RequestBuilder, ResponseStream};
use crate::{Client, ClientError};

/// A line longer than this comes in pieces.
const LINE_BYTES_MAX: usize = 1_000_000;

/// The lines of a worker's log, as they come.
pub struct LogLines {
    pieces: ResponseStream,
    /// What came after the last whole line.
    rest: Vec<u8>,
}

impl Client {
    /// The workers of an endpoint, and with `ended` those whose logs are still there: JSON text.
    pub async fn workers(&self, endpoint: &str, ended: bool) -> Result<Vec<Box<RawValue>>, ClientError> {
        let path = format!("/v1/endpoints/{}/workers?ended={ended}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path)).await
    }

    /// A worker's log: its last `tail` lines, or all of it, and with `follow` what comes then, until the worker
    /// ends.
    pub async fn worker_log(
        &self,
        endpoint: &str,
        worker: &str,
        tail: Option<u32>,
        follow: bool,
    ) -> Result<LogLines, ClientError> {
        let mut path =
            format!("/v1/endpoints/{}/workers/{}/logs?follow={follow}", segment(endpoint), segment(worker));
        if let Some(tail) = tail {
            let _ = write!(path, "&tail={tail}");
        }
        Ok(LogLines { pieces: self.transport.pieces(RequestBuilder::get(&path)).await?, rest: Vec::new() })
    }
}

impl LogLines {
    /// The next line, without its end; none when the log has ended. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.rest.len() > LINE_BYTES_MAX {
                return Ok(Some(self.take_rest()));
            }
            match self.pieces.next().await? {
                Some(piece) => self.rest.extend_from_slice(&piece),
                None if self.rest.is_empty() => return Ok(None),
                None => return Ok(Some(self.take_rest())),
            }
        }
    }

    fn take_rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}
