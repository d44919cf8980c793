//! The verbs of a queue as values, with their arguments, and their results as values. Scripts and random histories consist
//! of commands, and the rules of `rows.rs` depend on them.

use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use longshore_model::{Attempt, JobEnd, JobId, JobKey, JobRow, Millis, WorkerId};

use crate::{Effects, Queue, QueueSettings, Refusal, Report, Submit, Submitted, Take};

/// A verb of the queue with its arguments. One variant per verb.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Submit(Submit),
    Take(Take),
    Report { worker: WorkerId, job: JobId, report: Report },
    Progress { worker: WorkerId, job: JobId },
    Append { worker: WorkerId, job: JobId },
    Undelivered { job: JobId, attempt: Attempt, damage: Option<String> },
    Ping { worker: WorkerId, holds: Option<Vec<JobId>> },
    TouchWorker(WorkerId),
    Cancel(JobId),
    Retry(JobId),
    Purge,
    SetTtl { job: JobId, ttl_ms: u64 },
    RegisterWorker(WorkerId),
    DrainWorker(WorkerId),
    LoseWorker { worker: WorkerId, counts_retry: bool, reason: String },
    RenewLeases,
    SettleWebhook { job: JobId, end: JobEnd },
    RedeliverWebhook { job: JobId, end: JobEnd },
    Tick,
    Configure(QueueSettings),
    DeleteSlice,
}

/// The result of a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Done,
    Accepted,
    Known(Box<JobRow>),
    Taken(Vec<JobRow>),
    /// A report that counted.
    Recorded,
    /// A report that did not count.
    Ignored,
    MayAppend(JobKey, Attempt),
    Job(Box<JobRow>),
    Purged(u64),
    /// The number of jobs left after a slice of a deletion.
    Left(u64),
    Refused(Refusal),
}

impl Command {
    /// Calls the verb and returns its result.
    pub(super) fn apply(self, queue: &mut Queue, now: Millis, out: &mut Effects) -> Reply {
        match self {
            Self::Submit(submit) => return submitted(queue.submit(now, submit, out)),
            Self::Take(take) => return Reply::Taken(queue.take(now, &take, out)),
            Self::Report { worker, job, report } => {
                return recorded(queue.report(now, &worker, job, report, out).is_some());
            }
            Self::Progress { worker, job } => {
                return recorded(queue.progress(now, &worker, job, out).is_some());
            }
            Self::Append { worker, job } => {
                let permit = queue.append(now, &worker, job, out);
                return permit.map_or(Reply::Ignored, |(key, attempt)| Reply::MayAppend(key, attempt));
            }
            Self::Undelivered { job, attempt, damage } => {
                return recorded(queue.undelivered(now, job, attempt, damage, out));
            }
            Self::Cancel(job) => return job_or_refusal(queue.cancel(now, job, out)),
            Self::Retry(job) => return job_or_refusal(queue.retry(now, job, out)),
            Self::SetTtl { job, ttl_ms } => return job_or_refusal(queue.set_ttl(now, job, ttl_ms, out)),
            Self::RedeliverWebhook { job, end } => {
                return job_or_refusal(queue.redeliver_webhook(now, job, end, out));
            }
            Self::Purge => return Reply::Purged(queue.purge(now, out)),
            Self::DeleteSlice => return Reply::Left(queue.delete_slice(now, out)),
            Self::Ping { worker, holds } => queue.ping(now, &worker, holds.as_deref(), out),
            Self::TouchWorker(worker) => queue.touch_worker(now, &worker),
            Self::RegisterWorker(worker) => queue.register_worker(now, &worker, out),
            Self::DrainWorker(worker) => queue.drain_worker(&worker, out),
            Self::LoseWorker { worker, counts_retry, reason } => {
                queue.lose_worker(now, &worker, counts_retry, &reason, out);
            }
            Self::RenewLeases => queue.renew_leases(now),
            Self::SettleWebhook { job, end } => queue.settle_webhook(job, end, out),
            Self::Tick => queue.tick(now, out),
            Self::Configure(settings) => queue.configure(settings, out),
        }
        Reply::Done
    }
}

fn submitted(result: Result<Submitted, Refusal>) -> Reply {
    match result {
        Ok(Submitted::New(_)) => Reply::Accepted,
        Ok(Submitted::Existing(row)) => Reply::Known(row),
        Err(refusal) => Reply::Refused(refusal),
    }
}

fn recorded(counted: bool) -> Reply {
    if counted { Reply::Recorded } else { Reply::Ignored }
}

fn job_or_refusal(result: Result<JobRow, Refusal>) -> Reply {
    result.map_or_else(Reply::Refused, |row| Reply::Job(Box::new(row)))
}
