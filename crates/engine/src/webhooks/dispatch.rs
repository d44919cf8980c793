//! Decides which call is made when. The task of this module waits for no receiver: each attempt is a task of its own.
//!
//! ```text
//! pending ─► waiting (until due) ─► ready ─► calling ─┬─► recording ─► settled, or waiting again
//!                                     ▲               │
//!                                     └── parked ◄────┘ no permit: receiver at its limit, circuit breaker open, or bytes
//! ```
//!
//! No call stays parked forever. While a call is parked for a receiver, one of three holds: a call to the receiver is
//! in flight, or a call that was unparked for it is, and the end of either unparks the next; or its circuit breaker is
//! open, and the end of the pause unparks one. While a call is parked for bytes, a call to some receiver is in flight,
//! or one that was unparked for bytes is, and its end unparks the next.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longshore_model::{EndpointId, JobId, JobKey, Millis};
use longshore_planted::{Bug, planted};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::attempt::{AttemptOutcome, AttemptSender, SentAttempt};
use super::limiter::{CallLimiter, NoPermit};
use super::log::{DeliveryAttempt, DeliveryState, LogLine, WebhookLog, webhook_id};
use super::{PendingCall, WebhookSettings, WebhookSource};
use crate::{EndpointError, WebhookOutcome};

/// Pause before the first retry of recording an attempt's result in the queue; doubles with each retry.
const RECORD_PAUSE: Duration = Duration::from_secs(1);
/// Limit of the pause before a retry of recording.
const RECORD_PAUSE_MAX: Duration = Duration::from_mins(1);

/// Makes the calls of a channel until its senders are dropped.
pub(super) async fn run<H: WebhookSource>(
    settings: WebhookSettings,
    limiter: CallLimiter,
    sender: AttemptSender,
    log: Arc<dyn WebhookLog>,
    (mut pending, counted): (mpsc::UnboundedReceiver<PendingCall<H>>, Arc<AtomicUsize>),
) {
    let mut dispatcher = Dispatcher::new(settings, limiter, sender, log);
    while let Some(event) = dispatcher.next_event(&mut pending).await {
        dispatcher.handle(event);
        dispatcher.start_calls();
        counted.store(dispatcher.current.len(), Ordering::Relaxed);
    }
}

/// A pending call in the dispatcher: waiting, ready, parked, calling or recording.
struct QueuedCall<H> {
    due: PendingCall<H>,
    /// Distinguishes this call from an earlier one of the same row: a job that was retried can have a second pending
    /// call while the first one still waits.
    number: u64,
    /// When the call was enqueued.
    since: Instant,
    /// The receiver of which this call unparks the next call when it ends; `None` if this call unparks none.
    for_host: Option<Arc<str>>,
    /// This call unparks the next call that is parked for bytes when it ends.
    for_bytes: bool,
}

/// What was recorded about a call in the queue.
enum Recorded {
    /// The call is settled.
    Settled,
    /// The call has another attempt.
    Again,
}

/// What wakes the dispatcher.
enum DispatchEvent<H> {
    /// A call was enqueued.
    Pending(PendingCall<H>),
    /// An attempt ended, with this result.
    Called(QueuedCall<H>, AttemptOutcome),
    /// The result of an attempt is durable.
    Recorded(QueuedCall<H>, Recorded),
    /// A waiting call is due, or the pause of an open circuit breaker is over.
    Due,
    /// A task panicked; its call is lost until the next start.
    Lost,
}

/// The state of the delivery task. Volatile: the rows of the jobs say which calls are pending.
struct Dispatcher<H> {
    settings: WebhookSettings,
    sender: AttemptSender,
    limiter: CallLimiter,
    log: Arc<dyn WebhookLog>,
    last_number: u64,
    /// The number of the newest call of each row. Calls with another number are superseded.
    current: HashMap<JobKey, u64>,
    /// Calls that are not due, by due time and number.
    waiting: BTreeMap<(Instant, u64), QueuedCall<H>>,
    /// Calls that are due, in order.
    ready: VecDeque<QueuedCall<H>>,
    /// Calls parked per receiver: at its limit, or its circuit breaker is open.
    parked_hosts: HashMap<Arc<str>, VecDeque<QueuedCall<H>>>,
    /// When the pauses of open circuit breakers end.
    open_until: BTreeSet<(Instant, Arc<str>)>,
    /// Calls parked because all bodies together reach the limit of bytes.
    parked_bytes: VecDeque<QueuedCall<H>>,
    calls: JoinSet<(QueuedCall<H>, AttemptOutcome)>,
    records: JoinSet<(QueuedCall<H>, Recorded)>,
}

impl<H: WebhookSource> Dispatcher<H> {
    fn new(
        settings: WebhookSettings,
        limiter: CallLimiter,
        sender: AttemptSender,
        log: Arc<dyn WebhookLog>,
    ) -> Self {
        Self {
            sender,
            settings,
            limiter,
            log,
            last_number: 0,
            current: HashMap::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            parked_hosts: HashMap::new(),
            open_until: BTreeSet::new(),
            parked_bytes: VecDeque::new(),
            calls: JoinSet::new(),
            records: JoinSet::new(),
        }
    }

    /// Waits for the next event; `None` once the engine has dropped the channel.
    async fn next_event(
        &mut self,
        pending: &mut mpsc::UnboundedReceiver<PendingCall<H>>,
    ) -> Option<DispatchEvent<H>> {
        let next_probe = self.open_until.first().map(|(at, _)| *at);
        let due_at =
            self.waiting.first_key_value().map(|((at, _), _)| *at).into_iter().chain(next_probe).min();
        // Pending calls first: one of them may replace the call whose end is also ready.
        tokio::select! {
            biased;
            due = pending.recv() => due.map(DispatchEvent::Pending),
            Some(end) = self.records.join_next() => {
                Some(end.map_or(DispatchEvent::Lost, |(call, recorded)| DispatchEvent::Recorded(call, recorded)))
            }
            Some(end) = self.calls.join_next() => {
                Some(end.map_or(DispatchEvent::Lost, |(call, outcome)| DispatchEvent::Called(call, outcome)))
            }
            () = tokio::time::sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => {
                Some(DispatchEvent::Due)
            }
        }
    }

    fn handle(&mut self, event: DispatchEvent<H>) {
        match event {
            DispatchEvent::Pending(due) => self.accept(due),
            DispatchEvent::Called(call, outcome) => self.called(call, outcome),
            DispatchEvent::Recorded(call, Recorded::Settled) => self.forget(&call),
            DispatchEvent::Recorded(call, Recorded::Again) => self.wait_for_time(call),
            DispatchEvent::Due => {}
            DispatchEvent::Lost => {
                tracing::error!("webhook task panicked, its call waits for the next start");
                // Which parked call the lost one would have unparked is unknown.
                self.ready.extend(self.parked_hosts.drain().flat_map(|(_, parked)| parked));
                self.ready.extend(self.parked_bytes.drain(..));
            }
        }
        let now = Instant::now();
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > now {
                break;
            }
            self.ready.push_back(first.remove());
        }
        while self.open_until.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, host)) = self.open_until.pop_first() else { break };
            self.give_up_expired(&host, now);
            self.unpark_one(&host);
        }
    }

    /// Starts ready calls up to the limit of concurrent calls.
    fn start_calls(&mut self) {
        while self.calls.len() < self.settings.calls_max.max(1) {
            let Some(call) = self.ready.pop_front() else { return };
            if !self.is_current(&call) {
                self.release(call);
                continue;
            }
            let sender = self.sender.clone();
            self.calls.spawn(async move {
                let outcome = sender.attempt(&call.due).await;
                (call, outcome)
            });
        }
    }

    /// Takes a pending call, which supersedes an earlier one of the same row.
    fn accept(&mut self, due: PendingCall<H>) {
        self.last_number += 1;
        self.current.insert(due.key, self.last_number);
        let since = Instant::now();
        self.wait_for_time(QueuedCall {
            due,
            number: self.last_number,
            since,
            for_host: None,
            for_bytes: false,
        });
    }

    /// Handles the end of an attempt.
    fn called(&mut self, mut call: QueuedCall<H>, outcome: AttemptOutcome) {
        match outcome {
            AttemptOutcome::NoPermit(host, NoPermit::Host) => return self.park_for_host(call, host),
            AttemptOutcome::NoPermit(_, NoPermit::Bytes) => return self.park_for_bytes(call),
            AttemptOutcome::NoPermit(host, NoPermit::CircuitOpen(until)) => {
                return self.park_until(call, host, until);
            }
            AttemptOutcome::Accepted(sent) => {
                call.due.attempts += 1;
                self.sent(&mut call, sent, DeliveryState::Delivered, None);
                self.settle(&call);
            }
            AttemptOutcome::Failed(sent) => {
                call.due.attempts += u32::from(!planted(Bug::HookWithoutEnd));
                let is_last = call.due.attempts >= self.settings.retries.attempts_max;
                if is_last {
                    self.sent(&mut call, sent, DeliveryState::Failed, None);
                    let (endpoint, job) = call.names();
                    tracing::warn!(%endpoint, %job, attempts = call.due.attempts, "webhook given up");
                    self.settle(&call);
                } else {
                    let due_at = self.next_due(&call);
                    self.sent(&mut call, sent, DeliveryState::Pending, Some(due_at));
                    self.retry(&call, due_at);
                }
            }
            AttemptOutcome::Forbidden(sent) => {
                // Another attempt would end the same way: the server's settings forbid the address.
                call.due.attempts += 1;
                self.sent(&mut call, sent, DeliveryState::Failed, None);
                let (endpoint, job) = call.names();
                tracing::warn!(%endpoint, %job, reason = "forbidden address", "webhook given up");
                self.settle(&call);
            }
            AttemptOutcome::Impossible(reason) => self.give_up(&call, "", reason),
            AttemptOutcome::NotWanted => self.settle(&call),
            AttemptOutcome::NotPending => self.forget(&call),
            AttemptOutcome::Unreadable(reason) => {
                let (endpoint, job) = call.names();
                tracing::warn!(%endpoint, %job, %reason, "webhook postponed");
                if self.is_current(&call) {
                    let due_at = call.due.handle.now() + self.settings.retries.delay.as_millis() as u64;
                    self.wait_for_time(call.at(due_at));
                }
            }
        }
        self.release(call);
    }

    /// Ends a call: unparks the next one of its receiver, and the next one that is parked for bytes.
    fn release(&mut self, call: QueuedCall<H>) {
        if let Some(host) = call.for_host
            && self.parked_hosts.contains_key(&host)
        {
            match self.limiter.open_until(&host) {
                Some(until) => _ = self.open_until.insert((until, host)),
                None => self.unpark_one(&host),
            }
        }
        if call.for_bytes
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(QueuedCall { for_bytes: true, ..next });
        }
    }

    /// Makes the first call that is parked for the receiver ready.
    fn unpark_one(&mut self, host: &Arc<str>) {
        let Some(queue) = self.parked_hosts.get_mut(host) else { return };
        if let Some(next) = queue.pop_front() {
            self.ready.push_back(QueuedCall { for_host: Some(host.clone()), ..next });
        }
        if queue.is_empty() {
            self.parked_hosts.remove(host);
        }
    }

    /// Parks a call until the pause of its receiver's circuit breaker is over.
    fn park_until(&mut self, mut call: QueuedCall<H>, host: Arc<str>, until: Instant) {
        self.pass_bytes_on(&mut call);
        call.for_host = None;
        self.open_until.insert((until, host.clone()));
        self.parked_hosts.entry(host).or_default().push_back(call);
    }

    /// Unparks the next call for bytes in place of this one, which was unparked for bytes and is parked for its
    /// receiver.
    fn pass_bytes_on(&mut self, call: &mut QueuedCall<H>) {
        if std::mem::take(&mut call.for_bytes)
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(QueuedCall { for_bytes: true, ..next });
        }
    }

    /// Gives up the calls that have waited longer than [`BreakerSettings::patience`] for a receiver.
    ///
    /// [`BreakerSettings::patience`]: super::BreakerSettings::patience
    fn give_up_expired(&mut self, host: &Arc<str>, now: Instant) {
        let patience = self.settings.breaker.patience;
        while let Some(queue) = self.parked_hosts.get_mut(host)
            && let Some(first) = queue.pop_front()
        {
            if now.duration_since(first.since) < patience {
                queue.push_front(first);
                return;
            }
            let text = format!("no response from the receiver for {} s", patience.as_secs());
            self.give_up(&first, host, text);
        }
        self.parked_hosts.remove(host);
    }

    /// Logs an attempt and returns its permit. A response that closed the circuit breaker unparks as many calls as may
    /// run concurrently.
    fn sent(
        &mut self,
        call: &mut QueuedCall<H>,
        sent: SentAttempt,
        state: DeliveryState,
        next_at: Option<Millis>,
    ) {
        let SentAttempt { permit, closed_breaker, receiver, attempt } = sent;
        let host = permit.host().clone();
        drop(permit);
        if closed_breaker {
            // `release` of this call unparks one more.
            for _ in 1..self.limiter.calls_per_host_max() {
                self.unpark_one(&host);
            }
        }
        call.for_host = Some(host);
        call.for_bytes = true;
        call.due.handle.count_attempt(match state {
            DeliveryState::Delivered => WebhookOutcome::Delivered,
            DeliveryState::Pending => WebhookOutcome::Retried,
            DeliveryState::Failed => WebhookOutcome::Failed,
        });
        self.log_attempt(call, receiver, (state, next_at), attempt);
    }

    /// Settles a call without an attempt, and logs the reason.
    fn give_up(&mut self, call: &QueuedCall<H>, receiver: &str, reason: String) {
        let (endpoint, job) = call.names();
        tracing::warn!(%endpoint, %job, %reason, "webhook given up");
        if self.is_current(call) {
            call.due.handle.count_attempt(WebhookOutcome::Failed);
            let attempt = DeliveryAttempt {
                attempt: call.due.attempts + 1,
                at: call.due.handle.now(),
                latency_ms: 0,
                status: None,
                answer: None,
                error: Some(reason),
            };
            self.log_attempt(call, receiver.to_owned(), (DeliveryState::Failed, None), attempt);
            self.settle(call);
        }
    }

    /// Appends an attempt to the log of deliveries, with the state after it and when the next one is due.
    fn log_attempt(
        &self,
        call: &QueuedCall<H>,
        receiver: String,
        (state, next_at): (DeliveryState, Option<Millis>),
        attempt: DeliveryAttempt,
    ) {
        let PendingCall { handle, job, end, .. } = &call.due;
        let line = LogLine { id: webhook_id(*job, *end), receiver, state, next_at, attempt };
        if let Ok(line) = serde_json::to_vec(&line) {
            self.log.append(handle.endpoint().id, line);
        }
    }

    /// Parks a call whose receiver is at its limit. Without a call in flight there the limit is free again.
    fn park_for_host(&mut self, mut call: QueuedCall<H>, host: Arc<str>) {
        self.pass_bytes_on(&mut call);
        if self.limiter.is_busy(&host) {
            call.for_host = None;
            self.parked_hosts.entry(host).or_default().push_back(call);
        } else {
            self.ready.push_back(call);
        }
    }

    /// Parks a call for which there are not enough bytes. Without any call in flight the bytes are free again.
    fn park_for_bytes(&mut self, mut call: QueuedCall<H>) {
        // `for_host` stays: at its end this call unparks the next one of its receiver.
        if self.limiter.is_idle() {
            self.ready.push_back(call);
        } else {
            call.for_bytes = false;
            self.parked_bytes.push_back(call);
        }
    }

    /// Queues a call until it is due.
    fn wait_for_time(&mut self, call: QueuedCall<H>) {
        let wait = Duration::from_millis(call.due.due_at.since(call.due.handle.now()));
        // A due time further ahead was set under a clock that was ahead of the present one.
        let longest = self.settings.retries.longest_after(call.due.attempts);
        let at = Instant::now() + wait.min(longest);
        self.waiting.insert((at, call.number), call);
    }

    /// Returns whether the call is the newest one of its row.
    fn is_current(&self, call: &QueuedCall<H>) -> bool {
        self.current.get(&call.due.key) == Some(&call.number)
    }

    /// Drops a call that is not pending.
    fn forget(&mut self, call: &QueuedCall<H>) {
        if self.is_current(call) {
            self.current.remove(&call.due.key);
        }
    }

    /// Records in the queue, in a task, that the call is settled.
    fn settle(&mut self, call: &QueuedCall<H>) {
        if !self.is_current(call) {
            return;
        }
        let call = call.at(call.due.due_at);
        self.records.spawn(async move {
            let PendingCall { handle, job, end, .. } = &call.due;
            if !planted(Bug::HookNotSettled) {
                record(|| handle.settle_webhook(*job, *end)).await;
            }
            (call, Recorded::Settled)
        });
    }

    /// When the attempt after one that has just failed is due.
    fn next_due(&self, call: &QueuedCall<H>) -> Millis {
        let PendingCall { job, attempts, .. } = call.due;
        let delay = self.settings.retries.delay_after(attempts, job);
        let delay = if planted(Bug::HookAtOnce) { Duration::ZERO } else { delay };
        call.due.handle.now() + delay.as_millis() as u64
    }

    /// Records in the queue, in a task, that an attempt failed and when the next one is due.
    fn retry(&mut self, call: &QueuedCall<H>, due_at: Millis) {
        if !self.is_current(call) {
            return;
        }
        let call = call.at(due_at);
        self.records.spawn(async move {
            let PendingCall { handle, job, end, attempts, .. } = &call.due;
            record(|| handle.webhook_attempted(*job, *end, *attempts, due_at)).await;
            (call, Recorded::Again)
        });
    }
}

impl<H: WebhookSource> QueuedCall<H> {
    /// The endpoint and the job of the call.
    fn names(&self) -> (EndpointId, JobId) {
        (self.due.handle.endpoint().id, self.due.job)
    }

    /// Returns a copy that is due at `due_at` and unparks no other call.
    fn at(&self, due_at: Millis) -> Self {
        let due = PendingCall { due_at, ..self.due.clone() };
        Self { due, number: self.number, since: self.since, for_host: None, for_bytes: false }
    }
}

/// Records a result in the queue, and retries until the change is durable. A result that is not recorded keeps the
/// job's row until the next start, when its receiver is called again.
async fn record<F: Future<Output = Result<(), EndpointError>>>(write: impl Fn() -> F) {
    let mut pause = RECORD_PAUSE;
    // After another error the job is deleted, and with it the pending call.
    while let Err(reason) = write().await
        && reason.is_of_writing()
    {
        tracing::warn!(%reason, "webhook result not written, retrying");
        tokio::time::sleep(pause).await;
        pause = RECORD_PAUSE_MAX.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn recording_is_retried_until_the_disk_works() {
        let calls = Cell::new(0);
        record(async || {
            calls.set(calls.get() + 1);
            if calls.get() < 50 { Err(EndpointError::Unavailable("full".to_owned())) } else { Ok(()) }
        })
        .await;
        assert_eq!(calls.get(), 50);
    }
}
