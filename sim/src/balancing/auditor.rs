//! The rules of a load-balancing endpoint, from the specification and without a look into the balance.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longshore_fleet::Check;

/// The number of consecutive failed checks after which a worker gets no request.
const FAILURES_MAX: u32 = 3;
/// How often a request may be sent again.
const RETRIES_MAX: u32 = 2;

/// A rule that every world must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No request goes to a worker that drains or has exited.
    NotDraining,
    /// No request goes to a worker that is not healthy by its checks.
    Healthy,
    /// No worker has more requests than `maxConcurrency`.
    Concurrency,
    /// A request of which a part was sent is sent again only if its method permits that, and at most twice.
    SentOnce,
    /// A request goes to a worker with the fewest requests.
    LeastBusy,
    /// Waiting requests get workers in order of their arrival.
    InOrder,
    /// No request waits while a worker has room, or after its wait is over.
    NoneForgotten,
    /// The numbers of waiting and outstanding requests are right.
    Counted,
}

/// A rule of load balancing that the world broke, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// When, in ms of the world.
    pub at: u64,
    /// The rule that was broken.
    pub rule: Rule,
    /// What the auditor saw, in words: the request, the server and the state.
    pub text: String,
}

/// What is known of a worker from its checks.
#[derive(Debug, Default)]
struct Seen {
    /// Whether the last check that was answered was answered by 200.
    was_healthy: bool,
    failures: u32,
    is_drained: bool,
    outstanding: u32,
}

impl Seen {
    fn is_healthy(&self) -> bool {
        self.was_healthy && self.failures < FAILURES_MAX
    }
}

/// Checks the rules while a world runs.
#[derive(Debug)]
pub(super) struct BalanceAuditor {
    /// The time in ms.
    pub(super) now: u64,
    pub(super) violations: Vec<BrokenRule>,
    max_concurrency: u32,
    /// The workers that have not exited.
    servers: BTreeMap<usize, Seen>,
    /// The workers of the requests that are at one.
    at: BTreeMap<u64, usize>,
    waiting: VecDeque<u64>,
    /// How often a part of a request was sent.
    sent: BTreeMap<u64, u32>,
}

impl BalanceAuditor {
    /// An auditor of an endpoint with this `maxConcurrency`; 0: no limit.
    pub(super) fn new(max_concurrency: u32) -> Self {
        let (servers, at, sent) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { now: 0, violations: Vec::new(), max_concurrency, servers, at, waiting: VecDeque::new(), sent }
    }

    pub(super) fn breaks(&mut self, rule: Rule, text: String) {
        self.violations.push(BrokenRule { at: self.now, rule, text });
    }

    pub(super) fn added(&mut self, server: usize) {
        self.servers.insert(server, Seen::default());
    }

    pub(super) fn drained(&mut self, server: usize) {
        if let Some(seen) = self.servers.get_mut(&server) {
            seen.is_drained = true;
        }
    }

    pub(super) fn gone(&mut self, server: usize) {
        self.servers.remove(&server);
    }

    pub(super) fn checked(&mut self, server: usize, check: Check) {
        let Some(seen) = self.servers.get_mut(&server) else { return };
        match check {
            Check::Failed => seen.failures += 1,
            Check::Healthy | Check::Initializing => {
                seen.failures = 0;
                seen.was_healthy = check == Check::Healthy;
            }
        }
        if seen.failures >= FAILURES_MAX {
            seen.was_healthy = false;
        }
    }

    pub(super) fn waits(&mut self, request: u64) {
        self.waiting.push_back(request);
    }

    pub(super) fn no_longer_waits(&mut self, request: u64) {
        self.waiting.retain(|waiting| *waiting != request);
    }

    pub(super) fn released(&mut self, request: u64) {
        if self.waiting.front() != Some(&request) {
            let text = format!("request {request} before {:?}", self.waiting.front());
            self.breaks(Rule::InOrder, text);
        }
        self.no_longer_waits(request);
    }

    /// A worker was chosen for a request, which could not reach `tried` before.
    pub(super) fn chosen(&mut self, request: u64, server: usize, tried: Option<usize>) {
        let fewest = self.with_room(tried).map(|(_, seen)| seen.outstanding).min();
        let what = format!("request {request} to worker {server}");
        let Some(seen) = self.servers.get_mut(&server) else {
            return self.breaks(Rule::NotDraining, format!("{what}, which has exited"));
        };
        let outstanding = seen.outstanding;
        let is_full = self.max_concurrency > 0 && outstanding >= self.max_concurrency;
        let (is_drained, is_healthy) = (seen.is_drained, seen.is_healthy());
        seen.outstanding += 1;
        self.at.insert(request, server);
        if is_drained {
            self.breaks(Rule::NotDraining, what);
        } else if !is_healthy {
            self.breaks(Rule::Healthy, what);
        } else if is_full {
            self.breaks(Rule::Concurrency, what);
        } else if tried != Some(server) && fewest.is_some_and(|fewest| fewest < outstanding) {
            self.breaks(Rule::LeastBusy, format!("{what} with {outstanding}, another one has {fewest:?}"));
        }
    }

    /// The workers that may get a request, but for one.
    fn with_room(&self, except: Option<usize>) -> impl Iterator<Item = (&usize, &Seen)> {
        let max = self.max_concurrency;
        let may =
            move |seen: &Seen| !seen.is_drained && seen.is_healthy() && (max == 0 || seen.outstanding < max);
        self.servers.iter().filter(move |(server, seen)| Some(**server) != except && may(seen))
    }

    /// A part of the request was sent.
    pub(super) fn sent(&mut self, request: u64, is_repeatable: bool) {
        let times = self.sent.entry(request).or_default();
        *times += 1;
        let times = *times;
        if times > 1 && !is_repeatable || times > RETRIES_MAX + 1 {
            self.breaks(Rule::SentOnce, format!("request {request} was sent {times} times"));
        }
    }

    /// A request is no longer at its worker.
    pub(super) fn left(&mut self, request: u64) {
        let Some(server) = self.at.remove(&request) else { return };
        if let Some(seen) = self.servers.get_mut(&server) {
            seen.outstanding -= 1;
        }
    }

    /// The server has ended: nothing waits, and no worker has a request or was checked.
    pub(super) fn restarted(&mut self) {
        self.servers.clear();
        self.at.clear();
        self.waiting.clear();
    }

    /// Compares the numbers `(waiting, outstanding)` of the balance, and looks for a forgotten request.
    pub(super) fn after_each_event(&mut self, counted: (u64, u64)) {
        let outstanding: u32 = self.servers.values().map(|seen| seen.outstanding).sum();
        let own = (self.waiting.len() as u64, u64::from(outstanding));
        if counted != own {
            self.breaks(Rule::Counted, format!("{counted:?}, and there are {own:?}"));
        }
        let room: BTreeSet<usize> = self.with_room(None).map(|(server, _)| *server).collect();
        if let (Some(first), false) = (self.waiting.front(), room.is_empty()) {
            self.breaks(Rule::NoneForgotten, format!("request {first} waits, and {room:?} have room"));
        }
    }

    /// Nothing may be left at the end of a world.
    pub(super) fn at_the_end(&mut self, left: impl Iterator<Item = u64>) {
        let left: Vec<u64> = left.collect();
        if !left.is_empty() {
            self.breaks(Rule::NoneForgotten, format!("requests {left:?} never ended"));
        }
    }
}
