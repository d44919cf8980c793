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

use super::call::{Caller, Made, Verdict};
use super::lanes::{Crowded, Lanes};
use super::log::{DeliveryAttempt, DeliveryState, HookLog, Line, webhook_id};
use super::{HookDue, HookOwner, WebhookSettings};
use crate::AskError;

/// How long to wait before the outcome of an attempt is handed to the engine again; doubles every time.
const RECORD_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait.
const RECORD_PAUSE_MAX: Duration = Duration::from_mins(1);

/// Carries out what is owed until the other end of the channel is gone.
pub(super) async fn run<H: HookOwner>(
    settings: WebhookSettings,
    lanes: Lanes,
    caller: Caller,
    log: Arc<dyn HookLog>,
    mut owed: mpsc::UnboundedReceiver<HookDue<H>>,
) {
    let mut dispatcher = Dispatcher::new(settings, lanes, caller, log);
    while let Some(event) = dispatcher.next_event(&mut owed).await {
        dispatcher.handle(event);
        dispatcher.start_calls();
    }
}

/// A call on its way.
struct Ticket<H> {
    due: HookDue<H>,
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

enum Event<H> {
    Owed(HookDue<H>),
    Called(Ticket<H>, Verdict),
    Recorded(Ticket<H>, Recorded),
    Due,
    /// A task ended without a result.
    Lost,
}

struct Dispatcher<H> {
    settings: WebhookSettings,
    caller: Caller,
    lanes: Lanes,
    log: Arc<dyn HookLog>,
    last_number: u64,
    /// The hand-in that counts, per row.
    current: HashMap<JobKey, u64>,
    waiting: BTreeMap<(Instant, u64), Ticket<H>>,
    ready: VecDeque<Ticket<H>>,
    parked_hosts: HashMap<Arc<str>, VecDeque<Ticket<H>>>,
    /// When hosts that are left in peace are tried again.
    rests: BTreeSet<(Instant, Arc<str>)>,
    parked_bytes: VecDeque<Ticket<H>>,
    calls: JoinSet<(Ticket<H>, Verdict)>,
    records: JoinSet<(Ticket<H>, Recorded)>,
}

impl<H: HookOwner> Dispatcher<H> {
    fn new(settings: WebhookSettings, lanes: Lanes, caller: Caller, log: Arc<dyn HookLog>) -> Self {
        Self {
            caller,
            settings,
            lanes,
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
    async fn next_event(&mut self, owed: &mut mpsc::UnboundedReceiver<HookDue<H>>) -> Option<Event<H>> {
        let next_try = self.rests.first().map(|(at, _)| *at);
        let due_at = self.waiting.first_key_value().map(|((at, _), _)| *at).into_iter().chain(next_try).min();
        // New debts first: one of them may replace the call whose end is also waiting to be handled.
        tokio::select! {
            biased;
            due = owed.recv() => due.map(Event::Owed),
            Some(end) = self.records.join_next() => {
                Some(end.map_or(Event::Lost, |(ticket, recorded)| Event::Recorded(ticket, recorded)))
            }
            Some(end) = self.calls.join_next() => {
                Some(end.map_or(Event::Lost, |(ticket, verdict)| Event::Called(ticket, verdict)))
            }
            () = tokio::time::sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => {
                Some(Event::Due)
            }
        }
    }

    fn handle(&mut self, event: Event<H>) {
        match event {
            Event::Owed(due) => self.accept(due),
            Event::Called(ticket, verdict) => self.called(ticket, verdict),
            Event::Recorded(ticket, Recorded::Settled) => self.forget(&ticket),
            Event::Recorded(ticket, Recorded::Again) => self.wait_for_time(ticket),
            Event::Due => {}
            Event::Lost => {
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
            let Some(ticket) = self.ready.pop_front() else { return };
            if !self.is_current(&ticket) {
                self.release(ticket);
                continue;
            }
            let caller = self.caller.clone();
            self.calls.spawn(async move {
                let verdict = caller.attempt(&ticket.due).await;
                (ticket, verdict)
            });
        }
    }

    fn accept(&mut self, due: HookDue<H>) {
        self.last_number += 1;
        self.current.insert(due.key, self.last_number);
        let since = Instant::now();
        self.wait_for_time(Ticket { due, number: self.last_number, since, for_host: None, for_bytes: false });
    }

    fn called(&mut self, mut ticket: Ticket<H>, verdict: Verdict) {
        match verdict {
            Verdict::Crowded(host, Crowded::Host) => return self.park_for_host(ticket, host),
            Verdict::Crowded(_, Crowded::Bytes) => return self.park_for_bytes(ticket),
            Verdict::Crowded(host, Crowded::Resting(until)) => return self.park_until(ticket, host, until),
            Verdict::Accepted(made) => {
                ticket.due.attempts += 1;
                self.made(&mut ticket, made, DeliveryState::Delivered);
                self.settle(&ticket);
            }
            Verdict::Failed(made) => {
                ticket.due.attempts += u32::from(!planted(Bug::HookWithoutEnd));
                let is_last = ticket.due.attempts >= self.settings.retries.attempts_max;
                let state = if is_last { DeliveryState::Failed } else { DeliveryState::Pending };
                self.made(&mut ticket, made, state);
                if is_last {
                    tracing::warn!(job = %ticket.due.job, attempts = ticket.due.attempts, "webhook given up");
                    self.settle(&ticket);
                } else {
                    self.try_again(&ticket);
                }
            }
            Verdict::Refused(made) => {
                // Another attempt would end the same way: it is the server's settings that refuse.
                ticket.due.attempts += 1;
                self.made(&mut ticket, made, DeliveryState::Failed);
                tracing::warn!(job = %ticket.due.job, "webhook given up: its receiver may not be called");
                self.settle(&ticket);
            }
            Verdict::Impossible(reason) => self.give_up(&ticket, "", reason),
            Verdict::NotWanted => self.settle(&ticket),
            Verdict::NotOwed => self.forget(&ticket),
            Verdict::Unreadable(reason) => {
                tracing::warn!(job = %ticket.due.job, %reason, "webhook put off");
                if self.is_current(&ticket) {
                    let due_at = ticket.due.handle.now() + self.settings.retries.delay.as_millis() as u64;
                    self.wait_for_time(ticket.at(due_at));
                }
            }
        }
        self.release(ticket);
    }

    /// Lets those go on who waited for this call to end.
    fn release(&mut self, ticket: Ticket<H>) {
        if let Some(host) = ticket.for_host
            && self.parked_hosts.contains_key(&host)
        {
            match self.lanes.rests_until(&host) {
                Some(until) => _ = self.rests.insert((until, host)),
                None => self.unpark_one(&host),
            }
        }
        if ticket.for_bytes
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(Ticket { for_bytes: true, ..next });
        }
    }

    fn unpark_one(&mut self, host: &Arc<str>) {
        let Some(queue) = self.parked_hosts.get_mut(host) else { return };
        if let Some(next) = queue.pop_front() {
            self.ready.push_back(Ticket { for_host: Some(host.clone()), ..next });
        }
        if queue.is_empty() {
            self.parked_hosts.remove(host);
        }
    }

    /// Waits with others for a host that is left in peace.
    fn park_until(&mut self, mut ticket: Ticket<H>, host: Arc<str>, until: Instant) {
        self.pass_bytes_on(&mut ticket);
        ticket.for_host = None;
        self.rests.insert((until, host.clone()));
        self.parked_hosts.entry(host).or_default().push_back(ticket);
    }

    /// Room for bytes that the ticket was unparked for, and does not need now.
    fn pass_bytes_on(&mut self, ticket: &mut Ticket<H>) {
        if std::mem::take(&mut ticket.for_bytes)
            && let Some(next) = self.parked_bytes.pop_front()
        {
            self.ready.push_back(Ticket { for_bytes: true, ..next });
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
    fn made(&mut self, ticket: &mut Ticket<H>, made: Made, state: DeliveryState) {
        let Made { slot, is_back, receiver, attempt } = made;
        let host = slot.host().clone();
        drop(slot);
        if is_back {
            // One more comes when this ticket is released.
            for _ in 1..self.lanes.calls_per_host_max() {
                self.unpark_one(&host);
            }
        }
        ticket.for_host = Some(host);
        ticket.for_bytes = true;
        self.note(ticket, receiver, state, attempt);
    }

    fn give_up(&mut self, ticket: &Ticket<H>, receiver: &str, reason: String) {
        tracing::warn!(job = %ticket.due.job, %reason, "webhook given up");
        if self.is_current(ticket) {
            let attempt = DeliveryAttempt {
                attempt: ticket.due.attempts + 1,
                at: ticket.due.handle.now(),
                latency_ms: 0,
                status: None,
                answer: None,
                error: Some(reason),
            };
            self.note(ticket, receiver.to_owned(), DeliveryState::Failed, attempt);
            self.settle(ticket);
        }
    }

    fn note(&self, ticket: &Ticket<H>, receiver: String, state: DeliveryState, attempt: DeliveryAttempt) {
        let HookDue { handle, job, end, .. } = &ticket.due;
        let line = Line { id: webhook_id(*job, *end), receiver, state, attempt };
        if let Ok(line) = serde_json::to_vec(&line) {
            self.log.append(handle.endpoint().id, line);
        }
    }

    fn park_for_host(&mut self, mut ticket: Ticket<H>, host: Arc<str>) {
        self.pass_bytes_on(&mut ticket);
        if self.lanes.is_busy(&host) {
            ticket.for_host = None;
            self.parked_hosts.entry(host).or_default().push_back(ticket);
        } else {
            self.ready.push_back(ticket);
        }
    }

    fn park_for_bytes(&mut self, mut ticket: Ticket<H>) {
        // It keeps `for_host`: once it is through, it unparks the next of its host.
        if self.lanes.is_idle() {
            self.ready.push_back(ticket);
        } else {
            ticket.for_bytes = false;
            self.parked_bytes.push_back(ticket);
        }
    }

    fn wait_for_time(&mut self, ticket: Ticket<H>) {
        let wait = Duration::from_millis(ticket.due.due_at.since(ticket.due.handle.now()));
        // No time was ever set further ahead: one that is was set by a server whose clock was ahead of ours.
        let longest = self.settings.retries.longest_after(ticket.due.attempts);
        let at = Instant::now() + wait.min(longest);
        self.waiting.insert((at, ticket.number), ticket);
    }

    fn is_current(&self, ticket: &Ticket<H>) -> bool {
        self.current.get(&ticket.due.key) == Some(&ticket.number)
    }

    fn forget(&mut self, ticket: &Ticket<H>) {
        if self.is_current(ticket) {
            self.current.remove(&ticket.due.key);
        }
    }

    fn settle(&mut self, ticket: &Ticket<H>) {
        if !self.is_current(ticket) {
            return;
        }
        let ticket = ticket.at(ticket.due.due_at);
        self.records.spawn(async move {
            let HookDue { handle, job, end, .. } = &ticket.due;
            if !planted(Bug::HookNotSettled) {
                record(|| handle.hook_settled(*job, *end)).await;
            }
            (ticket, Recorded::Settled)
        });
    }

    fn try_again(&mut self, ticket: &Ticket<H>) {
        if !self.is_current(ticket) {
            return;
        }
        let HookDue { job, attempts, .. } = ticket.due;
        let delay = self.settings.retries.delay_after(attempts, job);
        let delay = if planted(Bug::HookAtOnce) { Duration::ZERO } else { delay };
        let due_at = ticket.due.handle.now() + delay.as_millis() as u64;
        let ticket = ticket.at(due_at);
        self.records.spawn(async move {
            let HookDue { handle, job, end, attempts, .. } = &ticket.due;
            record(|| handle.hook_attempted(*job, *end, *attempts, due_at)).await;
            (ticket, Recorded::Again)
        });
    }
}

impl<H: HookOwner> Ticket<H> {
    /// The same call at another time, nobody waiting for it.
    fn at(&self, due_at: Millis) -> Self {
        let due = HookDue { due_at, ..self.due.clone() };
        Self { due, number: self.number, since: self.since, for_host: None, for_bytes: false }
    }
}

/// Hands an outcome to the engine; tries again until it is kept. Were it dropped, the job would stay until the
/// next start, and its receiver be called once more.
async fn record<F: Future<Output = Result<(), AskError>>>(tell: impl Fn() -> F) {
    let mut pause = RECORD_PAUSE;
    // Anything else means done, or that the job is gone and with it the debt.
    while let Err(AskError::Unavailable(reason)) = tell().await {
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
            if tries.get() < 50 { Err(AskError::Unavailable("full".to_owned())) } else { Ok(()) }
        })
        .await;
        assert_eq!(tries.get(), 50);
    }
}
