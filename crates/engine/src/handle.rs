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
use longshore_queue::{Command, Queue, Reply};
use tokio::sync::oneshot;

use crate::actor::ask::{Answer, Ask, unavailable};
use crate::shared::Shared;
use crate::{AskError, EndpointMetrics};

/// A way to one endpoint's actor. Cheap to clone; outlives the endpoint (then everything is [`AskError::Gone`]).
///
/// Every method that changes something returns after the change is durable. Dropping a returned future hangs
/// up: a parked take or wait ends, a submitted job stays.
#[derive(Clone)]
pub struct EndpointHandle {
    pub(crate) shared: Arc<Shared>,
}

impl EndpointHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
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
    fn ask<T: Send>(
        &self,
        make: impl FnOnce(Answer<T>) -> Ask,
    ) -> impl Future<Output = Result<T, AskError>> + Send {
        let (reply, answer) = oneshot::channel();
        let told = self.tell(make(reply));
        async move {
            told?;
            match answer.await {
                Ok(answer) => answer,
                // The actor dropped the question: it ended, or reloads its queue.
                Err(_) if self.is_gone() => Err(AskError::Gone),
                Err(_) => Err(AskError::Unavailable("the queue is being reloaded".to_owned())),
            }
        }
    }

    fn tell(&self, ask: Ask) -> Result<(), AskError> {
        if self.is_gone() {
            return Err(AskError::Gone);
        }
        self.shared.asks.send(ask).map_err(|_| {
            if self.is_gone() {
                AskError::Gone
            } else {
                AskError::Unavailable("the endpoint's queue has stopped: restart the server".to_owned())
            }
        })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Acquire)
    }

    async fn command(&self, command: Command) -> Result<Reply, AskError> {
        self.ask(|reply| Ask::Command { command, reply }).await
    }

    /// Reads something off the machine.
    async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Queue, Millis) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        self.ask(|reply| {
            Ask::Inspect(Box::new(move |queue, now| {
                let seen = look(queue, now);
                Box::new(move |durable| {
                    // The asker may have hung up.
                    let _ = reply.send(match durable {
                        Ok(()) => Ok(seen),
                        Err(error) => Err(unavailable(error)),
                    });
                })
            }))
        })
        .await
    }
}
