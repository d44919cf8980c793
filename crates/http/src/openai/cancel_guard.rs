//! Cancels the job of a request whose client disconnects.

use longshore_engine::EndpointHandle;
use longshore_model::JobId;

use crate::gate::peer;

/// Cancels the job when dropped, unless the client was served. The response owns the guard, so the guard is dropped when
/// the connection closes.
pub(super) struct CancelGuard {
    pub(super) endpoint: EndpointHandle,
    pub(super) job: JobId,
    waits: bool,
}

impl CancelGuard {
    pub(super) fn new(endpoint: EndpointHandle, job: JobId) -> Self {
        // These clients cancel by disconnecting, so the server has to notice that.
        peer::hands_over();
        Self { endpoint, job, waits: true }
    }

    /// Keeps the job from being cancelled: the client has the whole response.
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
