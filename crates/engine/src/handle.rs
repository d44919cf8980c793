//! A way to one endpoint's actor.

mod clients;
mod fleet;
pub(crate) mod follow;
mod payloads;
mod streams;
pub(crate) mod take;
pub(crate) mod webhooks;
mod workers;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longshore_model::{Endpoint, EndpointId, EndpointNo, Millis};
use tokio::sync::oneshot;

use crate::actor::mailbox::NotSent;
use crate::actor::query::Query;
use crate::actor::request::{ReplySender, Request};
use crate::endpoint_shared::EndpointShared;
use crate::{EndpointError, EndpointMetrics};

/// A way to one endpoint's actor. Cheap to clone; outlives the endpoint (then everything is [`EndpointError::Deleted`]).
///
/// Every method that changes something returns after the change is durable. Dropping a returned future hangs
/// up: a parked take or wait ends, a submitted job stays.
#[derive(Clone)]
pub struct EndpointHandle {
    pub(crate) shared: Arc<EndpointShared>,
}

impl EndpointHandle {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        Self { shared }
    }

    /// The endpoint's record as it is now.
    pub fn record(&self) -> Arc<Endpoint> {
        self.shared.record()
    }

    /// The endpoint's id.
    pub fn id(&self) -> EndpointId {
        self.shared.id
    }

    /// The endpoint's number.
    pub fn no(&self) -> EndpointNo {
        self.shared.no
    }

    /// How many of its workers hold a job at this moment; for the dynamic rate limits.
    pub fn running_workers(&self) -> u32 {
        self.shared.running_workers.load(Ordering::Relaxed)
    }

    /// What was measured of the endpoint's jobs since the server started.
    pub fn metrics(&self) -> &EndpointMetrics {
        &self.shared.metrics
    }

    /// The engine's clock.
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    /// Puts a question into the actor's mailbox, at once, so that the future holds nothing of it, and waits for the
    /// answer.
    fn request<T: Send>(
        &self,
        make: impl FnOnce(ReplySender<T>) -> Request,
    ) -> impl Future<Output = Result<T, EndpointError>> + Send {
        let (reply, answer) = oneshot::channel();
        let told = self.tell(make(reply));
        async move {
            told?;
            match answer.await {
                Ok(answer) => answer,
                // The actor dropped the question: it ended, or reloads its queue.
                Err(_) if self.is_deleted() => Err(EndpointError::Deleted),
                Err(_) => Err(EndpointError::Unavailable("the queue is being reloaded".to_owned())),
            }
        }
    }

    fn tell(&self, request: Request) -> Result<(), EndpointError> {
        if self.is_deleted() {
            return Err(EndpointError::Deleted);
        }
        self.shared.requests.send(request).map_err(|not_sent| match not_sent {
            NotSent::Overloaded => EndpointError::Overloaded,
            NotSent::Closed if self.is_deleted() => EndpointError::Deleted,
            NotSent::Closed => {
                EndpointError::Unavailable("the endpoint's queue has stopped: restart the server".to_owned())
            }
        })
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.shared.deleted.load(Ordering::Acquire)
    }

    /// Reads something off the queue.
    fn query<T: Send>(
        &self,
        make: impl FnOnce(ReplySender<T>) -> Query,
    ) -> impl Future<Output = Result<T, EndpointError>> + Send {
        self.request(|reply| Request::Query(make(reply)))
    }
}
