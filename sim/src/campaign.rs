//! Runs many worlds on all cores.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::auditor::Transition;
use crate::faults::Fault;
use crate::run::{self, WorldKind, WorldResult};

/// Interval of progress lines, on a terminal and in a file.
const SHOW_EVERY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

/// The results of many worlds.
#[derive(Default)]
pub struct Summary {
    /// Number of worlds that were run.
    pub worlds: u64,
    /// Steps of all worlds together.
    pub steps: u64,
    /// Simulated milliseconds of all worlds together.
    pub ms: u64,
    /// How often each kind of fault was injected.
    pub faults: BTreeMap<Fault, u64>,
    /// How often each promise was checked.
    pub checked: BTreeMap<&'static str, u64>,
    /// How often each transition of a job's state was observed.
    pub transitions: BTreeMap<Transition, u64>,
    /// Results of the worlds with a broken promise.
    pub failed: Vec<WorldResult>,
}

impl Summary {
    /// Adds the result of one world.
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
        for (transition, count) in &outcome.transitions {
            *self.transitions.entry(*transition).or_default() += count;
        }
        if !outcome.violations.is_empty() {
            self.failed.push(outcome);
        }
    }
}

/// The worlds to run.
pub struct Campaign {
    /// What answers in the worlds.
    pub kind: WorldKind,
    /// Seed of the first world; the others have the following seeds.
    pub first_seed: u64,
    /// Number of worlds to run.
    pub worlds: u64,
    /// Steps of each world until the faults stop.
    pub steps: u64,
    /// Number of failed worlds after which the campaign stops.
    pub failures_max: usize,
}

/// Runs all worlds and prints progress to standard error.
pub fn run_campaign(plan: &Campaign) -> Summary {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let summary = Mutex::new(Summary::default());
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.worlds {
                return;
            }
            let outcome =
                run::run_world_of(plan.kind, &[], plan.first_seed.wrapping_add(number), plan.steps, false);
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
        // A closed standard error does not stop the worlds.
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
