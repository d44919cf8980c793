//! The operations of clients on the jobs of one endpoint.
//!
//! ```text
//!   submit ──► wait ──► the terminal job        cancel, retry, purge, set_ttl: change jobs
//!     └──────► follow, read_stream ──► chunks   status, position, list, members, health: read jobs
//! ```
//!
//! Arguments and results are owned data, and a [`Follower`](crate::Follower) yields owned events. So an endpoint of
//! another node can have the same interface.

pub(crate) mod follow;
pub(crate) mod search;
mod snapshot;
mod stream;
mod submit;
mod wait;
mod webhook_source;
pub(crate) mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{Attempt, EndedAttempt, JobId, JobRow};
use longshore_queue::{Page, Refusal};
use tokio::sync::oneshot;

use self::snapshot::LISTED_BYTES_MAX;
use crate::actor::query::{Query, QueueHealth, View};
use crate::actor::request::{Request, unread};
use crate::endpoint_shared::EndpointShared;
use crate::webhooks::receiver_of;
use crate::workers::fleet::count_workers;
use crate::{BudgetPermit, EndpointError, Health, JobFilter, JobPage, JobSnapshot};

/// How long a read waits for memory for its payload.
const ROOM_WAIT: Duration = Duration::from_secs(2);
/// The largest members that are read for the receiver of a webhook, in bytes.
const RECEIVER_BYTES_MAX: u32 = 1 << 20;

/// The jobs of one endpoint, as clients use them. A clone refers to the same jobs.
///
/// A method that changes something returns after the change is durable. If its future is dropped, a change that the
/// endpoint has received still happens, and a wait ends.
///
/// Every method that returns an [`EndpointError`] may return these; the methods document the other errors:
///
/// - [`EndpointError::Deleted`] if the endpoint is deleted.
/// - [`EndpointError::CommitFailed`] if the commit that covers the reply failed.
/// - [`EndpointError::Unavailable`] if the queue reloads.
/// - [`EndpointError::Overloaded`] if the request budget has no memory for the request.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) shared: Arc<EndpointShared>,
}

impl Jobs {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        Self { shared }
    }

    /// Returns the job in its present state, with its output and error.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown or expired id.
    /// - [`EndpointError::NoRoom`] if there was no memory for the output within 2 s.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the output or error cannot be read.
    pub async fn status(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.snapshot(self.row(job, View::Visible).await?).await
    }

    /// Returns the job as [`Jobs::status`] does, without an output of more than 4 KiB. An outcome that cannot be read is replaced
    /// by an error text that says so.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown or expired id.
    pub async fn summary(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.small_snapshot(self.row(job, View::Visible).await?, usize::MAX).await
    }

    /// Returns the job's row in this view.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] if the view has no such job.
    pub(crate) async fn row(&self, job: JobId, view: View) -> Result<JobRow, EndpointError> {
        let row = self.shared.query(|reply| Query::Job { job, view, reply }).await?;
        row.map(|row| *row).ok_or(EndpointError::Refused(Refusal::NoSuchJob))
    }

    /// Returns the position of a queued job, where 1 is the next job; `None` for a job that is not queued, and for an
    /// unknown id.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn position(&self, job: JobId) -> Result<Option<u64>, EndpointError> {
        self.shared.query(|reply| Query::Position { job, reply }).await
    }

    /// Sets the job's deletion to `ttl_ms` from now, and returns the job as [`Jobs::status`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Jobs::status`]. The time of the deletion is set even if the output cannot be read.
    pub async fn set_ttl(&self, job: JobId, ttl_ms: u64) -> Result<JobSnapshot, EndpointError> {
        let row =
            self.shared.request(|reply| Request::SetTtl { job, ttl_ms, only_ended: false, reply }).await?;
        self.snapshot(*row).await
    }

    /// Cancels the job and returns its row. A terminal job is returned unchanged.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown or expired id.
    pub async fn cancel(&self, job: JobId) -> Result<JobRow, EndpointError> {
        self.shared.request(|reply| Request::Cancel { job, reply }).await.map(|row| *row)
    }

    /// Sends the cancellation of a job and waits for no reply. The cancellation is lost if its commit fails or the
    /// queue reloads.
    pub fn cancel_detached(&self, job: JobId) {
        let (reply, _) = oneshot::channel();
        let _ = self.shared.send(Request::Cancel { job, reply });
    }

    /// Queues a failed or timed-out job again, behind all others, and returns its row.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown or expired id, and with
    /// [`Refusal::NotRetryable`] for a job in any other state.
    pub async fn retry(&self, job: JobId) -> Result<JobRow, EndpointError> {
        self.shared.request(|reply| Request::Retry { job, reply }).await.map(|row| *row)
    }

    /// Cancels every queued job and returns their number.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn purge(&self) -> Result<u64, EndpointError> {
        self.shared.request(|reply| Request::Purge { reply }).await
    }

    /// Returns the endpoint's counters, and the numbers of its jobs and workers.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn health(&self) -> Result<Health, EndpointError> {
        let QueueHealth { counters, load, states, workers } =
            *self.shared.query(|reply| Query::Health { reply }).await?;
        let status = self.shared.fleet_status();
        if let Some(balancer) = &self.shared.balancer {
            let view = balancer.fleet_view();
            let workers: Vec<_> = view.workers.iter().map(|worker| (worker.phase, worker.running)).collect();
            return Ok(Health {
                counters,
                in_queue: view.queued,
                in_progress: view.running,
                states,
                workers: count_workers(&workers, &status),
            });
        }
        let workers: Vec<_> = workers.iter().map(|worker| (worker.phase, worker.running)).collect();
        Ok(Health {
            counters,
            in_queue: load.queued,
            in_progress: load.running,
            states,
            workers: count_workers(&workers, &status),
        })
    }

    /// Returns one page of the jobs that match the filter, newest first. An outcome that cannot be read is replaced by
    /// an error text that says so.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn list(&self, filter: JobFilter) -> Result<JobPage, EndpointError> {
        let page = self.rows(filter).await?;
        let mut jobs = Vec::with_capacity(page.jobs.len());
        for row in page.jobs {
            match self.small_snapshot(row, LISTED_BYTES_MAX).await {
                // Deleted since the page was read.
                Err(EndpointError::Refused(Refusal::NoSuchJob)) => {}
                snapshot => jobs.push(snapshot?),
            }
        }
        Ok(JobPage { jobs, cursor: page.cursor, searched: page.examined, unread: 0, of: page.of })
    }

    /// Returns one page of the rows of jobs that match the filter, newest first.
    pub(crate) async fn rows(&self, filter: JobFilter) -> Result<Page, EndpointError> {
        let filter = Box::new(filter);
        self.shared.query(|reply| Query::Jobs { filter, reply }).await.map(|page| *page)
    }

    /// Returns the stored attempts of a job, ascending by number: those that ended without the job's result. The last
    /// [`ATTEMPTS_MAX`](longshore_model::limits::ATTEMPTS_MAX) are stored. The present one follows from `row`.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if they cannot be read.
    pub async fn ended_attempts(&self, row: &JobRow) -> Result<Vec<EndedAttempt>, EndpointError> {
        if row.attempt == Attempt(0) {
            return Ok(Vec::new());
        }
        self.shared.services.store.attempts(row.key).await.map_err(|error| unread(&error))
    }

    /// Returns scheme, host and port of the address that the webhook calls of the job go to. `None` without a webhook, and for a job
    /// of more than 1 MiB, whose members are not read for that.
    pub async fn webhook_receiver(&self, row: &JobRow) -> Option<String> {
        // A webhook that the endpoint got after the submit is not called for the job.
        if !row.webhook || row.input_bytes > RECEIVER_BYTES_MAX {
            return None;
        }
        let of_endpoint = self.shared.record().webhook.clone();
        receiver_of(&self.members(row.id).await.ok()?, of_endpoint.as_deref())
    }

    /// Returns the members that the job was submitted with, as in [`Submission::members`](crate::Submission::members).
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an id that is not stored.
    /// - [`EndpointError::NoRoom`] if there was no memory for the members within 2 s.
    /// - [`EndpointError::Unreadable`], [`EndpointError::Damaged`] if the members cannot be read.
    pub async fn members(&self, job: JobId) -> Result<Bytes, EndpointError> {
        let row = self.row(job, View::Stored).await?;
        let room = self.hold(row.input_bytes as usize).await?;
        let input = self.shared.input(&row, &room).await;
        Ok(room.around(input.inspect_err(|error| self.shared.note_unread(job, "input", error))?))
    }

    /// Reserves memory of this process for `bytes` in flight to a client. The permit is empty up to 64 KiB, which are
    /// not counted.
    ///
    /// # Errors
    ///
    /// [`EndpointError::NoRoom`] if there was no memory within 2 s.
    pub async fn hold(&self, bytes: usize) -> Result<BudgetPermit, EndpointError> {
        self.shared.services.answers.hold(bytes, ROOM_WAIT).await
    }
}
