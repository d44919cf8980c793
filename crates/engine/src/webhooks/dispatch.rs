//! Decides which call is made when. It never waits for a receiver itself.
//!
//! ```text
//! owed ─► waiting (for its time) ─► ready ─► calling ─┬─► recording ─► settled, or waiting again
//!                                     ▲               │
//!                                     └── parked ◄────┘ no room at the host, or it rests, or too many bytes
//! ```
//!
//! Nothing stays parked for ever: whenever something is parked for a host, a call to that host is being made, or
//! a call that was unparked for it is on its way, and the end of either unparks the next; or the host does not answer
//! and is left in peace, and the end of that unparks one. The same holds for what is parked for bytes, with any host.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{JobKey, Millis};
use longshore_planted::{Bug, planted};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::attempt::{AttemptOutcome, AttemptSender, SentAttempt};
use super::limiter::{CallLimiter, NoPermit};
use super::log::{DeliveryAttempt, DeliveryState, LogLine, WebhookLog, webhook_id};
use super::{PendingCall, WebhookSettings, WebhookSource};
use crate::EndpointError;

/// How long to wait before the outcome of an attempt is handed to the engine again; doubles every time.
const RECORD_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait.
const RECORD_PAUSE_MAX: Duration = Duration::from_mins(1);

/// Carries out what is owed until the other end of the channel is gone.
pub(super) async fn run<H: WebhookSource>(
    settings: WebhookSettings,
    limiter: CallLimiter,
    sender: AttemptSender,
    log: Arc<dyn WebhookLog>,
    mut owed: mpsc::UnboundedReceiver<PendingCall<H>>,
) {
    let mut dispatcher = Dispatcher::new(settings, limiter, sender, log);
    while let Some(event) = dispatcher.next_event(&mut owed).await {
        dispatcher.handle(event);
        dispatcher.start_calls();
    }
}

/// A call on its way.
struct QueuedCall<H> {
    due: PendingCall<H>,
    /// Tells this hand-in from an earlier one of the same row: a job that was retried can owe a second call
    /// while its first one still waits.
    number: u64,
    /// When it was handed in.
    since: Instant,
    /// It was unparked for this host, and unparks the next when it ends.
    for_host: Option<Arc<str>>,
    /// The same for bytes.
    for_bytes: bool,
}

/// What happened to a call after its attempt was recorded.
enum Recorded {
    Settled,
    Again,
}

enum DispatchEvent<H> {
    Pending(PendingCall<H>),
    Called(QueuedCall<H>, AttemptOutcome),
    Recorded(QueuedCall<H>, Recorded),
    Due,
    /// A task ended without a result.
    Lost,
}

struct Dispatcher<H> {
    settings: WebhookSettings,
    sender: AttemptSender,
    limiter: CallLimiter,
    log: Arc<dyn WebhookLog>,
    last_number: u64,
    /// The hand-in that counts, per row.
    current: HashMap<JobKey, u64>,
    waiting: BTreeMap<(Instant, u64), QueuedCall<H>>,
    ready: VecDeque<QueuedCall<H>>,
    parked_hosts: HashMap<Arc<str>, VecDeque<QueuedCall<H>>>,
    /// When hosts that are left in peace are tried again.
    rests: BTreeSet<(Instant, Arc<str>)>,
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
            rests: BTreeSet::new(),
            parked_bytes: VecDeque::new(),
            calls: JoinSet::new(),
            records: JoinSet::new(),
        }
    }

    /// Waits for the next thing that happens; none when the engine has gone.
    async fn next_event(
        &mut self,
        owed: &mut mpsc::UnboundedReceiver<PendingCall<H>>,
    ) -> Option<DispatchEvent<H>> {
        let next_try = self.rests.first().map(|(at, _)| *at);
        let due_at = self.waiting.first_key_value().map(|((at, _), _)| *at).into_iter().chain(next_try).min();
        // New debts first: one of them may replace the call whose end is also waiting to be handled.
        tokio::select! {
            biased;
            due = owed.recv() => due.map(DispatchEvent::Pending),
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
                tracing::error!("a webhook call ended without a result; it is made at the next start");
                // Nobody knows any more whom it would have unparked.
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
        while self.rests.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, host)) = self.rests.pop_first() else { break };
            self.give_up_old(&host, now);
            self.unpark_one(&host);
        }
    }

    /// Starts as many calls as may be made at a time.
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

    fn called(&mut self, mut call: QueuedCall<H>, outcome: AttemptOutcome) {
        match outcome {
            AttemptOutcome::NoPermit(host, NoPermit::Host) => return self.park_for_host(call, host),
            AttemptOutcome::NoPermit(_, NoPermit::Bytes) => return self.park_for_bytes(call),
            AttemptOutcome::NoPermit(host, NoPermit::CircuitOpen(until)) => {
                return self.park_until(call, host, until);
            }
            AttemptOutcome::Accepted(made) => {
                call.due.attempts += 1;
                self.made(&mut call, made, DeliveryState::Delivered);
                self.settle(&call);
            }
            AttemptOutcome::Failed(made) => {
                call.due.attempts += u32::from(!planted(Bug::HookWithoutEnd));
                let is_last = call.due.attempts >= self.settings.retries.attempts_max;
                let state = if is_last { DeliveryState::Failed } else { DeliveryState::Pending };
                self.made(&mut call, made, state);
                if is_last {
                    tracing::warn!(job = %call.due.job, attempts = call.due.attempts, "webhook given up");
                    self.settle(&call);
                } else {
                    self.try_again(&call);
                }
            }
            AttemptOutcome::Refused(made) => {
                // Another attempt would end the same way: it is the server's settings that refuse.
                call.due.attempts += 1;
                self.made(&mut call, made, DeliveryState::Failed);
                tracing::warn!(job = %call.due.job, "webhook given up: its receiver may not be called");
                self.settle(&call);
            }
            AttemptOutcome::Impossible(reason) => self.give_up(&call, "", reason),
            AttemptOutcome::NotWanted => self.settle(&call),
            AttemptOutcome::NotPending => self.forget(&call),
            AttemptOutcome::Unreadable(reason) => {
                tracing::warn!(job = %call.due.job, %reason, "webhook put off");
                if self.is_current(&call) {
                    let due_at = call.due.handle.now() + self.settings.retries.delay.as_millis() as u64;
                    self.wait_for_time(call.at(due_at));
                }
            }
        }
        self.release(call);
    }

    /// Lets those go on who waited for this call to end.
    fn release(&mut self, call: QueuedCall<H>) {
        if let Some(host) = call.for_host
            && self.parked_hosts.contains_key(&host)
        {
            match self.limiter.open_until(&host) {
                Some(until) => _ = self.rests.insert((until, host)),
                None => self.unpark_one(&host),
            }
        }
        if call.for_bytes
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(QueuedCall { for_bytes: true, ..next });
        }
    }

    fn unpark_one(&mut self, host: &Arc<str>) {
        let Some(queue) = self.parked_hosts.get_mut(host) else { return };
        if let Some(next) = queue.pop_front() {
            self.ready.push_back(QueuedCall { for_host: Some(host.clone()), ..next });
        }
        if queue.is_empty() {
            self.parked_hosts.remove(host);
        }
    }

    /// Waits with others for a host that is left in peace.
    fn park_until(&mut self, mut call: QueuedCall<H>, host: Arc<str>, until: Instant) {
        self.pass_bytes_on(&mut call);
        call.for_host = None;
        self.rests.insert((until, host.clone()));
        self.parked_hosts.entry(host).or_default().push_back(call);
    }

    /// Room for bytes that the ticket was unparked for, and does not need now.
    fn pass_bytes_on(&mut self, call: &mut QueuedCall<H>) {
        if std::mem::take(&mut call.for_bytes)
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(QueuedCall { for_bytes: true, ..next });
        }
    }

    /// Whoever has waited too long for a host that does not answer waits no longer.
    fn give_up_old(&mut self, host: &Arc<str>, now: Instant) {
        let patience = self.settings.breaker.patience;
        while let Some(queue) = self.parked_hosts.get_mut(host)
            && let Some(first) = queue.pop_front()
        {
            if now.duration_since(first.since) < patience {
                queue.push_front(first);
                return;
            }
            let text = format!("the receiver has not answered for {} s", patience.as_secs());
            self.give_up(&first, host, text);
        }
        self.parked_hosts.remove(host);
    }

    /// Notes an attempt that was made, and lets go on who waited for its room.
    fn made(&mut self, call: &mut QueuedCall<H>, made: SentAttempt, state: DeliveryState) {
        let SentAttempt { permit: slot, is_back, receiver, attempt } = made;
        let host = slot.host().clone();
        drop(slot);
        if is_back {
            // One more comes when this ticket is released.
            for _ in 1..self.limiter.calls_per_host_max() {
                self.unpark_one(&host);
            }
        }
        call.for_host = Some(host);
        call.for_bytes = true;
        self.note(call, receiver, state, attempt);
    }

    fn give_up(&mut self, call: &QueuedCall<H>, receiver: &str, reason: String) {
        tracing::warn!(job = %call.due.job, %reason, "webhook given up");
        if self.is_current(call) {
            let attempt = DeliveryAttempt {
                attempt: call.due.attempts + 1,
                at: call.due.handle.now(),
                latency_ms: 0,
                status: None,
                answer: None,
                error: Some(reason),
            };
            self.note(call, receiver.to_owned(), DeliveryState::Failed, attempt);
            self.settle(call);
        }
    }

    fn note(&self, call: &QueuedCall<H>, receiver: String, state: DeliveryState, attempt: DeliveryAttempt) {
        let PendingCall { handle, job, end, .. } = &call.due;
        let line = LogLine { id: webhook_id(*job, *end), receiver, state, attempt };
        if let Ok(line) = serde_json::to_vec(&line) {
            self.log.append(handle.endpoint().id, line);
        }
    }

    fn park_for_host(&mut self, mut call: QueuedCall<H>, host: Arc<str>) {
        self.pass_bytes_on(&mut call);
        if self.limiter.is_busy(&host) {
            call.for_host = None;
            self.parked_hosts.entry(host).or_default().push_back(call);
        } else {
            self.ready.push_back(call);
        }
    }

    fn park_for_bytes(&mut self, mut call: QueuedCall<H>) {
        // It keeps `for_host`: once it is through, it unparks the next of its host.
        if self.limiter.is_idle() {
            self.ready.push_back(call);
        } else {
            call.for_bytes = false;
            self.parked_bytes.push_back(call);
        }
    }

    fn wait_for_time(&mut self, call: QueuedCall<H>) {
        let wait = Duration::from_millis(call.due.due_at.since(call.due.handle.now()));
        // No time was ever set further ahead: one that is was set by a server whose clock was ahead of ours.
        let longest = self.settings.retries.longest_after(call.due.attempts);
        let at = Instant::now() + wait.min(longest);
        self.waiting.insert((at, call.number), call);
    }

    fn is_current(&self, call: &QueuedCall<H>) -> bool {
        self.current.get(&call.due.key) == Some(&call.number)
    }

    fn forget(&mut self, call: &QueuedCall<H>) {
        if self.is_current(call) {
            self.current.remove(&call.due.key);
        }
    }

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

    fn try_again(&mut self, call: &QueuedCall<H>) {
        if !self.is_current(call) {
            return;
        }
        let PendingCall { job, attempts, .. } = call.due;
        let delay = self.settings.retries.delay_after(attempts, job);
        let delay = if planted(Bug::HookAtOnce) { Duration::ZERO } else { delay };
        let due_at = call.due.handle.now() + delay.as_millis() as u64;
        let call = call.at(due_at);
        self.records.spawn(async move {
            let PendingCall { handle, job, end, attempts, .. } = &call.due;
            record(|| handle.webhook_attempted(*job, *end, *attempts, due_at)).await;
            (call, Recorded::Again)
        });
    }
}

impl<H: WebhookSource> QueuedCall<H> {
    /// The same call at another time, nobody waiting for it.
    fn at(&self, due_at: Millis) -> Self {
        let due = PendingCall { due_at, ..self.due.clone() };
        Self { due, number: self.number, since: self.since, for_host: None, for_bytes: false }
    }
}

/// Hands an outcome to the engine; tries again until it is kept. Were it dropped, the job would stay until the
/// next start, and its receiver be called once more.
async fn record<F: Future<Output = Result<(), EndpointError>>>(tell: impl Fn() -> F) {
    let mut pause = RECORD_PAUSE;
    // Anything else means done, or that the job is gone and with it the debt.
    while let Err(EndpointError::Unavailable(reason)) = tell().await {
        tracing::warn!(%reason, "the outcome of a webhook call is not kept yet");
        tokio::time::sleep(pause).await;
        pause = RECORD_PAUSE_MAX.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outcome_is_kept_in_the_end_however_long_the_disk_fails() {
        let tries = Cell::new(0);
        record(async || {
            tries.set(tries.get() + 1);
            if tries.get() < 50 { Err(EndpointError::Unavailable("full".to_owned())) } else { Ok(()) }
        })
        .await;
        assert_eq!(tries.get(), 50);
    }
}
