//! What is known of a worker.

use super::job::{EndpointNo, JobNo};
use super::time_bounds::{EventTime, Span};

/// What is known of a worker.
#[derive(Debug)]
pub(super) struct WorkerModel {
    pub name: Box<str>,
    pub endpoint: Option<EndpointNo>,
    /// Whether the server's machine started it.
    pub is_managed: bool,
    /// When its process began.
    pub started: Option<EventTime>,
    /// When its process ended, and whether the server's machine ended it.
    pub ended: Option<(EventTime, bool)>,
    /// When the last of its requests arrived that was answered well: that one was heard for certain. Before there
    /// is one, the first that arrived: of whom the server never heard it expects nothing.
    pub heard: Option<EventTime>,
    /// When its last request arrived. It may have been turned away, or have broken off before anybody read it.
    pub spoke: Option<EventTime>,
    /// Whether it ever said that it is unfit.
    pub unfit: bool,
    /// Whether it may have run a job that was over: it is replaced if it does not let go.
    pub may_cling: bool,
    /// When it was heard of again after too long a silence.
    pub silent: Option<EventTime>,
    /// When it last asked for jobs with nothing in progress.
    pub denied: Option<EventTime>,
    /// Its last two pings: when each arrived, and when it was answered, if it was.
    pub pings: [Option<Span>; 2],
    /// The jobs that it was given and that it may still have.
    pub held: Vec<JobNo>,
    /// The jobs whose handlers run in it, and since when.
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
            heard: None,
            spoke: None,
            unfit: false,
            may_cling: false,
            silent: None,
            denied: None,
            pings: [None; 2],
            held: Vec::new(),
            running: Vec::new(),
        }
    }
}
