//! The logs of workers.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::{RequestBuilder, ResponseStream};
use crate::{Client, ClientError};

/// Longer lines are returned in parts.
const LINE_BYTES_MAX: usize = 1_000_000;

/// The lines of a worker's log, in order.
pub struct LogLines {
    pieces: ResponseStream,
    /// Bytes after the last whole line.
    rest: Vec<u8>,
}

impl Client {
    /// Returns the workers of an endpoint, each as JSON text; with `ended` also those that have ended and have a log.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn workers(&self, endpoint: &str, ended: bool) -> Result<Vec<Box<RawValue>>, ClientError> {
        let path = format!("/v1/endpoints/{}/workers?ended={ended}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path)).await
    }

    /// Drains a managed worker: it gets no further job and ends after its running ones. Returns the worker, as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn drain_worker(&self, endpoint: &str, worker: &str) -> Result<Box<RawValue>, ClientError> {
        self.end_worker(endpoint, worker, "drain").await
    }

    /// Begins to stop a managed worker: its running jobs are queued again, unless they end within the stop grace. Returns
    /// the worker, as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn stop_worker(&self, endpoint: &str, worker: &str) -> Result<Box<RawValue>, ClientError> {
        self.end_worker(endpoint, worker, "stop").await
    }

    async fn end_worker(
        &self,
        endpoint: &str,
        worker: &str,
        how: &str,
    ) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v1/endpoints/{}/workers/{}/{how}", segment(endpoint), segment(worker));
        self.transport.json(RequestBuilder::post(&path, Bytes::new())).await
    }

    /// Ends the wait after crashes of an endpoint's workers. Returns the workers, as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn try_workers_now(&self, endpoint: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        let path = format!("/v1/endpoints/{}/try-now", segment(endpoint));
        self.transport.json(RequestBuilder::post(&path, Bytes::new())).await
    }

    /// Reads a worker's log: its last `tail` lines, or all of it. With `follow` further lines come until the worker
    /// ends.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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
    /// Returns the next line, without its line break; `None` at the end of the log. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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
