//! Forwards the requests of a load-balancing endpoint: its workers, their health, and the requests that wait for one.
//!
//! [`longshore_fleet::Balance`] decides; this module holds it under a lock, gives waiting requests their workers, and
//! checks the workers' health. Nothing here is stored: after a restart, the supervisor registers the adopted workers again.

pub(crate) mod address;
mod checks;
mod early_answer;
mod links;
mod metrics;
mod rate;
mod slot;
mod view;
mod worker;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longshore_fleet::{Admission, Balance, BalanceLimits, Check, Ticket, WorkerHealth, WorkerKey};
use longshore_model::{Endpoint, Millis, WorkerId};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::endpoint_shared::EndpointShared;
use crate::services::Services;
use crate::supervisor::FleetEvent;

use self::address::WorkerAddress;
pub use self::links::{Deadline, Link, LinkStream, Links, RequestBody};
pub use self::metrics::{BalancerMetrics, BalancerOutcome};
pub use self::slot::RequestSlot;
pub use self::worker::BalancedServer;

/// The health of a worker that serves HTTP, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthNote {
    /// The health by the last checks.
    pub health: WorkerHealth,
    /// The result of the last check, such as `GET /ping: 200 OK`.
    pub last_check: Arc<str>,
    /// Since when each check had an answer that says neither "healthy" nor "not yet"; `None` if the last one had not.
    pub rejecting_since: Option<Millis>,
}

/// Why a request got no worker. Nothing of it was sent to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// As many requests wait already as the endpoint permits.
    QueueFull,
    /// No worker had room within the endpoint's `queueTimeoutMs`.
    TimedOut,
    /// The endpoint is paused: its `workersMax` is 0.
    Paused,
    /// The server drains, and starts no worker.
    Draining,
    /// The endpoint is deleted.
    Deleted,
    /// The declared body is larger than the endpoint's `bodyBytesMax`, and no worker has room now.
    BodyTooLarge,
}

/// The workers and the waiting requests of one load-balancing endpoint.
pub struct Balancer {
    endpoint: Weak<EndpointShared>,
    services: Arc<Services>,
    state: Mutex<BalancerState>,
    metrics: BalancerMetrics,
}

struct BalancerState {
    balance: Balance<Arc<BalancedServer>>,
    keys: HashMap<WorkerId, WorkerKey>,
    waiters: HashMap<Ticket, oneshot::Sender<RequestSlot>>,
}

impl Balancer {
    /// The balancer of an endpoint without workers.
    pub(crate) fn new(endpoint: Weak<EndpointShared>, services: Arc<Services>, record: &Endpoint) -> Self {
        let balance = Balance::new(BalanceLimits::of(record));
        let state = BalancerState { balance, keys: HashMap::new(), waiters: HashMap::new() };
        Self { endpoint, services, state: Mutex::new(state), metrics: BalancerMetrics::default() }
    }

    /// The measurements of the endpoint's requests since the server started.
    pub fn metrics(&self) -> &BalancerMetrics {
        &self.metrics
    }

    /// Waits for a worker with room, and returns it. `body_bytes` is the declared length of the request's body; `None` if it
    /// has none, or declares none. Dropping the future removes the request from the queue.
    ///
    /// # Errors
    ///
    /// Each variant of [`NotAdmitted`].
    pub async fn admit(self: &Arc<Self>, body_bytes: Option<u64>) -> Result<RequestSlot, NotAdmitted> {
        let record = self.record().ok_or(NotAdmitted::Deleted)?;
        if self.services.drain.since().is_some() {
            return Err(NotAdmitted::Draining);
        }
        let settings = record.balances().ok_or(NotAdmitted::Deleted)?;
        let waiting = {
            let mut state = self.state();
            // Most requests do not wait, and need no clock.
            if let Some((key, worker)) = state.balance.admit() {
                drop(state);
                return Ok(self.slot(key, worker));
            }
            match state.balance.request(self.now()) {
                Admission::Worker(key, worker) => {
                    drop(state);
                    return Ok(self.slot(key, worker));
                }
                Admission::Full => return Err(NotAdmitted::QueueFull),
                Admission::Waits(ticket) => {
                    let (sender, receiver) = oneshot::channel();
                    state.waiters.insert(ticket, sender);
                    WaitingRequest { balancer: Arc::clone(self), ticket, receiver }
                }
            }
        };
        if record.workers_max == 0 {
            return Err(NotAdmitted::Paused);
        }
        if body_bytes.is_some_and(|bytes| bytes > settings.body_bytes_max) {
            return Err(NotAdmitted::BodyTooLarge);
        }
        self.load_changed();
        let began = Instant::now();
        // Boxed, because few requests wait, and a timer would enlarge the futures of all.
        let admitted = Box::pin(waiting.wait(Duration::from_millis(settings.queue_timeout_ms))).await;
        self.metrics.queue_wait_ms.record(began.elapsed().as_millis() as u64);
        admitted
    }

    /// Returns another worker with room, for a request that could not reach the one of this slot; `None` if no other has
    /// room.
    pub fn another(self: &Arc<Self>, tried: &RequestSlot) -> Option<RequestSlot> {
        let (key, worker) = self.state().balance.another(tried.key())?;
        Some(RequestSlot::new(Arc::clone(self), key, worker))
    }

    /// Whether the worker of this slot may still get requests: it is healthy, and not drained.
    pub fn is_serving(&self, slot: &RequestSlot) -> bool {
        self.state().balance.is_serving(slot.key())
    }

    /// Notes that a request could not reach a worker, which counts as a failed health check.
    pub fn unreachable(self: &Arc<Self>, slot: &RequestSlot, reason: &str) {
        slot.worker().note_check(reason, None);
        self.observe(slot.key(), slot.worker(), Check::Failed);
    }

    /// Adds a worker that runs, and checks its health from now on. Does nothing for a worker that it has.
    pub(crate) fn register(self: &Arc<Self>, id: WorkerId, address: Option<WorkerAddress>) {
        let Some(address) = address else {
            let reason = format!("worker {id} has no address to which requests could be forwarded");
            return self.notify(FleetEvent::Replace { worker: id, reason });
        };
        let worker = Arc::new(BalancedServer::new(id.clone(), address));
        let key = {
            let mut state = self.state();
            if state.keys.contains_key(&id) {
                return;
            }
            let key = state.balance.add(self.now(), Arc::clone(&worker));
            state.keys.insert(id, key);
            key
        };
        self.counts_changed();
        self.services.runtime.spawn(Box::pin(checks::run(Arc::downgrade(self), key, worker)));
    }

    /// Drains a worker: it gets no further request. The next pass of the supervisor after the drain timeout stops it, even if
    /// it still has requests.
    pub(crate) fn drain(self: &Arc<Self>, id: &WorkerId) {
        let (key, limits) = {
            let mut state = self.state();
            let Some(key) = state.keys.get(id).copied() else { return };
            state.balance.drain(self.now(), key);
            (key, state.balance.limits())
        };
        let balancer = Arc::downgrade(self);
        self.services.runtime.spawn(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(limits.drain_timeout_ms.saturating_add(1))).await;
            let Some(balancer) = balancer.upgrade() else { return };
            if balancer.state().balance.health(key).is_some() {
                balancer.load_changed();
            }
        }));
    }

    /// Removes a worker that has exited.
    pub(crate) fn lose(&self, id: &WorkerId) {
        {
            let mut state = self.state();
            if let Some(key) = state.keys.remove(id) {
                state.balance.remove(key);
            }
        }
        self.counts_changed();
        self.load_changed();
    }

    /// Applies changed settings of the endpoint, and admits the waiting requests that they permit.
    pub(crate) fn configure(self: &Arc<Self>, record: &Endpoint) {
        self.state().balance.configure(BalanceLimits::of(record));
        self.release();
    }

    /// Refuses the waiting requests of a deleted endpoint.
    pub(crate) fn refuse_all(&self) {
        let waiters = std::mem::take(&mut self.state().waiters);
        drop(waiters);
    }

    /// The endpoint's record; `None` if the endpoint is deleted.
    pub fn record(&self) -> Option<Arc<Endpoint>> {
        let endpoint = self.endpoint.upgrade()?;
        (!endpoint.is_deleted()).then(|| endpoint.record())
    }

    fn slot(self: &Arc<Self>, key: WorkerKey, worker: Arc<BalancedServer>) -> RequestSlot {
        let slot = RequestSlot::new(Arc::clone(self), key, worker);
        self.load_changed();
        slot
    }

    /// Notes the result of a health check. Returns the worker's health; `None` if the worker is gone.
    fn observe(
        self: &Arc<Self>,
        key: WorkerKey,
        worker: &BalancedServer,
        check: Check,
    ) -> Option<WorkerHealth> {
        let (health, changed) = {
            let mut state = self.state();
            let changed = state.balance.observe(self.now(), key, check);
            (state.balance.health(key)?, changed)
        };
        if let Some(health) = changed {
            let (id, last_check) = (worker.id(), worker.last_check().result);
            let endpoint = self.record().map(|record| tracing::field::display(record.id));
            tracing::info!(endpoint, worker = %id, health = health.as_str(), %last_check, "health of worker changed");
            self.metrics.health_changed(health);
            self.release();
            self.load_changed();
        }
        Some(health)
    }

    /// Ends an outstanding request.
    fn done(self: &Arc<Self>, key: WorkerKey) {
        self.state().balance.done(|| self.now(), key);
        self.release();
        self.load_changed();
    }

    /// Gives waiting requests to workers with room.
    fn release(self: &Arc<Self>) {
        loop {
            let (waiter, key, worker) = {
                let mut state = self.state();
                let Some((ticket, key, worker)) = state.balance.admit_next() else { return };
                (state.waiters.remove(&ticket), key, worker)
            };
            let slot = RequestSlot::new(Arc::clone(self), key, worker);
            match waiter {
                // A client that left meanwhile gives its worker back.
                Some(waiter) => drop(waiter.send(slot)),
                None => drop(slot),
            }
        }
    }

    /// Removes a request that no longer waits for its slot.
    fn leave(&self, ticket: Ticket) {
        let waiter = {
            let mut state = self.state();
            state.balance.leave(ticket);
            state.waiters.remove(&ticket)
        };
        if waiter.is_some() {
            self.load_changed();
        }
    }

    /// Tells the supervisor that the load changed, and updates the published numbers of workers.
    fn load_changed(&self) {
        let Some(endpoint) = self.endpoint.upgrade() else { return };
        endpoint.running_workers.store(self.state().balance.busy(), Ordering::Relaxed);
        endpoint.notify_fleet(FleetEvent::Demand);
    }

    fn counts_changed(&self) {
        let Some(endpoint) = self.endpoint.upgrade() else { return };
        endpoint.known_workers.store(self.state().keys.len() as u32, Ordering::Relaxed);
    }

    fn notify(&self, event: FleetEvent) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.notify_fleet(event);
        }
    }

    fn now(&self) -> Millis {
        self.services.clock.now()
    }

    /// A poisoned state is valid, because every change is one call.
    fn state(&self) -> MutexGuard<'_, BalancerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in the queue, which it leaves when this is dropped.
struct WaitingRequest {
    balancer: Arc<Balancer>,
    ticket: Ticket,
    receiver: oneshot::Receiver<RequestSlot>,
}

impl WaitingRequest {
    async fn wait(mut self, longest: Duration) -> Result<RequestSlot, NotAdmitted> {
        match timeout(longest, &mut self.receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(NotAdmitted::Deleted),
            Err(_) => Err(NotAdmitted::TimedOut),
        }
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.balancer.leave(self.ticket);
    }
}
