//! Answers with the routes of this node, while its lease lasts.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use longshore_planted::{Bug, planted};

use super::Cluster;
use crate::Edge;
use crate::wire::api_error::ApiError;

/// How long a request waits while the lease of the owner is over and no other node has taken over: the database is away.
const LEASE_WAIT_MAX: Duration = Duration::from_secs(5);

/// The lease of this node was over, so that its answer did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseLoss {
    /// The request changed nothing.
    Before,
    /// It is not known whether the request took effect.
    During,
}

impl LeaseLoss {
    /// What a client of this node gets.
    pub(super) fn error(self) -> ApiError {
        match self {
            Self::Before => ApiError::unavailable(
                "no_lease",
                "the database does not answer, so that this node may not decide about jobs; the request changed nothing",
            ),
            Self::During => ApiError::unavailable(
                "not_known",
                "this node has lost its lease while it answered; it is not known whether the request took effect: read the \
                 state, then repeat it",
            ),
        }
    }
}

impl Cluster {
    /// Answers with the routes of this node. A response leaves only while the lease lasts: after it, another node may have
    /// changed what the response says.
    ///
    /// # Errors
    ///
    /// When the lease was over.
    pub(super) async fn within_lease(&self, routes: &Edge, request: Request) -> Result<Response, LeaseLoss> {
        if !self.may_serve_soon().await {
            return Err(LeaseLoss::Before);
        }
        let Ok(response) = routes.answer(request).await;
        if self.may_serve_soon().await { Ok(response) } else { Err(LeaseLoss::During) }
    }

    /// Whether the node may serve now or within 5 s.
    async fn may_serve_soon(&self) -> bool {
        let membership = self.membership();
        planted(Bug::LeaseNotChecked)
            || membership.may_serve()
            || tokio::time::timeout(LEASE_WAIT_MAX, membership.until_it_may_serve()).await.is_ok()
    }
}
