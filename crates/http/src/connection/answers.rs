//! What answers the requests of a listener.

use std::convert::Infallible;

use axum::extract::Request;
use axum::response::Response;

use crate::Edge;
use crate::services::open_connections::OpenConnection;

/// Answers requests. Cheap to clone.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    /// Returns the response to one request. It is called, and its future polled, in the task of the request's connection.
    fn answer(&self, request: Request) -> impl Future<Output = Result<Response, Infallible>> + Send;

    /// Counts a connection until the returned value is dropped.
    fn count_connection(&self) -> Option<OpenConnection>;
}

impl Answers for Edge {
    fn answer(&self, request: Request) -> impl Future<Output = Result<Response, Infallible>> + Send {
        Self::answer(self, request)
    }

    fn count_connection(&self) -> Option<OpenConnection> {
        Self::count_connection(self)
    }
}
