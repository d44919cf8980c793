//! Requests to the endpoint's actor, and their replies.

use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::EndpointShared;
use crate::EndpointError;
use crate::actor::mailbox::NotSent;
use crate::actor::query::Query;
use crate::actor::request::{ReplySender, Request};

impl EndpointShared {
    /// Sends a request to the actor and waits for its reply. The request is in the mailbox when this function returns,
    /// so that the future does not hold the request's arguments.
    ///
    /// # Errors
    ///
    /// - The error that the actor replies.
    /// - [`EndpointError::Deleted`] if the endpoint is deleted before the reply.
    /// - [`EndpointError::Unavailable`] if the actor has stopped, or reloads its queue before the reply.
    /// - [`EndpointError::Overloaded`] if the request budget has no memory for the request.
    pub(crate) fn request<T: Send>(
        &self,
        make: impl FnOnce(ReplySender<T>) -> Request,
    ) -> impl Future<Output = Result<T, EndpointError>> + Send {
        let (reply, replied) = oneshot::channel();
        let sent = self.send(make(reply));
        async move {
            sent?;
            match replied.await {
                Ok(result) => result,
                // The actor dropped the request: it ended, or reloads its queue.
                Err(_) if self.is_deleted() => Err(EndpointError::Deleted),
                Err(_) => Err(reloading()),
            }
        }
    }

    /// Sends a request to the actor and waits for no reply.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Deleted`] if the endpoint is deleted.
    /// - [`EndpointError::Unavailable`] if the actor has stopped.
    /// - [`EndpointError::Overloaded`] if the request budget has no memory for the request.
    pub(crate) fn send(&self, request: Request) -> Result<(), EndpointError> {
        if self.is_deleted() {
            return Err(EndpointError::Deleted);
        }
        self.requests.send(request).map_err(|not_sent| match not_sent {
            NotSent::Overloaded => EndpointError::Overloaded,
            NotSent::Closed if self.is_deleted() => EndpointError::Deleted,
            NotSent::Closed => {
                EndpointError::Unavailable("the endpoint's queue has stopped: restart the server".to_owned())
            }
        })
    }

    /// Reads the queue. The reply comes after the commit of everything that it shows.
    ///
    /// # Errors
    ///
    /// As [`EndpointShared::request`].
    pub(crate) fn query<T: Send>(
        &self,
        make: impl FnOnce(ReplySender<T>) -> Query,
    ) -> impl Future<Output = Result<T, EndpointError>> + Send {
        self.request(|reply| Request::Query(make(reply)))
    }

    /// Whether the endpoint is deleted. Its rows may still exist.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Whether waits must end, because the endpoint is deleted or the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_deleted() || self.stopping.load(Ordering::Acquire)
    }
}

/// The error of a request that a reload of the queue dropped.
pub(crate) fn reloading() -> EndpointError {
    EndpointError::Unavailable("the queue is being reloaded".to_owned())
}
