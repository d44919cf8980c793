//! Worlds of a load-balancing endpoint: the pure decisions of [`longshore_fleet::Balance`], with slow, dying and lying
//! workers, clients that leave, and a server that restarts.
//!
//! The connections between server and workers are sockets of the operating system, which a world has not. So a world
//! drives the decisions as the engine and the proxy do, and its auditor sees which worker gets which request.

mod auditor;
mod events;
mod worker;

use std::collections::BTreeMap;

use longshore_fleet::{Admission, Balance, BalanceLimits, Check, Ticket, may_send_again};
use longshore_model::Millis;

use crate::rng::Rng;
pub use auditor::{BrokenRule, Rule};

use auditor::BalanceAuditor;
use events::{BalanceEvent, Events};
use worker::{Mood, Outcome, Server};

/// How long a world has faults, in ms.
const FAULTY_MS: u64 = 600_000;
/// How long a world goes on without faults and new requests, in ms. Longer than every wait and every pause of checks.
const QUIET_MS: u64 = 120_000;
/// The longest wait for a worker, in ms.
const QUEUE_TIMEOUT_MS: u64 = 20_000;
/// The pause between two health checks of a worker, in ms.
const CHECK_PAUSE_MS: u64 = 5_000;
/// The pause before a request asks again for a worker, if there is no other than the one that it could not reach.
const SAME_WORKER_PAUSE_MS: u64 = 100;

/// The result of one world.
#[derive(Clone, Debug, Default)]
pub struct BalancingResult {
    /// How often each thing happened that a world should bring about.
    pub seen: BTreeMap<&'static str, u64>,
    /// The broken rules, in the order in which they were seen.
    pub violations: Vec<BrokenRule>,
}

/// A request of a client.
#[derive(Debug)]
struct Asked {
    /// Whether the method permits that it is sent twice.
    is_repeatable: bool,
    retries: u32,
    place: Place,
}

/// Where a request is.
#[derive(Debug)]
enum Place {
    Waits(Ticket),
    /// At this worker, by its number.
    At(usize),
    /// It could not reach its worker, and asks again.
    Pauses,
}

/// Runs the world of a seed.
pub fn run(seed: u64) -> BalancingResult {
    World::with_seed(seed).run()
}

struct World {
    rng: Rng,
    now: u64,
    limits: BalanceLimits,
    balance: Balance<usize>,
    /// All workers that were started, by their number.
    servers: Vec<Server>,
    /// The requests that have not ended, by their number.
    asked: BTreeMap<u64, Asked>,
    last_request: u64,
    events: Events,
    auditor: BalanceAuditor,
    seen: BTreeMap<&'static str, u64>,
}

impl World {
    fn with_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let limits = BalanceLimits {
            max_concurrency: rng.range(0..=3) as u32,
            queue_max: rng.range(1..=20) as usize,
            drain_timeout_ms: 30_000,
        };
        let auditor = BalanceAuditor::new(limits.max_concurrency);
        let balance = Balance::new(limits);
        let (servers, events) = (Vec::new(), Events::default());
        let (asked, counts) = (BTreeMap::new(), BTreeMap::new());
        Self { rng, now: 0, limits, balance, servers, asked, last_request: 0, events, auditor, seen: counts }
    }

    fn run(mut self) -> BalancingResult {
        for _ in 0..self.rng.range(1..=3) {
            self.start_server();
        }
        self.at(0, BalanceEvent::Arrival);
        self.at(1_000, BalanceEvent::Change);
        while let Some((at, event)) = self.events.pop() {
            if at > FAULTY_MS + QUIET_MS {
                break;
            }
            if self.now <= FAULTY_MS && at > FAULTY_MS {
                self.recover();
            }
            self.now = at;
            self.auditor.now = at;
            self.happens(event);
            self.settle();
        }
        self.auditor.at_the_end(self.asked.keys().copied());
        BalancingResult { seen: self.seen, violations: self.auditor.violations }
    }

    fn is_faulty(&self) -> bool {
        self.now <= FAULTY_MS
    }

    fn at(&mut self, after_ms: u64, event: BalanceEvent) {
        self.events.push(self.now + after_ms, event);
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Ends all faults: from now on a healthy worker is there.
    fn recover(&mut self) {
        for server in self.servers.iter_mut().filter(|server| server.key.is_some()) {
            server.mood = Mood::Good;
        }
        self.start_server();
    }

    fn happens(&mut self, event: BalanceEvent) {
        match event {
            BalanceEvent::Arrival => self.arrival(),
            BalanceEvent::Change => self.change(),
            BalanceEvent::Check(server) => self.check(server),
            BalanceEvent::Answer { request, server, retries } => self.answer(request, server, retries),
            BalanceEvent::Again(request) => self.again(request),
            BalanceEvent::Leave(request) => {
                if self.asked.contains_key(&request) {
                    self.count("a client leaves");
                    self.end(request);
                }
            }
            BalanceEvent::WaitOver(request) => {
                if self.asked.get(&request).is_some_and(|asked| matches!(asked.place, Place::Waits(_))) {
                    self.count("a wait is over");
                    self.end(request);
                }
            }
        }
    }

    /// A client sends a request, and the next one comes later.
    fn arrival(&mut self) {
        if !self.is_faulty() {
            return;
        }
        self.last_request += 1;
        let request = self.last_request;
        let is_repeatable = self.rng.chance(0.5);
        self.asked.insert(request, Asked { is_repeatable, retries: 0, place: Place::Pauses });
        self.admit(request);
        if self.rng.chance(0.1) {
            let after_ms = self.rng.skewed(0..=20_000);
            self.at(after_ms, BalanceEvent::Leave(request));
        }
        let pause_ms = self.rng.skewed(1..=3_000);
        self.at(pause_ms, BalanceEvent::Arrival);
    }

    /// Asks for a worker, as a new request and one without another worker do.
    fn admit(&mut self, request: u64) {
        match self.balance.request(Millis(self.now)) {
            Admission::Worker(_, server) => self.send(request, server, None),
            Admission::Full => {
                self.count("the queue is full");
                self.asked.remove(&request);
            }
            Admission::Waits(ticket) => {
                self.count("a request waits");
                self.place(request, Place::Waits(ticket));
                self.auditor.waits(request);
                self.at(QUEUE_TIMEOUT_MS, BalanceEvent::WaitOver(request));
            }
        }
    }

    fn place(&mut self, request: u64, place: Place) {
        if let Some(asked) = self.asked.get_mut(&request) {
            asked.place = place;
        }
    }

    /// Sends a request to a worker that was chosen for it, after it could not reach `tried`.
    fn send(&mut self, request: u64, server: usize, tried: Option<usize>) {
        self.place(request, Place::At(server));
        let Some(asked) = self.asked.get(&request) else { return };
        let retries = asked.retries;
        self.auditor.chosen(request, server, tried);
        let outcome = self.servers[server].outcome(&mut self.rng);
        if outcome.is_sent {
            self.auditor.sent(request, asked.is_repeatable);
        }
        self.servers[server].outcomes.insert(request, outcome);
        self.at(outcome.after_ms, BalanceEvent::Answer { request, server, retries });
    }

    /// A request ends at its worker: with an answer, without one, or before it was sent.
    fn answer(&mut self, request: u64, server: usize, retries: u32) {
        let is_there =
            |asked: &Asked| matches!(asked.place, Place::At(at) if at == server) && asked.retries == retries;
        if !self.asked.get(&request).is_some_and(is_there) {
            return;
        }
        let Some(outcome) = self.servers[server].outcomes.remove(&request) else { return };
        if outcome.is_answered {
            self.count("an answer");
            return self.end(request);
        }
        if !outcome.is_sent {
            // A worker that accepts no connection counts as one that failed a check.
            self.observe(server, Check::Failed);
        }
        let Some(asked) = self.asked.get_mut(&request) else { return };
        if !may_send_again(asked.retries, outcome.is_sent, asked.is_repeatable) {
            self.count("a request is lost");
            return self.end(request);
        }
        asked.retries += 1;
        self.count("a request is sent again");
        self.resend(request, server, outcome);
    }

    fn resend(&mut self, request: u64, server: usize, outcome: Outcome) {
        let key = self.servers[server].key;
        let is_serving = key.is_some_and(|key| self.balance.is_serving(key));
        if outcome.is_sent && is_serving {
            // Over another connection to the same worker, which it never left.
            self.auditor.left(request);
            return self.send(request, server, Some(server));
        }
        let other = key.and_then(|key| self.balance.another(key));
        self.leave_server(request, server);
        if let Some((_, other)) = other {
            self.send(request, other, Some(server));
        } else {
            self.place(request, Place::Pauses);
            self.at(SAME_WORKER_PAUSE_MS, BalanceEvent::Again(request));
        }
    }

    fn again(&mut self, request: u64) {
        if self.asked.get(&request).is_some_and(|asked| matches!(asked.place, Place::Pauses)) {
            self.admit(request);
        }
    }

    /// Ends a request, wherever it is.
    fn end(&mut self, request: u64) {
        let Some(asked) = self.asked.remove(&request) else { return };
        match asked.place {
            Place::Waits(ticket) => {
                self.balance.leave(ticket);
                self.auditor.no_longer_waits(request);
            }
            Place::At(server) => self.leave_server(request, server),
            Place::Pauses => {}
        }
    }

    fn leave_server(&mut self, request: u64, server: usize) {
        self.servers[server].outcomes.remove(&request);
        self.auditor.left(request);
        if let Some(key) = self.servers[server].key {
            self.balance.done(|| Millis(self.now), key);
        }
    }

    /// Gives waiting requests to workers with room, as the engine does after each change.
    fn settle(&mut self) {
        while let Some((ticket, _, server)) = self.balance.admit_next() {
            let is_it = |(_, asked): &(&u64, &Asked)| matches!(asked.place, Place::Waits(at) if at == ticket);
            let Some(request) = self.asked.iter().find(is_it).map(|(request, _)| *request) else {
                self.auditor.breaks(Rule::InOrder, "a request was chosen that does not wait".to_owned());
                continue;
            };
            self.count("a request was released");
            self.auditor.released(request);
            self.send(request, server, None);
        }
        let load = self.balance.load(Millis(self.now));
        self.auditor.after_each_event((load.queued_normal, load.running));
    }

    /// The result of a health check, or of a connection that was not accepted.
    fn observe(&mut self, server: usize, check: Check) {
        let Some(key) = self.servers[server].key else { return };
        self.balance.observe(Millis(self.now), key, check);
        self.auditor.checked(server, check);
    }

    fn check(&mut self, server: usize) {
        if self.servers[server].key.is_none() {
            return;
        }
        let check = self.servers[server].check(&mut self.rng);
        self.observe(server, check);
        self.at(CHECK_PAUSE_MS, BalanceEvent::Check(server));
    }

    /// A worker starts, changes, drains or exits, or the server restarts.
    fn change(&mut self) {
        if !self.is_faulty() {
            return;
        }
        let present: Vec<usize> =
            (0..self.servers.len()).filter(|server| self.servers[*server].key.is_some()).collect();
        match self.rng.range(0..=9) {
            0 if present.len() < 6 => self.start_server(),
            1..=2 if !present.is_empty() => {
                let server = *self.rng.pick(&present);
                self.count("a worker drains");
                self.drain(server);
                let after_ms = self.rng.skewed(1..=self.limits.drain_timeout_ms);
                self.servers[server].exits_at = Some(self.now + after_ms);
            }
            3 if !present.is_empty() => {
                let server = *self.rng.pick(&present);
                self.count("a worker dies");
                self.exit(server);
            }
            4 if self.rng.chance(0.3) => self.restart(),
            _ if !present.is_empty() => {
                let server = *self.rng.pick(&present);
                self.servers[server].mood = Mood::any(&mut self.rng);
            }
            _ => self.start_server(),
        }
        for server in present {
            if self.servers[server].exits_at.is_some_and(|at| at <= self.now) {
                self.exit(server);
            }
        }
        let pause_ms = self.rng.skewed(100..=20_000);
        self.at(pause_ms, BalanceEvent::Change);
    }

    fn start_server(&mut self) {
        let number = self.servers.len();
        let mood = if self.is_faulty() { Mood::any(&mut self.rng) } else { Mood::Good };
        self.servers.push(Server::with(mood));
        self.register(number);
    }

    fn register(&mut self, server: usize) {
        let key = self.balance.add(Millis(self.now), server);
        self.servers[server].key = Some(key);
        self.auditor.added(server);
        let after_ms = self.rng.range(0..=250);
        self.at(after_ms, BalanceEvent::Check(server));
    }

    fn drain(&mut self, server: usize) {
        if let Some(key) = self.servers[server].key {
            self.servers[server].is_drained = true;
            self.balance.drain(Millis(self.now), key);
            self.auditor.drained(server);
        }
    }

    /// Removes a worker. Its requests are lost.
    fn exit(&mut self, server: usize) {
        let Some(key) = self.servers[server].key.take() else { return };
        self.balance.remove(key);
        self.auditor.gone(server);
        let of = |asked: &Asked| matches!(asked.place, Place::At(at) if at == server);
        let lost: Vec<u64> =
            self.asked.iter().filter(|(_, asked)| of(asked)).map(|(number, _)| *number).collect();
        for request in lost {
            self.servers[server].outcomes.insert(request, Outcome::CLOSED);
            let retries = self.asked[&request].retries;
            self.answer(request, server, retries);
        }
    }

    /// The server ends and starts again: its requests are lost, and it adopts the workers.
    fn restart(&mut self) {
        self.count("the server restarts");
        self.balance = Balance::new(self.limits);
        self.asked.clear();
        self.auditor.restarted();
        for server in 0..self.servers.len() {
            self.servers[server].outcomes.clear();
            if self.servers[server].key.is_some() {
                self.register(server);
                if self.servers[server].is_drained {
                    self.drain(server);
                }
            }
        }
    }
}
