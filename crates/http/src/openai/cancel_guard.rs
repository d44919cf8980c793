//! Cancels the job of a request whose client disconnects.

use longshore_engine::{Engine, Jobs};
use longshore_model::JobId;

use crate::gate::peer;

/// Cancels the job when dropped, unless it was disarmed. The response owns the guard, so the guard is dropped when the
/// connection closes.
pub(super) struct CancelGuard {
    pub(super) jobs: Jobs,
    pub(super) job: JobId,
    armed: bool,
    /// The engine, if another node can go on with the response: then a server that stops cancels nothing.
    passed_on_by: Option<Engine>,
}

impl CancelGuard {
    pub(super) fn new(engine: &Engine, jobs: Jobs, job: JobId) -> Self {
        // These clients cancel by disconnecting, so the server has to notice that.
        peer::hands_over();
        let passed_on_by = peer::frames().map(|_| engine.clone());
        Self { jobs, job, armed: true, passed_on_by }
    }

    /// Keeps the job from being cancelled: it has ended, or the client has the whole response.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let goes_on = self.passed_on_by.as_ref().is_some_and(Engine::is_stopping);
        if self.armed && !goes_on {
            self.jobs.cancel_detached(self.job);
        }
    }
}
