//! Waiting for the end of a job.

use std::time::Duration;

use longshore_model::JobId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Jobs;
use crate::actor::request::Request;
use crate::{EndpointError, JobSnapshot};

/// The pause before a wait is registered again that a reload of the queue dropped or the request budget rejected.
const REATTACH: Duration = Duration::from_millis(100);

impl Jobs {
    /// Waits until the job is terminal, at most for `wait`. Returns the job in its state at that time, and earlier if
    /// the server stops.
    ///
    /// # Errors
    ///
    /// Those of [`Jobs::status`], where a terminal job's output waits up to 1 min for memory. While the queue reloads,
    /// the wait goes on, and while the request budget has no memory too.
    pub async fn wait(&self, job: JobId, wait: Duration) -> Result<JobSnapshot, EndpointError> {
        self.wait_until(job, Instant::now() + wait).await
    }

    /// A wait belongs to the connection, not to the job. After a reload of the queue it is registered again.
    pub(super) async fn wait_until(&self, job: JobId, until: Instant) -> Result<JobSnapshot, EndpointError> {
        loop {
            let (watch, ended) = oneshot::channel();
            match self.shared.request(|reply| Request::Wait { job, watch, reply }).await {
                Ok(row) if row.state.is_terminal() => return self.ended_snapshot(*row).await,
                Ok(_) => match tokio::time::timeout_at(until, ended).await {
                    Ok(Ok(row)) => return self.ended_snapshot(row).await,
                    Ok(Err(_)) if self.shared.is_stopping() => return Box::pin(self.status(job)).await,
                    Ok(Err(_)) => {}
                    Err(_) => return Box::pin(self.status(job)).await,
                },
                Err(error)
                    if (error.is_of_writing() || matches!(error, EndpointError::Overloaded))
                        && Instant::now() + REATTACH < until =>
                {
                    tokio::time::sleep(REATTACH).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
