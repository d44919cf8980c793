//! Jobs that failed since they were last taken, with their errors, for the groups of the history.
//!
//! Actors add the jobs of a round when its commit is durable. A server whose jobs do not fail pays nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_history::{Failure, FailureKind, History};
use longshore_model::{EndpointId, JobId, JobKey, JobState, Millis, WorkerId};
use longshore_queue::NOT_CONFIRMED;

use crate::Engine;

/// The largest part of an error that is copied, in bytes. It has the type and the message of the SDK's errors.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The memory for errors that were not taken, in bytes. With more, failures are only counted.
const BYTES_MAX: usize = 8 << 20;
/// What a job takes in memory beside its error, in bytes.
const JOB_BYTES: usize = 128;

/// The starts of errors about something that is too large.
const OF_SIZE: [&str; 3] = ["the output has ", "the worker's report ", "the job's stream has "];

/// Who wrote the error of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorSource {
    /// A worker reported it, or the server in its place.
    Report,
    /// The queue wrote it, for a job that no worker reported.
    Queue,
}

/// The errors that the present verb stores, in the order of its changes, until the signals say which jobs ended.
#[derive(Debug, Default)]
pub(crate) struct VerbErrors {
    errors: VecDeque<(JobKey, ErrorSource, String)>,
}

/// A job that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedJob {
    pub(crate) job: JobId,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) at: Millis,
    pub(crate) kind: FailureKind,
    /// `None` for a job whose error is not stored.
    pub(crate) error: Option<String>,
}

/// The failed jobs of all endpoints that were not taken. One per engine.
#[derive(Debug, Default)]
pub(crate) struct FailureInbox {
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    failures: Vec<Failure>,
    bytes: usize,
    /// Failures that were only counted, by endpoint and kind.
    counted: BTreeMap<(EndpointId, &'static str), Failure>,
}

impl VerbErrors {
    /// Notes an error that the verb stores.
    pub(crate) fn note(&mut self, job: JobKey, source: ErrorSource, error: &str) {
        let error = &error[..error.floor_char_boundary(ERROR_BYTES_MAX)];
        self.errors.push_back((job, source, error.to_owned()));
    }

    /// The error of a job that has ended. Jobs end in the order in which their errors are stored.
    pub(crate) fn take(&mut self, job: JobKey) -> Option<(ErrorSource, String)> {
        while let Some((key, source, error)) = self.errors.pop_front() {
            if key == job {
                return Some((source, error));
            }
        }
        None
    }

    /// Forgets the errors of jobs that did not end.
    pub(crate) fn clear(&mut self) {
        self.errors.clear();
    }
}

/// What made a job fail.
pub(crate) fn kind_of(state: JobState, error: Option<&(ErrorSource, String)>) -> FailureKind {
    match error {
        _ if state == JobState::TimedOut => FailureKind::TimedOut,
        Some((_, error)) if is_of_size(error) => FailureKind::Size,
        Some((ErrorSource::Queue, error)) if is_of_damage(error) => FailureKind::Damaged,
        Some((ErrorSource::Queue, error)) if error.ends_with("the handler reported an error") => {
            FailureKind::Handler
        }
        Some((ErrorSource::Queue, _)) => FailureKind::WorkerLost,
        Some((ErrorSource::Report, _)) | None => FailureKind::Handler,
    }
}

/// Whether the worker of a job with this error was lost while it ran the job. A job whose delivery was not confirmed did not run.
pub(crate) fn is_of_loss(kind: FailureKind, error: &str) -> bool {
    kind == FailureKind::WorkerLost && !error.contains(NOT_CONFIRMED)
}

/// Later lines are of the worker's log.
fn is_of_damage(error: &str) -> bool {
    let text = error.lines().next().unwrap_or_default();
    text.contains("blobs/") || text.contains("damaged")
}

fn is_of_size(error: &str) -> bool {
    OF_SIZE.iter().any(|start| error.starts_with(start)) && error.contains("the limit")
}

impl FailureInbox {
    /// Adds the failed jobs of a durable round.
    pub(crate) fn add(&self, endpoint: EndpointId, version: u32, keeps_text: bool, jobs: Vec<FailedJob>) {
        let mut pending = self.lock();
        for FailedJob { job, worker, at, kind, error } in jobs {
            let bytes = JOB_BYTES + error.as_ref().map_or(0, String::len);
            let failure = Failure { endpoint, job, worker, at, version, kind, error, keeps_text, count: 1 };
            if pending.bytes + bytes <= BYTES_MAX {
                pending.bytes += bytes;
                pending.failures.push(failure);
                continue;
            }
            let counted = pending.counted.entry((endpoint, kind.as_str()));
            let counted = counted.or_insert_with(|| Failure { error: None, count: 0, ..failure });
            counted.count = counted.count.saturating_add(1);
        }
    }

    /// Returns the failures since the last call.
    fn take(&self) -> Vec<Failure> {
        let Pending { mut failures, counted, .. } = std::mem::take(&mut *self.lock());
        failures.extend(counted.into_values());
        failures
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Adds the jobs that failed since the last call to the failures of the history.
    pub fn note_failures(&self, history: &History) {
        let failures = self.services().failures.take();
        // Read afterwards, so that every endpoint with a failure is listed.
        let present = self.endpoints();
        let present = present.iter().map(|endpoint| (endpoint.id(), endpoint.record().keep_failure_texts));
        history.failures().add(failures, &present.collect());
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::EndpointNo;

    use super::*;

    fn failed(error: &str) -> FailedJob {
        let job = JobId::mint(Millis(1), 0, false);
        FailedJob {
            job,
            worker: None,
            at: Millis(1),
            kind: FailureKind::Handler,
            error: Some(error.to_owned()),
        }
    }

    #[test]
    fn failures_beyond_the_memory_are_counted() {
        let inbox = FailureInbox::default();
        let error = "x".repeat(ERROR_BYTES_MAX);
        for _ in 0..200 {
            inbox.add(EndpointId::mint(1), 1, true, vec![failed(&error)]);
        }
        let taken = inbox.take();
        assert_eq!(taken.iter().map(|failure| failure.count).sum::<u32>(), 200);
        assert_eq!(taken.iter().filter(|failure| failure.error.is_none()).count(), 1);
        assert!(taken.len() < 130 && inbox.take().is_empty());
    }

    #[test]
    fn errors_belong_to_the_jobs_that_ended() {
        let key = |seq| JobKey { endpoint: EndpointNo(1), seq };
        let mut errors = VerbErrors::default();
        for seq in 1..=3 {
            errors.note(key(seq), ErrorSource::Queue, &format!("error {seq}"));
        }
        assert_eq!(errors.take(key(2)), Some((ErrorSource::Queue, "error 2".to_owned())));
        assert_eq!(errors.take(key(3)).map(|(_, error)| error), Some("error 3".to_owned()));
        assert_eq!(errors.take(key(3)), None);
    }

    #[test]
    fn the_kind_follows_from_the_state_and_the_error() {
        let kind = |source, error: &str| kind_of(JobState::Failed, Some(&(source, error.to_owned())));
        assert_eq!(kind_of(JobState::TimedOut, None), FailureKind::TimedOut);
        for (source, error, expected) in [
            (ErrorSource::Report, "the output was bad", FailureKind::Handler),
            (ErrorSource::Queue, "the output has 9 bytes, the limit is 5: upload it", FailureKind::Size),
            (ErrorSource::Report, "the worker's report is over the limit of 5 bytes: x", FailureKind::Size),
            (ErrorSource::Report, "the job's stream has 9 bytes, the limit is 5: x", FailureKind::Size),
            (
                ErrorSource::Queue,
                "failed after 3 runs, no retries left: lease of worker w expired",
                FailureKind::WorkerLost,
            ),
            (
                ErrorSource::Queue,
                "failed after 3 runs, no retries left: the handler reported an error",
                FailureKind::Handler,
            ),
            (ErrorSource::Queue, "the file `blobs/1/x` is missing", FailureKind::Damaged),
            (
                ErrorSource::Queue,
                "failed after 3 runs, no retries left: exited with code 1; its last log lines:\nmodels/x/blobs/1",
                FailureKind::WorkerLost,
            ),
        ] {
            assert_eq!(kind(source, error), expected, "{error}");
            assert_eq!(is_of_loss(expected, error), expected == FailureKind::WorkerLost, "{error}");
        }
    }

    #[test]
    fn a_job_that_no_worker_confirmed_lost_no_worker() {
        let error = format!(
            "failed after 6 deliveries, no retries left: {NOT_CONFIRMED}; perhaps workers cannot read it"
        );
        let kind = kind_of(JobState::Failed, Some(&(ErrorSource::Queue, error.clone())));
        assert!(!is_of_loss(kind, &error));
    }
}
