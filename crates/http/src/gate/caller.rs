//! Who sends a request: an API key, and the session of the console if a browser sends it.

use std::ops::Deref;
use std::sync::Arc;

use http::HeaderMap;
use longshore_engine::{EndpointHandle, OpenSession, TrackedKey};
use longshore_history::LimitedOperation;

use crate::HttpState;
use crate::audit::note_session;
use crate::gate::client;
use crate::gate::rate_limits::{LimitExceeded, RequestPermit, count_refused};
use crate::sessions::lookup::session_of;

/// The key of a request, and its session if it has one. The key decides what is permitted.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) key: Arc<TrackedKey>,
    pub(crate) session: Option<Arc<OpenSession>>,
}

impl Deref for Caller {
    type Target = TrackedKey;

    fn deref(&self) -> &TrackedKey {
        &self.key
    }
}

impl Caller {
    /// The caller whose session a request has. The key is looked up again, and must have the text with which the session was
    /// opened. Whether the key is active is not checked.
    pub(crate) fn of_session(state: &HttpState, headers: &HeaderMap) -> Option<Self> {
        let session = current_session(state, headers)?;
        let key = key_of(state, &session)?;
        session.touch(state.engine().now());
        note_session(&session.id);
        Some(Self { key, session: Some(session) })
    }

    /// Counts a request to an operation. Sessions have a limit of their own, which the edge counts.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if the rate or the concurrency is over its limit.
    pub(crate) fn admit(
        &self,
        state: &HttpState,
        endpoint: &EndpointHandle,
        operation: LimitedOperation,
    ) -> Result<RequestPermit, LimitExceeded> {
        if self.session.is_some() {
            return Ok(RequestPermit::uncounted());
        }
        let admitted =
            state.limiter().admit(self.owner, endpoint.no(), operation, endpoint.running_workers());
        if admitted.is_err() {
            count_refused(operation, endpoint);
        }
        admitted
    }

    /// As [`admit`](Self::admit), for a request that asks several endpoints: it counts as one of each.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if a rate or a concurrency is over its limit.
    pub(crate) fn admit_all(
        &self,
        state: &HttpState,
        endpoints: &[EndpointHandle],
        operation: LimitedOperation,
    ) -> Result<Vec<RequestPermit>, LimitExceeded> {
        endpoints.iter().map(|endpoint| self.admit(state, endpoint, operation)).collect()
    }
}

/// The session of a request, if there is a console.
pub(crate) fn current_session(state: &HttpState, headers: &HeaderMap) -> Option<Arc<OpenSession>> {
    let console = state.console();
    if !console.is_on {
        return None;
    }
    session_of(state.engine(), &console.session_limits, headers, &client::cookie_rule(state, headers))
}

/// The key of a session; `None` if it was revoked or has another text by now.
pub(crate) fn key_of(state: &HttpState, session: &OpenSession) -> Option<Arc<TrackedKey>> {
    state.engine().keys().get(&session.key).filter(|key| key.hash == session.key_hash)
}
