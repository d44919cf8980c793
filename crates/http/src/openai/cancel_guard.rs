//! Cancels the job of a request whose client disconnects.

use longshore_engine::Jobs;
use longshore_model::JobId;

use crate::gate::peer;

/// Cancels the job when dropped, unless it was disarmed. The response owns the guard, so the guard is dropped when the
/// connection closes.
pub(super) struct CancelGuard {
    pub(super) jobs: Jobs,
    pub(super) job: JobId,
    armed: bool,
}

impl CancelGuard {
    pub(super) fn new(jobs: Jobs, job: JobId) -> Self {
        // These clients cancel by disconnecting, so the server has to notice that.
        peer::hands_over();
        Self { jobs, job, armed: true }
    }

    /// Keeps the job from being cancelled: it has ended, or the client has the whole response.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if self.armed {
            self.jobs.cancel_detached(self.job);
        }
    }
}
