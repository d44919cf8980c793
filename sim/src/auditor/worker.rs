//! What is known of a worker.

use super::job::{EndpointNo, JobNo};
use super::when::When;

/// What is known of a worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub name: Box<str>,
    pub endpoint: Option<EndpointNo>,
    /// Whether the server's machine started it.
    pub is_managed: bool,
    /// When its process ended, and whether the server's machine ended it.
    pub ended: Option<(When, bool)>,
    /// When the server heard of it last.
    pub heard: Option<When>,
    /// When it was heard of again after too long a silence.
    pub silent: Option<When>,
    /// When it last asked for jobs with nothing in progress.
    pub denied: Option<When>,
    /// Its last two pings.
    pub pings: [Option<When>; 2],
    /// The jobs that it was given and that it may still have.
    pub held: Vec<JobNo>,
    /// The jobs whose handlers run in it, and since when.
    pub running: Vec<(JobNo, When)>,
}

impl Worker {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            endpoint: None,
            is_managed: false,
            ended: None,
            heard: None,
            silent: None,
            denied: None,
            pings: [None; 2],
            held: Vec::new(),
            running: Vec::new(),
        }
    }
}
