//! Submitting a job, with or without a wait for its end.

use std::time::Duration;

use bytes::Bytes;
use longshore_queue::Submit;
use longshore_store::Payload;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Jobs;
use crate::actor::request::{EndWaiter, Request};
use crate::endpoint_shared::blob_folder;
use crate::{Accepted, EndpointError, JobSnapshot, Submission};

impl Jobs {
    /// Submits a job and returns its id and state. If a stored job has the submission's id or idempotency key, that job
    /// is returned and nothing is stored.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::QueueFull`](crate::Refusal::QueueFull) if the queue has its limit of
    /// jobs, and with [`Refusal::IdempotencyKeyReused`](crate::Refusal::IdempotencyKeyReused) if the stored job of the
    /// idempotency key was submitted with another body. [`EndpointError::NoSpace`] if the disk is full.
    pub fn submit(
        &self,
        submission: Submission,
    ) -> impl Future<Output = Result<Accepted, EndpointError>> + Send {
        self.submit_inner(submission, None)
    }

    /// Submits a job and waits until it is terminal, at most for `wait`. Returns the job in its state at that time.
    ///
    /// # Errors
    ///
    /// Those of [`Jobs::submit`] and [`Jobs::wait`]. After an error of [`Jobs::wait`] the job is stored.
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
            Ok(Ok(row)) => self.ended_snapshot(row).await,
            // Boxed: few of the many waits come here, and each future would reserve 1.5 KB.
            Ok(Err(_)) => Box::pin(self.wait_until(id, until)).await,
            Err(_) => Box::pin(self.status(id)).await,
        }
    }

    async fn submit_inner(
        &self,
        submission: Submission,
        watch: Option<EndWaiter>,
    ) -> Result<Accepted, EndpointError> {
        if self.shared.services.space.is_set() {
            return Err(EndpointError::NoSpace);
        }
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
            trace: submission.trace.filter(|_| self.shared.services.traces.is_some()),
        };
        if !self.shared.is_large(&submission.members) {
            let input = Payload::Inline(submission.members);
            return self.shared.request(|reply| Request::Submit { submit, input, watch, reply }).await;
        }
        // Boxed: few submits are large, and every future would reserve the size.
        Box::pin(self.submit_large(submit, submission.members, watch)).await
    }

    /// Stores the members as a file before the request. The file is deleted if no job with this id can name it. After a
    /// failed commit it stays until the next start, because a power cut can bring the row back.
    async fn submit_large(
        &self,
        submit: Submit,
        members: Bytes,
        watch: Option<EndWaiter>,
    ) -> Result<Accepted, EndpointError> {
        let id = submit.id;
        let name = format!("{}/{id}.input", blob_folder(&self.shared.record()));
        let reference = self.shared.put_blob(name, members).await?;
        let (file, input) = (reference.name.to_string(), Payload::Blob(reference));
        let accepted = self.shared.request(|reply| Request::Submit { submit, input, watch, reply }).await;
        let may_have_row = match &accepted {
            Ok(accepted) => accepted.id == id,
            Err(error) => matches!(error, EndpointError::CommitFailed(_)),
        };
        if !may_have_row {
            self.shared.delete_blobs(vec![file]);
        }
        accepted
    }
}
