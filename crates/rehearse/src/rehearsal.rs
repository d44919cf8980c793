//! The replay: events in the order of time, each given to the queue, and a plan after each change of the load.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use longshore_fleet::{Backoff, FleetLoad, IdleGaps, PlannedWorker, ScalingRules, Step, plan};
use longshore_model::{Counters, EndpointNo, JobId, JobRow, Millis, Submitter, WorkerId};
use longshore_queue::{Effects, Queue, QueueSettings, Report, Signal, Submit, Take};

use crate::{Outcome, Quantiles, Trace};

/// The shortest time between two plans that only a change of the load causes, as in the server.
const PLAN_INTERVAL_MS: u64 = 50;
/// Plans in a row until one has no step.
const PASSES_MAX: u32 = 16;
/// The settings of the queue: no limit is met, and an ended job is soon forgotten.
const QUEUE: QueueSettings = QueueSettings {
    paused: false,
    execution_timeout_ms: u32::MAX as u64,
    max_retries: 0,
    retry_handler_errors: false,
    retention_ms: 60_000,
    sync_retention_ms: 60_000,
    output_bytes_max: u64::MAX,
    sync_output_bytes_max: u64::MAX,
    jobs_max: u64::MAX,
    lease_ms: 30_000,
    stop_grace_ms: 1_000,
};
/// The bits of a job's id that say which arrival it is.
const ARRIVAL_BITS: u128 = (1 << 62) - 1;

/// What a trace is replayed with.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The endpoint's scaling settings.
    pub rules: ScalingRules,
    /// How long a worker takes from its start to its first take.
    pub starts: Quantiles,
    /// Where the random start times begin.
    pub seed: u64,
}

/// Replays the trace. The same arguments give the same outcome.
///
/// Without jobs before it, the trace begins with `workersMin` workers being started. It ends when all of its jobs have ended,
/// but not before [`Trace::until`]; workers that are left then count up to that time.
pub fn rehearse(trace: &Trace, conditions: &Conditions) -> Outcome {
    let mut rehearsal = Rehearsal::new(trace, conditions);
    while let Some(event) = rehearsal.next_event() {
        rehearsal.handle(event);
    }
    rehearsal.finish()
}

/// A worker that runs or is being started.
struct Worker {
    number: u32,
    started_at: Millis,
    /// The number of jobs that it can take.
    free: u32,
    /// Since when it has had a job; `None` if it has none.
    busy_since: Option<Millis>,
    is_parked: bool,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The next arrival of the trace is submitted.
    Arrival,
    /// A worker that was started sends its first take.
    Ready(u32),
    /// A worker ends the job of an arrival.
    Done(u32, JobId),
    /// The queue's next deadline.
    Tick,
    /// A plan is due.
    Plan,
    /// The trace and its last job are over.
    End,
}

struct Rehearsal<'a> {
    trace: &'a Trace,
    conditions: &'a Conditions,
    rng: fastrand::Rng,
    now: Millis,
    queue: Queue,
    effects: Effects,
    /// The arrival that is submitted next.
    next_arrival: usize,
    due: BinaryHeap<Reverse<(Millis, Due)>>,
    workers: HashMap<WorkerId, Worker>,
    /// The workers that wait for a job, the longest first.
    parked: VecDeque<WorkerId>,
    gaps: IdleGaps,
    planned_at: Option<Millis>,
    plan_at: Option<Millis>,
    outcome: Outcome,
}

impl<'a> Rehearsal<'a> {
    fn new(trace: &'a Trace, conditions: &'a Conditions) -> Self {
        let paused = conditions.rules.workers_max == 0;
        Self {
            trace,
            conditions,
            rng: fastrand::Rng::with_seed(conditions.seed),
            now: trace.from(),
            queue: Queue::new(EndpointNo(1), QueueSettings { paused, ..QUEUE }, Counters::default()),
            effects: Effects::default(),
            next_arrival: 0,
            due: BinaryHeap::new(),
            workers: HashMap::new(),
            parked: VecDeque::new(),
            gaps: IdleGaps::default(),
            planned_at: None,
            plan_at: Some(trace.from()),
            outcome: Outcome { jobs: trace.arrivals().len() as u64, ..Outcome::default() },
        }
    }

    /// Moves the clock to the next event; `None` if the trace and its last job are over.
    fn next_event(&mut self) -> Option<Due> {
        let arrival = self.trace.arrivals().get(self.next_arrival).map(|arrival| (arrival.at, Due::Arrival));
        let due = self.due.peek().map(|Reverse(due)| *due);
        let tick = self.queue.next_deadline().map(|at| (at, Due::Tick));
        let plan = self.plan_at.map(|at| (at, Due::Plan));
        let load = self.queue.load();
        let is_over = arrival.is_none() && load.queued + load.running == 0;
        let end = is_over.then(|| (self.trace.until().max(self.now), Due::End));
        let (at, event) = [arrival, due, tick, plan, end].into_iter().flatten().min()?;
        self.now = self.now.max(at);
        match event {
            Due::End => return None,
            Due::Ready(_) | Due::Done(..) => drop(self.due.pop()),
            Due::Plan => self.plan_at = None,
            Due::Arrival | Due::Tick => {}
        }
        Some(event)
    }

    fn handle(&mut self, event: Due) {
        match event {
            Due::Arrival => self.submit(),
            Due::Ready(number) => self.ready(&worker_id(number)),
            Due::Done(number, job) => self.done(&worker_id(number), job),
            Due::Tick => self.queue.tick(self.now, &mut self.effects),
            Due::Plan => self.plan(),
            Due::End => {}
        }
        self.settle();
    }

    /// Handles the signals of the last verb, and of those that it causes.
    fn settle(&mut self) {
        while !self.effects.signals.is_empty() {
            for signal in std::mem::take(&mut self.effects.signals) {
                match signal {
                    Signal::JobReady => self.deliver(),
                    Signal::LoadChanged => {
                        let soonest =
                            self.planned_at.map_or(self.now, |at| self.now.max(at + PLAN_INTERVAL_MS));
                        self.plan_at = Some(self.plan_at.map_or(soonest, |at| at.min(soonest)));
                    }
                    _ => {}
                }
            }
        }
        self.effects.changes.clear();
    }

    fn submit(&mut self) {
        let submit = Submit {
            id: JobId::mint_at(self.now.0 << 12, self.next_arrival as u64, false),
            input_bytes: 0,
            low_priority: false,
            webhook: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter: Submitter::default(),
            trace: None,
        };
        self.next_arrival += 1;
        // Neither a limit nor an earlier job with the same id can refuse it.
        let _ = self.queue.submit(self.now, submit, &mut self.effects);
    }

    /// The first take of a worker.
    fn ready(&mut self, id: &WorkerId) {
        // A worker that was stopped while it started takes nothing.
        if self.workers.contains_key(id) {
            self.take(id);
        }
    }

    fn done(&mut self, id: &WorkerId, job: JobId) {
        self.queue.report(self.now, id, job, Report::Completed { output_bytes: 0 }, &mut self.effects);
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.free += 1;
        if worker.free >= self.conditions.concurrency() {
            let since = worker.busy_since.take().unwrap_or(self.now);
            self.outcome.busy_ms += self.now.since(since);
        }
        self.take(id);
    }

    /// Gives jobs to the parked workers, as long as there are some.
    fn deliver(&mut self) {
        while let Some(id) = self.parked.pop_front() {
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.is_parked = false;
                if !self.take(&id) {
                    // `take` parked it at the end; its place is at the front.
                    self.parked.rotate_right(1);
                    break;
                }
            }
        }
    }

    /// Sends a take of a worker, and parks the worker if it has room for more jobs. Returns whether it got one.
    fn take(&mut self, id: &WorkerId) -> bool {
        let Some(worker) = self.workers.get_mut(id) else { return false };
        let take = Take {
            worker: id.clone(),
            slots: worker.free,
            says_busy: Some(worker.busy_since.is_some()),
            overlapping: false,
            address: None,
            gpu: None,
            input_bytes_max: u64::MAX,
        };
        let rows = self.queue.take(self.now, &take, &mut self.effects);
        for row in &rows {
            let arrival = self.trace.arrivals()[arrival_of(row)];
            self.outcome.waits_ms.push(self.now.since(arrival.at));
            self.due.push(Reverse((self.now + arrival.run_ms, Due::Done(worker.number, row.id))));
        }
        if !rows.is_empty() {
            worker.free -= rows.len() as u32;
            worker.busy_since.get_or_insert(self.now);
        }
        if worker.free > 0 && !worker.is_parked {
            worker.is_parked = true;
            self.parked.push_back(id.clone());
        }
        !rows.is_empty()
    }

    /// Plans until a plan has no step, and takes the steps.
    fn plan(&mut self) {
        self.planned_at = Some(self.now);
        for _ in 0..PASSES_MAX {
            let (steps, look_at) = self.steps();
            if steps.is_empty() {
                self.plan_at = look_at;
                return;
            }
            for step in steps {
                self.act(step);
            }
        }
        self.plan_at = Some(self.now + PLAN_INTERVAL_MS);
    }

    /// The steps of a plan for the present load, and when the next plan is due without a change.
    fn steps(&mut self) -> (Vec<Step>, Option<Millis>) {
        let load = self.queue.load();
        let load = FleetLoad {
            queued_normal: load.queued_normal,
            running: load.running,
            oldest_normal_wait_ms: load.oldest_normal_since.map_or(0, |since| self.now.since(since)),
        };
        let (mut idle_ms, mut present) = (None, Vec::with_capacity(self.workers.len()));
        for worker in self.queue.worker_loads() {
            let planned = PlannedWorker {
                version: Some(self.conditions.rules.version),
                phase: worker.phase,
                running: worker.running,
                idle_ms: if worker.running > 0 { 0 } else { self.now.since(worker.idle_since) },
                is_late: false,
                id: worker.id,
            };
            if worker.jobs_done > 0 {
                idle_ms = Some(idle_ms.map_or(planned.idle_ms, |least: u64| least.min(planned.idle_ms)));
            }
            present.push(planned);
        }
        self.gaps.observe(self.now, &load, idle_ms);
        let rules = self.conditions.rules.after(&self.gaps);
        let plan = plan(self.now, &rules, &load, &present, &Backoff::default(), 0);
        (plan.steps, plan.look_at)
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Start => self.start(),
            Step::Drain(id, _) => self.queue.drain_worker(&id, &mut self.effects),
            Step::Stop(id) => {
                self.queue.lose_worker(self.now, &id, false, "", &mut self.effects);
                self.parked.retain(|parked| *parked != id);
                if let Some(worker) = self.workers.remove(&id) {
                    self.count(&worker);
                }
            }
        }
    }

    fn start(&mut self) {
        let number = self.outcome.starts as u32;
        let id = worker_id(number);
        self.outcome.starts += 1;
        self.queue.register_worker(self.now, &id, &mut self.effects);
        let start_ms = self.conditions.starts.sample(&mut self.rng);
        self.due.push(Reverse((self.now + start_ms, Due::Ready(number))));
        let free = self.conditions.concurrency();
        let worker = Worker { number, started_at: self.now, free, busy_since: None, is_parked: false };
        self.workers.insert(id, worker);
        self.outcome.workers_most = self.outcome.workers_most.max(self.workers.len() as u32);
    }

    /// Counts the time of a worker that ends now.
    fn count(&mut self, worker: &Worker) {
        self.outcome.paid_ms += self.now.since(worker.started_at);
        self.outcome.busy_ms += worker.busy_since.map_or(0, |since| self.now.since(since));
    }

    fn finish(mut self) -> Outcome {
        for worker in std::mem::take(&mut self.workers).into_values() {
            self.count(&worker);
        }
        self.outcome.waits_ms.sort_unstable();
        self.outcome.expired = self.outcome.jobs - self.outcome.waits_ms.len() as u64;
        self.outcome
    }
}

impl Conditions {
    /// The number of jobs that a worker runs at a time, at least 1.
    fn concurrency(&self) -> u32 {
        u32::try_from(self.rules.max_concurrency.max(1)).unwrap_or(u32::MAX)
    }
}

/// The id of the worker that was started as this one.
fn worker_id(number: u32) -> WorkerId {
    let Ok(id) = format!("w{number}").parse() else { unreachable!("letters and digits are an id") };
    id
}

/// The number of the arrival that was submitted as this job.
fn arrival_of(row: &JobRow) -> usize {
    (u128::from_be_bytes(row.id.raw()) & ARRIVAL_BITS) as usize
}

#[cfg(test)]
mod tests;
