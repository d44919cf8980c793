//! Why jobs failed, in groups: failures of the same kind, type and place whose messages differ in numbers and ids alone are
//! one group.
//!
//! ```text
//!   failed jobs ──2 s──► groups, in memory ──1 min──► failures/{endpoint}.json
//! ```
//!
//! A killed server loses the failures of the last minute.

mod cut;
mod error_text;
mod folder;
mod groups;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{EndpointId, JobId, Millis, WorkerId};
use serde::{Deserialize, Serialize};

use self::folder::FailureFolder;
use self::groups::{Groups, Identity};

/// The memory for the groups of all endpoints, in bytes. Above it, the groups that failed longest ago are dropped.
const BYTES_MAX: usize = 32 << 20;

/// What made a job fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The handler reported an error.
    Handler,
    /// Workers were lost, or did not confirm the job, and no retry was left.
    WorkerLost,
    /// The job ran longer than its execution timeout.
    TimedOut,
    /// An output, a report or a stream was larger than its limit.
    Size,
    /// What the server stored of the job was damaged.
    Damaged,
}

impl FailureKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 5] = [Self::Handler, Self::WorkerLost, Self::TimedOut, Self::Size, Self::Damaged];

    /// The name of the kind in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::WorkerLost => "workerLost",
            Self::TimedOut => "timedOut",
            Self::Size => "size",
            Self::Damaged => "damaged",
        }
    }
}

/// Jobs of one endpoint that failed with the same error.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The endpoint of the jobs.
    pub endpoint: EndpointId,
    /// The last of the jobs.
    pub job: JobId,
    /// The worker that ran the last job, whose id is cut out of the error.
    pub worker: Option<WorkerId>,
    /// When the last job failed.
    pub at: Millis,
    /// The version of the endpoint at that time.
    pub version: u32,
    /// What made the jobs fail.
    pub kind: FailureKind,
    /// The error of the job; `None` if there were too many errors to read all.
    pub error: Option<String>,
    /// Whether the message of the error is stored. If not, its type and place are.
    pub keeps_text: bool,
    /// The number of the jobs.
    pub count: u32,
}

/// One group of failures, in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// The same for the same group of an endpoint, also after a restart: 16 hexadecimal digits.
    pub group: String,
    /// What made the jobs fail.
    pub kind: FailureKind,
    /// The type of the error, such as `ValueError`; `None` if the error names none.
    pub error_type: Option<String>,
    /// The first line of the message, with `#` for numbers and ids; `None` if it is not stored.
    pub message: Option<String>,
    /// The last place of the traceback, such as `handler.py:12`; `None` without a traceback.
    pub place: Option<String>,
    /// The number of jobs that failed in the span.
    pub count: u64,
    /// When the first job of the group failed, in ms since 1970; before the span too.
    pub first_at: u64,
    /// When the last job of the group failed, in ms since 1970.
    pub last_at: u64,
    /// The version of the endpoint when the first job of the group failed.
    pub since_version: u32,
    /// The version of the endpoint at the time of the read.
    pub present_version: u32,
    /// The number of jobs that failed in the span in the present version; `None` if an earlier version of the server counted
    /// some of them without their version.
    pub present_version_count: Option<u64>,
    /// The last job of the group.
    pub job: JobId,
    /// The number of jobs that failed in each hour of the span, the oldest first.
    pub per_hour: Vec<u64>,
}

/// The failures of all endpoints.
#[derive(Debug, Default)]
pub struct Failures {
    state: Mutex<State>,
    /// `None`: nothing is stored.
    folder: Option<FailureFolder>,
}

#[derive(Debug, Default)]
struct State {
    endpoints: BTreeMap<EndpointId, Groups>,
    /// Endpoints whose groups changed since they were written.
    unwritten: BTreeSet<EndpointId>,
}

impl Failures {
    /// The failures in a folder, which is made if it is missing. Blocks. Files that cannot be read are set aside.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or listed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = FailureFolder::open(path)?;
        let endpoints = folder.load()?;
        let mut state = State { endpoints, ..State::default() };
        state.keep_budget();
        Ok(Self { state: Mutex::new(state), folder: Some(folder) })
    }

    /// Adds failures. Endpoints that are not in `present` are forgotten; of those with `false`, messages are.
    pub fn add(&self, failures: Vec<Failure>, present: &BTreeMap<EndpointId, bool>) {
        let mut state = self.lock();
        for failure in failures {
            let (endpoint, identity) = (failure.endpoint, Identity::of(&failure));
            state.endpoints.entry(endpoint).or_default().add(identity, &failure);
            state.unwritten.insert(endpoint);
        }
        let gone: Vec<_> = state.endpoints.keys().filter(|id| !present.contains_key(id)).copied().collect();
        for endpoint in gone {
            state.endpoints.remove(&endpoint);
            state.unwritten.insert(endpoint);
        }
        let State { endpoints, unwritten } = &mut *state;
        for (endpoint, groups) in endpoints.iter_mut() {
            if present.get(endpoint) == Some(&false) && groups.forget_messages() {
                unwritten.insert(*endpoint);
            }
        }
        state.keep_budget();
    }

    /// The groups of an endpoint in which a job failed from `since` to `now`, the largest first. `version` is the present one
    /// of the endpoint.
    pub fn read(&self, endpoint: &EndpointId, since: Millis, now: Millis, version: u32) -> Vec<FailureGroup> {
        let state = self.lock();
        state.endpoints.get(endpoint).map(|groups| groups.read(since, now, version)).unwrap_or_default()
    }

    /// Writes what changed. Blocks; one caller at a time.
    ///
    /// # Errors
    ///
    /// Some files could not be written; the next call tries them again.
    pub(crate) fn write(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut drafts = Vec::new();
        {
            let mut state = self.lock();
            for endpoint in std::mem::take(&mut state.unwritten) {
                let groups = state.endpoints.get(&endpoint);
                drafts.push((endpoint, groups.map(Groups::encode).transpose()?));
            }
        }
        let mut result = Ok(());
        for (endpoint, encoded) in drafts {
            if let Err(error) = folder.put(&endpoint, encoded.as_deref()) {
                self.lock().unwritten.insert(endpoint);
                result = Err(error);
            }
        }
        result
    }

    /// The memory of all groups, and the most of it, in bytes.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.lock().bytes(), BYTES_MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn bytes(&self) -> usize {
        self.endpoints.values().map(Groups::bytes).sum()
    }

    /// Drops the groups that failed longest ago while all have more than [`BYTES_MAX`].
    fn keep_budget(&mut self) {
        let mut bytes = self.bytes();
        while bytes > BYTES_MAX {
            let oldest = self.endpoints.iter().filter_map(|(id, groups)| Some((groups.oldest()?, *id))).min();
            let Some((_, endpoint)) = oldest else { return };
            let Some(groups) = self.endpoints.get_mut(&endpoint) else { return };
            let before = groups.bytes();
            groups.drop_oldest();
            bytes -= before - groups.bytes();
            self.unwritten.insert(endpoint);
        }
    }
}

#[cfg(test)]
mod tests;
