//! What is known of a worker.

use super::job::{EndpointNo, JobNo};
use super::time_bounds::{EventTime, Span};

/// What is known of a worker.
#[derive(Debug)]
pub(super) struct WorkerModel {
    pub name: Box<str>,
    pub endpoint: Option<EndpointNo>,
    /// Whether the server's computer started the worker.
    pub is_managed: bool,
    /// When the worker's process started.
    pub started: Option<EventTime>,
    /// When the worker's process ended, and whether the server ended it.
    pub ended: Option<(EventTime, bool)>,
    /// Arrival of the worker's last request with a successful response, which the server certainly processed.
    /// Before there is one, the first arrival: the server expects nothing of a worker without a request.
    pub last_success: Option<EventTime>,
    /// Arrival of the worker's last request, which may have been refused or lost.
    pub last_request: Option<EventTime>,
    /// Whether the worker ever reported that it is unfit.
    pub unfit: bool,
    /// Whether the worker may be running a terminal job. It is replaced if it does not stop.
    pub may_be_stuck: bool,
    /// Arrival of the first request after the worker's lease had expired.
    pub silent: Option<EventTime>,
    /// When the worker last sent a take with no job in progress.
    pub denied: Option<EventTime>,
    /// The worker's last two pings: arrival, and response if there is one.
    pub pings: [Option<Span>; 2],
    /// The jobs that were delivered to the worker and that it may still have.
    pub held: Vec<JobNo>,
    /// The jobs whose handlers run in the worker, and their starts.
    pub running: Vec<(JobNo, EventTime)>,
}

impl WorkerModel {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            endpoint: None,
            is_managed: false,
            started: None,
            ended: None,
            last_success: None,
            last_request: None,
            unfit: false,
            may_be_stuck: false,
            silent: None,
            denied: None,
            pings: [None; 2],
            held: Vec::new(),
            running: Vec::new(),
        }
    }
}
