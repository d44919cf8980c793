//! What clients ask.

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobRow};
use longshore_queue::{Refusal, Submit};
use longshore_store::Payload;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::EndpointHandle;
use crate::actor::query::{Query, QueueHealth, View};
use crate::actor::request::{EndWaiter, Request};
use crate::endpoint_shared::blob_folder;
use crate::{Accepted, EndpointError, Health, JobFilter, JobPage, JobSnapshot, Submission};

/// A wait that was dropped (by a reload) is taken up again after this.
const REATTACH: Duration = Duration::from_millis(100);

impl EndpointHandle {
    /// Hands in a job. The answer is about an earlier job if the id or the idempotency key came before.
    pub fn submit(
        &self,
        submission: Submission,
    ) -> impl Future<Output = Result<Accepted, EndpointError>> + Send {
        self.submit_inner(submission, None)
    }

    /// Hands in a job and waits until it is terminal or `wait` passed; answers the job as it is then.
    pub async fn submit_and_wait(
        &self,
        submission: Submission,
        wait: Duration,
    ) -> Result<JobSnapshot, EndpointError> {
        let until = Instant::now() + wait;
        let (watch, ended) = oneshot::channel();
        let Accepted { id, state } = self.submit_inner(submission, Some(watch)).await?;
        if state.is_terminal() {
            return Box::pin(self.status(id)).await;
        }
        match tokio::time::timeout_at(until, ended).await {
            Ok(Ok(row)) => self.awaited(row).await,
            // Boxed, as the waits are many that come to neither: 1.5 KB for each.
            Ok(Err(_)) => Box::pin(self.wait_until(id, until)).await,
            Err(_) => Box::pin(self.status(id)).await,
        }
    }

    async fn submit_inner(
        &self,
        submission: Submission,
        watch: Option<EndWaiter>,
    ) -> Result<Accepted, EndpointError> {
        let id = submission.id;
        let submit = Submit {
            id,
            input_bytes: submission.members.len() as u32,
            low_priority: submission.low_priority,
            webhook: submission.webhook || self.shared.has_webhook(),
            execution_timeout_ms: submission.execution_timeout_ms,
            ttl_ms: submission.ttl_ms,
            idempotency: submission.idempotency,
            submitter: submission.submitter,
        };
        if !self.shared.is_large(&submission.members) {
            let input = Payload::Inline(submission.members);
            return self.request(|reply| Request::Submit { submit, input, watch, reply }).await;
        }
        // Boxed: every submit would carry around what few of them need.
        Box::pin(self.submit_large(submit, submission.members, watch)).await
    }

    async fn submit_large(
        &self,
        submit: Submit,
        members: Bytes,
        watch: Option<EndWaiter>,
    ) -> Result<Accepted, EndpointError> {
        let id = submit.id;
        let name = format!("{}/{id}.input", blob_folder(&self.record()));
        let reference = self.shared.put_blob(name, members).await?;
        let (file, input) = (reference.name.to_string(), Payload::Blob(reference));
        let accepted = self.request(|reply| Request::Submit { submit, input, watch, reply }).await;
        if !accepted.as_ref().is_ok_and(|accepted| accepted.id == id) {
            self.shared.delete_blobs(vec![file]);
        }
        accepted
    }

    /// The job as it is.
    pub async fn status(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.snapshot(self.visible(job).await?).await
    }

    async fn visible(&self, job: JobId) -> Result<JobRow, EndpointError> {
        self.row(job, View::Visible).await
    }

    /// The job's row in this view.
    pub(super) async fn row(&self, job: JobId, view: View) -> Result<JobRow, EndpointError> {
        let row = self.query(|reply| Query::Job { job, view, reply }).await?;
        row.map(|row| *row).ok_or(EndpointError::Refused(Refusal::NoSuchJob))
    }

    /// A waiting job's place in the line: 1 is next. None for a job that does not wait.
    pub async fn position(&self, job: JobId) -> Result<Option<u64>, EndpointError> {
        self.query(|reply| Query::Position { job, reply }).await
    }

    /// The job as it is, also when its time is over and only its webhook keeps it.
    pub(crate) async fn stored(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.snapshot(self.row(job, View::Stored).await?).await
    }

    /// The job when it is terminal, or as it is when `wait` passed.
    pub async fn wait(&self, job: JobId, wait: Duration) -> Result<JobSnapshot, EndpointError> {
        self.wait_until(job, Instant::now() + wait).await
    }

    /// A wait belongs to the connection, not to the job: when it is dropped it is simply taken up again.
    async fn wait_until(&self, job: JobId, until: Instant) -> Result<JobSnapshot, EndpointError> {
        loop {
            let (watch, ended) = oneshot::channel();
            match self.request(|reply| Request::Wait { job, watch, reply }).await {
                Ok(row) if row.state.is_terminal() => return self.awaited(*row).await,
                Ok(_) => match tokio::time::timeout_at(until, ended).await {
                    Ok(Ok(row)) => return self.awaited(row).await,
                    Ok(Err(_)) if self.is_stopping() => return Box::pin(self.status(job)).await,
                    Ok(Err(_)) => {}
                    Err(_) => return Box::pin(self.status(job)).await,
                },
                Err(EndpointError::Unavailable(_) | EndpointError::Overloaded)
                    if Instant::now() + REATTACH < until =>
                {
                    tokio::time::sleep(REATTACH).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sets the time of the job's deletion to `ttl_ms` from now; answers the job as it is.
    pub async fn set_ttl(&self, job: JobId, ttl_ms: u64) -> Result<JobSnapshot, EndpointError> {
        let row = self.request(|reply| Request::SetTtl { job, ttl_ms, reply }).await?;
        self.snapshot(*row).await
    }

    /// Ends a job; answers its row as it is then, which is not cancelled if it was terminal before.
    pub async fn cancel(&self, job: JobId) -> Result<JobRow, EndpointError> {
        self.request(|reply| Request::Cancel { job, reply }).await.map(|row| *row)
    }

    /// Ends a job that nobody waits for any more. Nor does anybody wait for this.
    pub fn cancel_detached(&self, job: JobId) {
        let (reply, _) = oneshot::channel();
        let _ = self.tell(Request::Cancel { job, reply });
    }

    /// Queues a failed or timed-out job again; answers its row as it is then.
    pub async fn retry(&self, job: JobId) -> Result<JobRow, EndpointError> {
        self.request(|reply| Request::Retry { job, reply }).await.map(|row| *row)
    }

    /// Cancels every queued job; answers how many.
    pub async fn purge(&self) -> Result<u64, EndpointError> {
        self.request(|reply| Request::Purge { reply }).await
    }

    /// The endpoint's numbers.
    pub async fn health(&self) -> Result<Health, EndpointError> {
        let QueueHealth { counters, load, workers } = *self.query(|reply| Query::Health { reply }).await?;
        Ok(Health {
            counters,
            in_queue: load.queued,
            in_progress: load.running,
            workers: super::fleet::count(&workers, &self.fleet_status()),
        })
    }

    /// Jobs, newest first.
    pub async fn list(&self, filter: JobFilter) -> Result<JobPage, EndpointError> {
        let page = self.query(|reply| Query::Jobs { filter, reply }).await?;
        let mut jobs = Vec::with_capacity(page.jobs.len());
        for row in page.jobs {
            match self.small_snapshot(row).await {
                // Deleted in this moment.
                Err(EndpointError::Refused(Refusal::NoSuchJob)) => {}
                snapshot => jobs.push(snapshot?),
            }
        }
        Ok(JobPage { jobs, cursor: page.cursor })
    }

    /// A job's submitted members (as in [`Submission::members`]).
    pub async fn members(&self, job: JobId) -> Result<Bytes, EndpointError> {
        let row = self.row(job, View::Stored).await?;
        let room = self.hold(row.input_bytes as usize).await?;
        let input =
            self.input(&row, &room).await.inspect_err(|error| self.note_unread(job, "input", error))?;
        Ok(room.around(input))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_deleted() || self.shared.stopping.load(std::sync::atomic::Ordering::Acquire)
    }
}
