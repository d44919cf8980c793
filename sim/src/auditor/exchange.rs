//! Requests in flight.

use bytes::Bytes;

use super::endpoint::Ended;
use super::job::{EndpointNo, JobNo, WorkerNo};
use super::model::Map;
use super::operation::Operation;
use super::sse::SseState;
use super::time_bounds::EventTime;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Exchange {
    pub operation: Operation,
    pub endpoint: Option<EndpointNo>,
    pub job: Option<JobNo>,
    pub worker: Option<WorkerNo>,
    pub sent: EventTime,
    pub arrived: Option<EventTime>,
    /// The server process at which the request arrived.
    pub process: usize,
    pub body: Bytes,
    pub key: Option<Box<str>>,
    /// Hash of the API key.
    pub owner: u64,
    /// The jobs that a ping lists.
    pub listed: Vec<JobNo>,
    /// Number of jobs that had certainly ended when the request arrived.
    pub ended: Ended,
    /// The path, for messages.
    pub path: Box<str>,
    /// Whether a power cut may have undone what the response says.
    pub is_void: bool,
    /// State of a response with server-sent events.
    pub sse: Option<SseState>,
    /// Whether the request may be slow, such as draining an endpoint.
    pub is_slow: bool,
}

/// Requests in flight, by number.
pub(super) type Exchanges = Map<u64, Exchange>;
