//! Tasks of the simulated world, grouped into processes whose tasks die together.
//!
//! Everything runs in one thread on tokio's single-threaded runtime with a paused clock: when no task can run, time
//! jumps to the next timer. A step is one poll of one task. Random runnable tasks are delayed, so that every seed
//! has its own order.

mod rounds;

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

use self::rounds::{Rounds, TaskFuture};
use crate::rng::Rng;

/// Counts steps and shuffles their order. Cheap to clone.
#[derive(Clone)]
pub struct Scheduler {
    shared: Arc<SchedulerState>,
}

struct SchedulerState {
    steps: AtomicU64,
    /// The step that a caller of `reach` waits for.
    target_step: AtomicU64,
    target_reached: Notify,
    /// Panics of this thread before the world began.
    panics_before: u64,
    /// Probability that a runnable task is delayed.
    delay_share: f64,
    rng: Mutex<Rng>,
    /// Decides the order in which tasks run; `None` for the order in which they were woken.
    rounds: Option<Arc<Rounds>>,
}

impl Scheduler {
    /// Creates a scheduler with a random probability of delays. Tasks run in the order in which they were woken.
    pub fn new(rng: &mut Rng) -> Self {
        Self::of(rng, None)
    }

    /// As [`Scheduler::new`], but tasks that are woken together run in the order of their starts. Must be called inside of the
    /// runtime of the world.
    pub fn in_rounds(rng: &mut Rng) -> Self {
        Self::of(rng, Some(Rounds::begin()))
    }

    fn of(rng: &mut Rng, rounds: Option<Arc<Rounds>>) -> Self {
        let delay_share = if rng.chance(0.2) { 0.0 } else { rng.range(1..=500) as f64 / 1_000.0 };
        let shared = SchedulerState {
            steps: AtomicU64::new(0),
            target_step: AtomicU64::new(u64::MAX),
            target_reached: Notify::new(),
            panics_before: count_panics(),
            delay_share,
            rng: Mutex::new(rng.fork()),
            rounds,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Number of polls so far.
    pub fn steps(&self) -> u64 {
        self.shared.steps.load(Ordering::Relaxed)
    }

    /// Returns after `steps` steps in total. Only one caller may wait.
    pub async fn reach(&self, steps: u64) {
        self.shared.target_step.store(steps, Ordering::Relaxed);
        while self.steps() < steps {
            self.shared.target_reached.notified().await;
        }
    }

    /// How often something panicked, also where the panic was caught: an actor catches those of its queue.
    pub fn panics(&self) -> u64 {
        count_panics() - self.shared.panics_before
    }

    /// Creates a process that dies only when it is killed.
    pub fn process(&self) -> Process {
        self.mortal_process(|| false)
    }

    /// Creates a process that calls `should_die` before each of its steps, and dies when it returns true.
    pub fn mortal_process(&self, should_die: impl Fn() -> bool + Send + Sync + 'static) -> Process {
        let state = ProcessState {
            tasks: self.clone(),
            should_die: Box::new(should_die),
            dead: AtomicBool::new(false),
            died: Notify::new(),
            living: Mutex::default(),
            paused: Mutex::default(),
        };
        Process { state: Arc::new(state) }
    }

    fn count_step(&self) {
        let step = self.shared.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if step == self.shared.target_step.load(Ordering::Relaxed) {
            self.shared.target_reached.notify_one();
        }
    }

    fn must_wait(&self) -> bool {
        self.shared.delay_share > 0.0 && lock(&self.shared.rng).chance(self.shared.delay_share)
    }
}

/// Tasks that die together. Cheap to clone.
#[derive(Clone)]
pub struct Process {
    state: Arc<ProcessState>,
}

struct ProcessState {
    tasks: Scheduler,
    should_die: Box<dyn Fn() -> bool + Send + Sync>,
    dead: AtomicBool,
    died: Notify,
    living: Mutex<Vec<AbortHandle>>,
    /// Whether the tasks stand still, with those that would run otherwise.
    paused: Mutex<Option<Vec<Waker>>>,
}

impl Process {
    /// Starts a task in this process; in a dead one it never runs.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let number = self.state.rounds().map_or(0, Rounds::number);
        let step = CountedTask { state: Arc::clone(&self.state), number, task: Some(Box::pin(task)) };
        let handle = tokio::spawn(step);
        if self.is_dead() {
            handle.abort();
        }
        let mut living = lock(&self.state.living);
        if living.len() == living.capacity() {
            living.retain(|task| !task.is_finished());
        }
        living.push(handle.abort_handle());
        drop(living);
        handle
    }

    /// Drops all tasks of the process.
    pub fn kill(&self) {
        self.state.kill();
    }

    /// Suspends the process, as `SIGSTOP` does: its tasks stand still, and time passes.
    pub fn pause(&self) {
        lock(&self.state.paused).get_or_insert_default();
    }

    /// Lets a suspended process go on.
    pub fn go_on(&self) {
        let waiting = lock(&self.state.paused).take().unwrap_or_default();
        waiting.iter().for_each(Waker::wake_by_ref);
    }

    /// Whether the process is suspended.
    pub fn is_paused(&self) -> bool {
        lock(&self.state.paused).is_some()
    }

    /// Whether the process was killed.
    pub fn is_dead(&self) -> bool {
        self.state.dead.load(Ordering::Relaxed)
    }

    /// Returns when the process is killed.
    pub async fn death(&self) {
        while !self.is_dead() {
            self.state.died.notified().await;
        }
    }
}

impl ProcessState {
    fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        let living = std::mem::take(&mut *lock(&self.living));
        living.iter().for_each(AbortHandle::abort);
        self.died.notify_waiters();
    }

    fn rounds(&self) -> Option<&Rounds> {
        self.tasks.shared.rounds.as_deref()
    }
}

/// A task whose polls count as steps of the world.
struct CountedTask {
    state: Arc<ProcessState>,
    /// The number of the task in its world; 0 without rounds.
    number: u64,
    /// `None` once it has ended.
    task: Option<TaskFuture>,
}

impl Future for CountedTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.state.rounds().is_some_and(|rounds| !rounds.admits(self.number, context.waker())) {
            return Poll::Pending;
        }
        if let Some(waiting) = &mut *lock(&self.state.paused) {
            waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        if self.state.tasks.must_wait() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if (self.state.should_die)() {
            self.state.kill();
        }
        if self.state.dead.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        self.state.tasks.count_step();
        let Some(task) = &mut self.task else { return Poll::Ready(()) };
        let polled = task.as_mut().poll(context);
        if polled.is_ready() {
            self.task = None;
        }
        polled
    }
}

impl Drop for CountedTask {
    fn drop(&mut self) {
        if let (Some(rounds), Some(task)) = (self.state.rounds(), self.task.take()) {
            rounds.bury(self.number, task);
        }
    }
}

/// How often this thread has panicked since it first asked. A world lives in one thread.
fn count_panics() -> u64 {
    thread_local! {
        static PANICS: Cell<u64> = const { Cell::new(0) };
    }
    static COUNTING: Once = Once::new();
    COUNTING.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            hook(panic);
        }));
    });
    PANICS.get()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
