//! Answers with the routes of this node, while its lease lasts.

use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use longshore_planted::{Bug, planted};

use super::Cluster;
use crate::Edge;
use crate::wire::api_error::ApiError;

/// How long a request waits while the lease of the owner is over and no other node has taken over: the database is away.
const LEASE_WAIT_MAX: Duration = Duration::from_secs(5);

impl Cluster {
    /// Answers with the routes of this node. A response leaves only while the lease lasts: after it, another node may have
    /// changed what the response says.
    ///
    /// # Errors
    ///
    /// The request, if the lease is over: it changed nothing.
    pub(super) async fn within_lease(
        &self,
        routes: &Edge,
        request: Request,
    ) -> Result<Response, Box<Request>> {
        if !self.may_serve_soon().await {
            return Err(Box::new(request));
        }
        let Ok(response) = routes.answer(request).await;
        if self.may_serve_soon().await {
            return Ok(response);
        }
        let text = "this node has lost its lease while it answered; it is not known whether the request took effect: read the \
            state, then repeat it";
        Ok(ApiError::unavailable("not_known", text).into_response())
    }

    /// Whether the node may serve now or within 5 s.
    async fn may_serve_soon(&self) -> bool {
        let membership = self.membership();
        planted(Bug::LeaseNotChecked)
            || membership.may_serve()
            || tokio::time::timeout(LEASE_WAIT_MAX, membership.until_it_may_serve()).await.is_ok()
    }
}
