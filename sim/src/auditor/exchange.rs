//! Requests under way.

use bytes::Bytes;

use super::endpoint::Ended;
use super::job::{EndpointNo, JobNo, WorkerNo};
use super::model::Map;
use super::operation::Operation;
use super::sse::Following;
use super::time_bounds::EventTime;

/// A request under way.
#[derive(Debug)]
pub(super) struct Exchange {
    pub operation: Operation,
    pub endpoint: Option<EndpointNo>,
    pub job: Option<JobNo>,
    pub worker: Option<WorkerNo>,
    pub sent: EventTime,
    pub arrived: Option<EventTime>,
    /// The server process at which it arrived.
    pub process: usize,
    pub body: Bytes,
    pub key: Option<Box<str>>,
    /// Stands for the API key.
    pub owner: u64,
    /// The jobs that a ping lists.
    pub listed: Vec<JobNo>,
    /// How many jobs had certainly ended when it arrived.
    pub ended: Ended,
    /// For error texts.
    pub path: Box<str>,
    /// Whether a power cut may have undone what it was told.
    pub is_void: bool,
    /// What came of an answer of events.
    pub following: Option<Following>,
    /// Whether its query asks for an endpoint to be drained, or similar slow ways.
    pub is_slow: bool,
}

/// Requests under way, by number.
pub(super) type Exchanges = Map<u64, Exchange>;
