//! Random worlds of workers and requests, checked against rules that share no code with the balance.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const LIMITS: BalanceLimits = BalanceLimits { max_concurrency: 2, queue_max: 3, drain_timeout_ms: 1_000 };

fn healthy(balance: &mut Balance<u32>, worker: u32) -> WorkerKey {
    let key = balance.add(Millis(0), worker);
    balance.observe(Millis(0), key, Check::Healthy);
    key
}

fn chosen(balance: &mut Balance<u32>) -> u32 {
    match balance.request(Millis(0)) {
        Admission::Worker(_, worker) => worker,
        other => panic!("{other:?}"),
    }
}

#[test]
fn equally_busy_workers_take_turns_and_the_least_busy_one_is_first() {
    let mut balance = Balance::new(BalanceLimits { max_concurrency: 0, ..LIMITS });
    let keys: Vec<_> = (0..3).map(|worker| healthy(&mut balance, worker)).collect();
    let order: Vec<_> = (0..7).map(|_| chosen(&mut balance)).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    balance.done(|| Millis(1), keys[2]);
    balance.done(|| Millis(1), keys[2]);
    assert_eq!((chosen(&mut balance), chosen(&mut balance)), (2, 2));
    assert_eq!((balance.busy(), balance.load(Millis(1)).running), (3, 7));
}

#[test]
fn requests_wait_in_order_until_a_worker_is_healthy() {
    let mut balance = Balance::new(LIMITS);
    let key = balance.add(Millis(0), 7);
    let tickets: Vec<_> = (0..3).map(|ms| balance.request(Millis(ms))).collect();
    assert_eq!(balance.request(Millis(3)), Admission::Full);
    assert_eq!(balance.admit_next(), None);
    assert_eq!(balance.load(Millis(10)).oldest_normal_wait_ms, 10);
    let Admission::Waits(second) = tickets[1] else { panic!("{tickets:?}") };
    balance.leave(second);
    balance.leave(second);
    assert_eq!(balance.observe(Millis(10), key, Check::Healthy), Some(WorkerHealth::Healthy));
    let released: Vec<_> =
        core::iter::from_fn(|| balance.admit_next()).map(|(ticket, ..)| Admission::Waits(ticket)).collect();
    assert_eq!(released, [tickets[0].clone(), tickets[2].clone()]);
}

#[test]
fn a_drained_worker_keeps_its_requests_until_the_drain_timeout() {
    let mut balance = Balance::new(LIMITS);
    let key = healthy(&mut balance, 1);
    chosen(&mut balance);
    balance.drain(Millis(10), key);
    balance.drain(Millis(500), key);
    assert!(matches!(balance.request(Millis(10)), Admission::Waits(_)));
    let outstanding = |now| balance.workers(Millis(now)).map(|(_, seen)| seen.outstanding).sum::<u32>();
    assert_eq!((outstanding(1_009), outstanding(1_010)), (1, 0));
}

#[test]
fn another_worker_is_never_the_one_that_was_tried() {
    let mut balance = Balance::new(LIMITS);
    let first = healthy(&mut balance, 1);
    assert_eq!(balance.another(first), None);
    let second = healthy(&mut balance, 2);
    assert_eq!(balance.another(first), Some((second, 2)));
    assert_eq!(balance.another(second), Some((first, 1)));
}

/// One event of a random world. The numbers choose a worker or a request among those that there are.
#[derive(Clone, Debug)]
enum Event {
    Add,
    Remove(usize),
    Drain(usize),
    Check(usize, Check),
    Request,
    Done(usize),
    Leave(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let check = prop_oneof![Just(Check::Healthy), Just(Check::Initializing), Just(Check::Failed)];
    let event = prop_oneof![
        1 => Just(Event::Add),
        1 => any::<usize>().prop_map(Event::Remove),
        1 => any::<usize>().prop_map(Event::Drain),
        6 => (any::<usize>(), check).prop_map(|(place, check)| Event::Check(place, check)),
        8 => Just(Event::Request),
        6 => any::<usize>().prop_map(Event::Done),
        2 => any::<usize>().prop_map(Event::Leave),
    ];
    prop::collection::vec(event, 0..120)
}

/// What the auditor knows of a worker.
#[derive(Debug, Default)]
struct Known {
    failures: u32,
    is_healthy: bool,
    is_drained: bool,
    outstanding: u32,
}

/// A world and its auditor.
struct World {
    balance: Balance<u32>,
    workers: BTreeMap<WorkerKey, Known>,
    waiting: VecDeque<Ticket>,
    outstanding: Vec<WorkerKey>,
}

impl World {
    fn given(&mut self, key: WorkerKey) {
        let least = self.workers.values().filter(|w| has_room(w)).map(|w| w.outstanding).min();
        let worker = self.workers.get_mut(&key).expect("a worker that is there");
        assert!(has_room(worker), "a request for a worker that is drained, unhealthy or full: {worker:?}");
        assert_eq!(Some(worker.outstanding), least, "another worker has fewer requests");
        worker.outstanding += 1;
        self.outstanding.push(key);
    }

    fn happen(&mut self, now: Millis, event: &Event) {
        let nth = |place: usize, count: usize| (count > 0).then(|| place % count);
        let worker = |world: &Self, place| {
            nth(place, world.workers.len()).and_then(|n| world.workers.keys().nth(n).copied())
        };
        match event {
            Event::Add => {
                let key = self.balance.add(now, 0);
                self.workers.insert(key, Known::default());
            }
            Event::Remove(place) => {
                let Some(key) = worker(self, *place) else { return };
                self.balance.remove(key);
                self.workers.remove(&key);
            }
            Event::Drain(place) => {
                let Some(key) = worker(self, *place) else { return };
                self.balance.drain(now, key);
                self.workers.get_mut(&key).unwrap().is_drained = true;
            }
            Event::Check(place, check) => {
                let Some(key) = worker(self, *place) else { return };
                self.balance.observe(now, key, *check);
                let known = self.workers.get_mut(&key).unwrap();
                known.failures = if *check == Check::Failed { known.failures + 1 } else { 0 };
                known.is_healthy = *check == Check::Healthy
                    || (*check == Check::Failed && known.is_healthy && known.failures < 3);
            }
            Event::Request => match self.balance.request(now) {
                Admission::Worker(key, _) => {
                    assert!(self.waiting.is_empty(), "an earlier request waits");
                    self.given(key);
                }
                Admission::Waits(ticket) => self.waiting.push_back(ticket),
                Admission::Full => assert_eq!(self.waiting.len(), LIMITS.queue_max),
            },
            Event::Done(place) => {
                let Some(n) = nth(*place, self.outstanding.len()) else { return };
                let key = self.outstanding.remove(n);
                self.balance.done(|| now, key);
                if let Some(known) = self.workers.get_mut(&key) {
                    known.outstanding -= 1;
                }
            }
            Event::Leave(place) => {
                let Some(n) = nth(*place, self.waiting.len()) else { return };
                let ticket = self.waiting.remove(n).unwrap();
                self.balance.leave(ticket);
            }
        }
    }

    /// Gives waiting requests to workers, and checks that none is forgotten.
    fn settle(&mut self) {
        while let Some((ticket, key, _)) = self.balance.admit_next() {
            assert_eq!(self.waiting.pop_front(), Some(ticket), "not in order of arrival");
            self.given(key);
        }
        assert!(self.waiting.is_empty() || !self.workers.values().any(has_room), "a waiter is forgotten");
        let load = self.balance.load(Millis(0));
        assert_eq!(load.queued_normal, self.waiting.len() as u64);
        assert_eq!(load.running, self.workers.values().map(|w| u64::from(w.outstanding)).sum::<u64>());
        assert_eq!(self.balance.busy(), self.workers.values().filter(|w| w.outstanding > 0).count() as u32);
    }
}

fn has_room(worker: &Known) -> bool {
    worker.is_healthy && !worker.is_drained && worker.outstanding < LIMITS.max_concurrency
}

proptest! {
    #[test]
    fn no_request_is_forgotten_or_given_to_a_worker_without_room(events in events()) {
        let balance = Balance::new(LIMITS);
        let mut world =
            World { balance, workers: BTreeMap::new(), waiting: VecDeque::new(), outstanding: Vec::new() };
        for (ms, event) in events.iter().enumerate() {
            world.happen(Millis(ms as u64), event);
            world.settle();
        }
    }
}
