//! Somebody who waits for a job: when they leave, nobody wants it any more.

use longshore_engine::EndpointHandle;
use longshore_model::JobId;

use crate::gate::peer;

/// A caller. Dropped, as it is when its connection breaks, it cancels the job.
pub(super) struct CancelGuard {
    pub(super) endpoint: EndpointHandle,
    pub(super) job: JobId,
    waits: bool,
}

impl CancelGuard {
    pub(super) fn new(endpoint: EndpointHandle, job: JobId) -> Self {
        // Hanging up is how they cancel.
        peer::hands_over();
        Self { endpoint, job, waits: true }
    }

    /// It has all that it waited for: now it may leave.
    pub(super) fn is_served(&mut self) {
        self.waits = false;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if self.waits {
            self.endpoint.cancel_detached(self.job);
        }
    }
}
