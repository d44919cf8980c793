//! Many worlds, on every core, one after another.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::auditor::Transition;
use crate::faults::Fault;
use crate::run::{self, WorldResult};

/// How often progress is shown to a person, and to a file.
const SHOW_EVERY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

/// What became of many worlds.
#[derive(Default)]
pub struct Summary {
    /// How many there were.
    pub worlds: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// Simulated milliseconds of all of them.
    pub ms: u64,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<Fault, u64>,
    /// How often each promise was checked.
    pub checked: BTreeMap<&'static str, u64>,
    /// How often each edge of a job's life was taken.
    pub edges: BTreeMap<Transition, u64>,
    /// Those in which something was not as promised.
    pub failed: Vec<WorldResult>,
}

impl Summary {
    /// Counts another world.
    pub fn add(&mut self, outcome: WorldResult) {
        self.worlds += 1;
        self.steps += outcome.steps;
        self.ms += outcome.ms;
        for (fault, count) in &outcome.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (promise, count) in &outcome.checked {
            *self.checked.entry(promise).or_default() += count;
        }
        for (edge, count) in &outcome.edges {
            *self.edges.entry(*edge).or_default() += count;
        }
        if !outcome.violations.is_empty() {
            self.failed.push(outcome);
        }
    }
}

/// Which worlds, and how long.
pub struct Campaign {
    /// The seed of the first; the others follow.
    pub first_seed: u64,
    /// How many.
    pub worlds: u64,
    /// Steps of each before it calms down.
    pub steps: u64,
    /// Stop after so many failed ones.
    pub failures_max: usize,
}

/// Lives through all of them, showing how far it is on standard error.
pub fn run_campaign(plan: &Campaign) -> Summary {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let summary = Mutex::new(Summary::default());
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.worlds {
                return;
            }
            let outcome = run::run_world(plan.first_seed.wrapping_add(number), plan.steps, false);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.add(outcome);
            over.fetch_or(summary.failed.len() >= plan.failures_max, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        show_progress(plan, &summary, || workers.iter().all(thread::ScopedJoinHandle::is_finished));
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn show_progress(plan: &Campaign, summary: &Mutex<Summary>, is_over: impl Fn() -> bool) {
    let is_person = std::io::stderr().is_terminal();
    let (began, every) = (Instant::now(), SHOW_EVERY[usize::from(!is_person)]);
    let mut shown = Instant::now();
    while !is_over() {
        thread::sleep(SHOW_EVERY[0].min(Duration::from_millis(50)));
        if shown.elapsed() < every {
            continue;
        }
        shown = Instant::now();
        let (worlds, steps, failed) = {
            let summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            (summary.worlds, summary.steps, summary.failed.len())
        };
        let rate = steps as f64 / began.elapsed().as_secs_f64();
        let line = format!("{} {steps} steps, {rate:.0}/s, {failed} failed", bar(worlds, plan.worlds));
        let end = if is_person { '\r' } else { '\n' };
        // Nobody reads: the worlds go on all the same.
        let _ = write!(std::io::stderr(), "{line}{end}");
    }
    if is_person {
        let _ = writeln!(std::io::stderr());
    }
}

fn bar(done: u64, all: u64) -> String {
    const WIDTH: u64 = 30;
    let filled = (done * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let cells: String = (0..WIDTH).map(|cell| if cell < filled { '#' } else { '.' }).collect();
    format!("[{cells}] {done}/{all} worlds")
}
