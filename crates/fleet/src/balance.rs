//! Which worker of a load-balancing endpoint gets a request, and which requests wait for one.
//!
//! ```text
//!   request ──► Admission::Worker            the healthy worker with the fewest requests
//!           ──► Admission::Waits ──► admit_next   in order of arrival, once a worker has room
//!           ──► Admission::Full
//!   done, observe, drain, add, remove change the room: call `admit_next` until it returns none
//! ```
//!
//! A request waits only while no worker has room for it. [`Balance`] keeps that as long as the caller calls
//! [`Balance::admit_next`] after each change.

pub(crate) mod health;
pub(crate) mod resend;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;

use alloc::vec::Vec;

use longshore_model::{Endpoint, Millis, WorkerPhase};
use longshore_planted::{Bug, planted};

use crate::FleetLoad;

use self::health::{Check, HealthState, WorkerHealth};
use self::waiting::{Ticket, WaitingRequests};

/// Identifies a worker of a [`Balance`]. No number is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerKey(u64);

/// The limits of an endpoint's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceLimits {
    /// The largest number of concurrent requests of one worker; 0: no limit.
    pub max_concurrency: u32,
    /// The largest number of requests that wait.
    pub queue_max: usize,
    /// How long requests of a drained worker may go on, in ms.
    pub drain_timeout_ms: u64,
}

impl BalanceLimits {
    /// The limits of this endpoint. One without load balancing has the defaults, which nothing uses.
    pub fn of(endpoint: &Endpoint) -> Self {
        let lb = endpoint.balances().cloned().unwrap_or_default();
        Self {
            max_concurrency: lb.max_concurrency,
            queue_max: lb.queue_max as usize,
            drain_timeout_ms: lb.drain_timeout_ms,
        }
    }
}

/// The decision about a new request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<W> {
    /// The worker gets the request, which counts as outstanding until [`Balance::done`].
    Worker(WorkerKey, W),
    /// The request waits until [`Balance::admit_next`] returns its ticket, or [`Balance::leave`] removes it.
    Waits(Ticket),
    /// The largest number of requests waits already.
    Full,
}

/// A worker as the planner and people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancedWorker {
    /// The phase for the planner: healthy workers are up, all others that are not drained are initializing.
    pub phase: WorkerPhase,
    /// The health by its checks.
    pub health: WorkerHealth,
    /// The number of outstanding requests; 0 for a drained worker whose drain timeout is over.
    pub outstanding: u32,
    /// How long the worker has had no outstanding request, in ms; 0 while it has one.
    pub idle_ms: u64,
    /// The number of requests that have ended.
    pub ended: u64,
    /// When a health check or a request last showed that the worker answers; the time of its addition before.
    pub last_contact: Millis,
}

#[derive(Clone, Debug)]
struct Entry<W> {
    key: WorkerKey,
    worker: W,
    health: HealthState,
    outstanding: u32,
    idle_since: Millis,
    ended: u64,
    last_contact: Millis,
    /// When the worker was drained; `None` while it gets requests.
    drained_at: Option<Millis>,
}

impl<W> Entry<W> {
    fn is_serving(&self) -> bool {
        let is_drained = self.drained_at.is_some() && !planted(Bug::DrainedServerChosen);
        let is_healthy = match self.health.health() {
            WorkerHealth::Healthy => true,
            WorkerHealth::Unhealthy => planted(Bug::SickServerChosen),
            WorkerHealth::Starting | WorkerHealth::Initializing => false,
        };
        !is_drained && is_healthy
    }

    fn has_room(&self, limits: &BalanceLimits) -> bool {
        self.is_serving() && (limits.max_concurrency == 0 || self.outstanding < limits.max_concurrency)
    }

    fn seen(&self, now: Millis, limits: &BalanceLimits) -> BalancedWorker {
        let is_over = self.drained_at.is_some_and(|at| now.since(at) >= limits.drain_timeout_ms);
        let phase = match (self.drained_at, self.health.health(), self.outstanding) {
            (Some(_), ..) => WorkerPhase::Draining,
            (None, WorkerHealth::Healthy, 0) => WorkerPhase::Idle,
            (None, WorkerHealth::Healthy, _) => WorkerPhase::Running,
            (None, ..) => WorkerPhase::Initializing,
        };
        BalancedWorker {
            phase,
            health: self.health.health(),
            outstanding: if is_over { 0 } else { self.outstanding },
            idle_ms: if self.outstanding > 0 { 0 } else { now.since(self.idle_since) },
            ended: self.ended,
            last_contact: self.last_contact,
        }
    }
}

/// The workers and the waiting requests of one endpoint. `W` is the caller's handle of a worker.
#[derive(Clone, Debug)]
pub struct Balance<W> {
    limits: BalanceLimits,
    workers: Vec<Entry<W>>,
    waiting: WaitingRequests,
    /// The place in `workers` at which the next choice begins, so that equally busy workers take turns.
    turn: usize,
    last_key: u64,
    /// The number of workers with outstanding requests.
    busy: u32,
    /// The number of outstanding requests of all workers.
    outstanding: u64,
}

impl<W: Clone> Balance<W> {
    /// A balance without workers.
    pub fn new(limits: BalanceLimits) -> Self {
        let waiting = WaitingRequests::default();
        Self { limits, workers: Vec::new(), waiting, turn: 0, last_key: 0, busy: 0, outstanding: 0 }
    }

    /// Replaces the limits. Requests that wait already stay.
    pub fn configure(&mut self, limits: BalanceLimits) {
        self.limits = limits;
    }

    /// The limits that were set last.
    pub fn limits(&self) -> BalanceLimits {
        self.limits
    }

    /// Adds a worker, which gets no request before a check has found it healthy.
    pub fn add(&mut self, now: Millis, worker: W) -> WorkerKey {
        self.last_key += 1;
        let key = WorkerKey(self.last_key);
        self.workers.push(Entry {
            key,
            worker,
            health: HealthState::default(),
            outstanding: 0,
            idle_since: now,
            ended: 0,
            last_contact: now,
            drained_at: None,
        });
        key
    }

    /// Removes a worker that has exited. Its outstanding requests are forgotten.
    pub fn remove(&mut self, key: WorkerKey) -> Option<W> {
        let place = self.place(key)?;
        let entry = self.workers.remove(place);
        self.busy -= u32::from(entry.outstanding > 0);
        self.outstanding -= u64::from(entry.outstanding);
        Some(entry.worker)
    }

    /// Drains a worker: it gets no further request. The first drain counts.
    pub fn drain(&mut self, now: Millis, key: WorkerKey) {
        if let Some(place) = self.place(key) {
            self.workers[place].drained_at.get_or_insert(now);
        }
    }

    /// Notes the result of a health check, or of a request that could not reach the worker. Returns the health if it
    /// changed.
    pub fn observe(&mut self, now: Millis, key: WorkerKey, check: Check) -> Option<WorkerHealth> {
        let place = self.place(key)?;
        let entry = &mut self.workers[place];
        if check != Check::Failed {
            entry.last_contact = now;
        }
        let changed = entry.health.observe(check);
        if changed == Some(WorkerHealth::Healthy) && entry.outstanding == 0 {
            entry.idle_since = now;
        }
        changed
    }

    /// The health of a worker; `None` for an unknown one.
    pub fn health(&self, key: WorkerKey) -> Option<WorkerHealth> {
        self.place(key).map(|place| self.workers[place].health.health())
    }

    /// Whether a worker may get requests: it is healthy, and not drained. False for one that is gone.
    pub fn is_serving(&self, key: WorkerKey) -> bool {
        self.place(key).is_some_and(|place| self.workers[place].is_serving())
    }

    /// Returns a worker with room for a new request; `None` if the request has to wait, or to be refused.
    pub fn admit(&mut self) -> Option<(WorkerKey, W)> {
        if self.waiting.is_empty() { self.take() } else { None }
    }

    /// Decides about a new request.
    pub fn request(&mut self, now: Millis) -> Admission<W> {
        if let Some((key, worker)) = self.admit() {
            return Admission::Worker(key, worker);
        }
        if self.waiting.len() >= self.limits.queue_max {
            return Admission::Full;
        }
        Admission::Waits(self.waiting.push(now))
    }

    /// Chooses another worker than `tried` for a request that could not reach that one; `None` if no other has room.
    pub fn another(&mut self, tried: WorkerKey) -> Option<(WorkerKey, W)> {
        let place = self.choose(|entry| entry.key != tried)?;
        Some(self.occupy(place))
    }

    /// Removes the first waiting request if a worker has room for it, and returns its ticket and worker. To be called
    /// after each change until it returns `None`.
    pub fn admit_next(&mut self) -> Option<(Ticket, WorkerKey, W)> {
        if self.waiting.is_empty() {
            return None;
        }
        if planted(Bug::WaiterForgotten) && self.waiting.len() == 1 {
            return None;
        }
        let (key, worker) = self.take()?;
        let ticket = self.waiting.pop()?;
        Some((ticket, key, worker))
    }

    /// Removes a waiting request, whose client has left or whose wait is over. Does nothing if it does not wait.
    pub fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(ticket);
    }

    /// Ends an outstanding request. `now` is called if the worker has no other. Does nothing for a worker that is gone.
    pub fn done(&mut self, now: impl FnOnce() -> Millis, key: WorkerKey) {
        let Some(place) = self.place(key) else { return };
        let entry = &mut self.workers[place];
        let Some(left) = entry.outstanding.checked_sub(1) else { return };
        entry.outstanding = left;
        entry.ended += 1;
        self.outstanding -= 1;
        if left == 0 {
            entry.idle_since = now();
            self.busy -= 1;
        }
    }

    /// The load for the planner.
    pub fn load(&self, now: Millis) -> FleetLoad {
        FleetLoad {
            queued_normal: self.waiting.len() as u64,
            running: self.outstanding,
            oldest_normal_wait_ms: self.waiting.oldest().map_or(0, |since| now.since(since)),
        }
    }

    /// The number of workers with outstanding requests.
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// All workers, in the order of their addition.
    pub fn workers(&self, now: Millis) -> impl Iterator<Item = (&W, BalancedWorker)> {
        self.workers.iter().map(move |entry| (&entry.worker, entry.seen(now, &self.limits)))
    }

    fn place(&self, key: WorkerKey) -> Option<usize> {
        // Keys ascend.
        self.workers.binary_search_by_key(&key, |entry| entry.key).ok()
    }

    fn take(&mut self) -> Option<(WorkerKey, W)> {
        let place = self.choose(|_| true)?;
        Some(self.occupy(place))
    }

    /// The place of the worker with room that has the fewest outstanding requests. Equally busy workers take turns.
    fn choose(&self, is_wanted: impl Fn(&Entry<W>) -> bool) -> Option<usize> {
        let count = self.workers.len();
        let start = self.turn;
        let places = (0..count).map(|step| (start + step) % count);
        places
            .filter(|place| self.workers[*place].has_room(&self.limits) && is_wanted(&self.workers[*place]))
            .min_by_key(|place| self.workers[*place].outstanding)
    }

    fn occupy(&mut self, place: usize) -> (WorkerKey, W) {
        self.turn = place + 1;
        self.outstanding += 1;
        let entry = &mut self.workers[place];
        self.busy += u32::from(entry.outstanding == 0);
        entry.outstanding += 1;
        (entry.key, entry.worker.clone())
    }
}
