//! One worker process with the tasks of the SDK: one takes jobs, one asks what to stop, one pings, and one runs per
//! job.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::environment::Environment;
use super::foreign_jobs::ForeignJobs;
use super::job;
use super::profile::{WorkerFate, WorkerProfile};
use crate::faults::Fault;
use crate::observation::{HttpRequest, HttpResponse, Observation, Party};
use crate::raw_http::get;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Jobs that a worker remembers after releasing them.
const PAST_KEPT: usize = 16;
/// Longest pause after an invalid response, in ms. The real SDK retries immediately, thousands of times per second,
/// which would dominate the simulation.
const RETRY_PAUSE_MS_MAX: u64 = 1_000;

/// How long a worker with failed checks waits for a response before it ends.
const UNFIT_PATIENCE: Duration = Duration::from_secs(2);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code, unless a signal ended the process.
    pub code: Option<i32>,
    /// The signal that ended the process, if any.
    pub signal: Option<i32>,
}

/// A worker process as its computer sees it. Cheap to clone.
#[derive(Clone)]
pub struct Worker {
    pub(super) sdk: Arc<Sdk>,
}

/// The state of a worker process.
pub(super) struct Sdk {
    pub(super) world: World,
    pub(super) env: Environment,
    pub(super) profile: WorkerProfile,
    pub(super) process: Process,
    pub(super) foreign_jobs: ForeignJobs,
    pub(super) rng: Mutex<Rng>,
    state: Mutex<WorkerState>,
    /// Notified when slots or the request to end change.
    changed: Notify,
    /// Not a `watch` channel, which wakes several waiters in an unspecified order.
    ended: Notify,
}

#[derive(Default)]
struct WorkerState {
    running: BTreeMap<u64, Run>,
    past: VecDeque<Arc<str>>,
    runs: u64,
    phase: Phase,
    hangs: bool,
    paused_until: Option<Instant>,
    /// Whether the computer sent SIGTERM.
    asked: bool,
    ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Does not handle signals yet.
    #[default]
    Booting,
    Working,
    /// Takes no further jobs and ends after the last one.
    Ending,
}

/// A job that occupies a slot.
struct Run {
    job: Arc<str>,
    stop: Arc<Notify>,
    /// Whether the handler runs; otherwise the result is in flight.
    in_handler: bool,
}

impl Worker {
    /// Starts a worker of an endpoint with this environment.
    pub fn start(
        world: &World,
        rng: &mut Rng,
        foreign_jobs: &ForeignJobs,
        endpoint: &str,
        variables: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let env = Environment::read(variables)?;
        let mut rng = rng.fork();
        world.record.observe(&Observation::WorkerStarted(env.worker.clone(), endpoint.to_owned()));
        let sdk = Arc::new(Sdk {
            world: world.clone(),
            profile: WorkerProfile::draw(&mut rng),
            process: world.tasks.process(),
            foreign_jobs: foreign_jobs.clone(),
            rng: Mutex::new(rng),
            state: Mutex::default(),
            changed: Notify::new(),
            ended: Notify::new(),
            env,
        });
        let main = Arc::clone(&sdk);
        sdk.process.spawn(async move { main.run().await });
        Some(Self { sdk })
    }

    /// Sends SIGTERM to the process.
    pub fn terminate(&self) {
        let sdk = &self.sdk;
        let mut state = sdk.state();
        state.asked = true;
        if state.hangs {
            return;
        }
        if state.phase == Phase::Booting || sdk.profile.ends_at_once {
            drop(state);
            sdk.end(Ending { code: None, signal: Some(15) });
            return;
        }
        state.phase = Phase::Ending;
        drop(state);
        sdk.changed.notify_waiters();
    }

    /// Sends SIGKILL to the process.
    pub fn kill(&self) {
        self.sdk.state().asked = true;
        self.sdk.end(Ending { code: None, signal: Some(9) });
    }

    /// Makes the worker hang from now on.
    #[cfg(test)]
    pub(crate) fn hang(&self) {
        self.sdk.state().hangs = true;
    }

    /// How the process ended; `None` while it runs.
    pub fn ending(&self) -> Option<Ending> {
        self.sdk.state().ending
    }

    /// Whether the worker hangs: it sends and handles nothing.
    pub fn hangs(&self) -> bool {
        self.sdk.state().hangs
    }

    /// Returns when the process has ended.
    pub async fn ended(&self) -> Ending {
        loop {
            let ended = self.sdk.ended.notified();
            if let Some(ending) = self.ending() {
                return ending;
            }
            ended.await;
        }
    }
}

impl Sdk {
    async fn run(self: Arc<Self>) {
        sleep(self.profile.boot).await;
        if self.profile.fate == WorkerFate::Unfit && !self.world.faults.are_over() {
            let reason = "&status=unhealthy&check=memory&reason=RuntimeError%3A+too+little";
            let path = format!("{}{reason}&runpod_version=1.12.0", self.env.ping);
            let _ = timeout(UNFIT_PATIENCE, self.ask(get(path, &self.env.token))).await;
            self.end(Ending { code: Some(1), signal: None });
            return;
        }

        self.state().phase = Phase::Working;
        let pings = Arc::clone(&self);
        self.process.spawn(async move { pings.ping().await });
        let stop_poller = Arc::clone(&self);
        let stops = self.process.spawn(async move { stop_poller.poll_stops().await });
        self.take().await;
        while !self.state().running.is_empty() {
            self.changed.notified().await;
        }
        // The worker ends after its open requests.
        let _ = stops.await;
        self.wait_while_suspended().await;
        self.end(Ending { code: Some(0), signal: None });
    }

    async fn take(self: &Arc<Self>) {
        loop {
            self.wait_while_suspended().await;
            let Some(slots) = self.free_slots().await else { return };
            let (path, busy) = if slots > 1 {
                (&self.env.take_batch, format!("&batch_size={slots}&job_in_progress="))
            } else {
                (&self.env.take, "&job_in_progress=".to_owned())
            };
            let is_busy = if self.state().running.is_empty() { '0' } else { '1' };
            let asked_at = Instant::now();
            let answer = timeout(
                self.profile.patience,
                self.ask(get(format!("{path}{busy}{is_busy}"), &self.env.token)),
            );
            let answer = answer.await.ok().flatten();
            self.wait_while_suspended().await;
            if self.state().phase == Phase::Ending {
                // Jobs delivered in this moment never run and are not reported.
                return;
            }
            match answer {
                Some(answer) if answer.status == 200 && job::is_unreadable(&answer.body) => {
                    self.wait_to_retry().await;
                }
                Some(answer) if answer.status == 200 => {
                    let jobs = job::ids(&answer.body);
                    if !jobs.is_empty() {
                        self.inject_faults();
                    }
                    for job in jobs {
                        self.begin(job);
                    }
                    sleep_until(asked_at + self.profile.pace).await;
                }
                Some(answer) if matches!(answer.status, 204 | 400) => {}
                Some(answer) if answer.status == 429 => sleep(Duration::from_secs(5)).await,
                _ => self.wait_to_retry().await,
            }
        }
    }

    /// Waits for a free slot. `None` when the worker should end.
    async fn free_slots(&self) -> Option<usize> {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state();
                if state.phase == Phase::Ending {
                    return None;
                }
                let free = (self.profile.concurrency as usize).saturating_sub(state.running.len());
                if free > 0 {
                    return Some(free);
                }
            }
            changed.await;
        }
    }

    fn begin(self: &Arc<Self>, job: Arc<str>) {
        self.foreign_jobs.record(&self.env.endpoint, job.clone());
        let stop = Arc::new(Notify::new());
        let run = {
            let mut state = self.state();
            state.runs += 1;
            let run = state.runs;
            state.running.insert(run, Run { job: job.clone(), stop: stop.clone(), in_handler: true });
            run
        };
        self.world.record.observe(&Observation::HandlerBegan(self.env.worker.clone(), job.to_string()));
        let sdk = Arc::clone(self);
        self.process.spawn(async move {
            sdk.handle(&job, run, &stop).await;
            sdk.free_slot(run);
        });
    }

    /// Records that the handler of this run has ended.
    pub(super) fn handler_ended(&self, number: u64) {
        let mut state = self.state();
        let Some(run) = state.running.get_mut(&number).filter(|run| run.in_handler) else { return };
        run.in_handler = false;
        let job = run.job.to_string();
        drop(state);
        self.world.record.observe(&Observation::HandlerEnded(self.env.worker.clone(), job));
    }

    /// Frees the slot of this run.
    fn free_slot(&self, run: u64) {
        let mut state = self.state();
        if let Some(run) = state.running.remove(&run) {
            if state.past.len() == PAST_KEPT {
                state.past.pop_front();
            }
            state.past.push_back(run.job);
        }
        drop(state);
        if self.profile.fate == WorkerFate::RefreshesItself {
            self.state().phase = Phase::Ending;
        }
        self.changed.notify_waiters();
    }

    async fn poll_stops(self: Arc<Self>) {
        loop {
            self.wait_while_suspended().await;
            if self.state().phase == Phase::Ending {
                return;
            }
            let request = get(self.env.stop.clone(), &self.env.token);
            let answer = timeout(self.profile.patience, self.ask(request)).await.ok().flatten();
            self.wait_while_suspended().await;
            match answer {
                Some(answer) if answer.status == 200 => {
                    let jobs = job::stops(&answer.body);
                    for run in self.state().running.values().filter(|run| jobs.contains(&run.job)) {
                        run.stop.notify_one();
                    }
                }
                Some(answer) if answer.status == 429 => sleep(Duration::from_secs(5)).await,
                _ => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn ping(self: Arc<Self>) {
        loop {
            self.wait_while_suspended().await;
            let mut path = format!("{}&runpod_version=1.12.0", self.env.ping);
            let jobs = self.pinged_jobs();
            if !jobs.is_empty() {
                path = path + "&job_id=" + &jobs.join("%2C");
            }
            // The SDK ignores the response.
            let _ = timeout(Duration::from_secs(10), self.ask(get(path, &self.env.token))).await;
            self.inject_faults();
            sleep(self.env.ping_every).await;
        }
    }

    fn pinged_jobs(&self) -> Vec<Arc<str>> {
        let names_past_ones = self.world.faults.inject(Fault::PingStale);
        if names_past_ones {
            let foreign = self.foreign_job();
            return self.state().past.iter().cloned().chain(foreign).collect();
        }
        self.state().running.values().map(|run| run.job.clone()).collect()
    }

    /// Sends a request. `None` if no response arrives.
    pub(super) async fn ask(&self, request: HttpRequest) -> Option<HttpResponse> {
        self.world.network.ask(Party::Worker(self.env.worker.clone()), request).await.ok()
    }

    /// Injects a fault of the worker.
    pub(super) fn inject_faults(self: &Arc<Self>) {
        let faults = &self.world.faults;
        if faults.inject(Fault::WorkerDies) {
            let (after, ending) = {
                let mut rng = self.rng();
                let after = Duration::from_millis(rng.skewed(0..=30_000));
                let signal = *rng.pick(&[None, None, Some(9), Some(11)]);
                (after, Ending { code: signal.is_none().then_some(1), signal })
            };
            let dying = Arc::clone(self);
            self.process.spawn(async move {
                sleep(after).await;
                dying.end(ending);
            });
        }
        if faults.inject(Fault::WorkerPaused) {
            // Sometimes long enough that the worker is lost and its jobs are requeued.
            let pause = self.rng().range(100..=90_000);
            self.state().paused_until = Some(Instant::now() + Duration::from_millis(pause));
        }
        if faults.inject(Fault::WorkerHangs) {
            self.state().hangs = true;
        }
    }

    /// Waits while the process is suspended or hangs.
    pub(super) async fn wait_while_suspended(&self) {
        loop {
            let (hangs, paused_until) = {
                let state = self.state();
                (state.hangs, state.paused_until.filter(|end| *end > Instant::now()))
            };
            if hangs {
                std::future::pending::<()>().await;
            }
            let Some(end) = paused_until else { return };
            sleep_until(end).await;
        }
    }

    async fn wait_to_retry(&self) {
        let wait = self.rng().range(1..=RETRY_PAUSE_MS_MAX);
        sleep(Duration::from_millis(wait)).await;
    }

    /// Returns a job that this worker has released, or that another worker has or had.
    pub(super) fn foreign_job(&self) -> Option<Arc<str>> {
        let mut rng = self.rng();
        if rng.chance(0.5) {
            let past: Vec<_> = self.state().past.iter().cloned().collect();
            return (!past.is_empty()).then(|| rng.pick(&past).clone());
        }
        self.foreign_jobs.pick(&self.env.endpoint, &mut rng)
    }

    /// Returns a number for one more report.
    pub(super) fn next_run(&self) -> u64 {
        let mut state = self.state();
        state.runs += 1;
        state.runs
    }

    /// Ends the process immediately.
    fn end(&self, ending: Ending) {
        let (asked, running) = {
            let mut state = self.state();
            if state.ending.is_some() {
                return;
            }
            state.ending = Some(ending);
            (state.asked, std::mem::take(&mut state.running))
        };
        self.process.kill();
        self.world.record.observe(&Observation::WorkerEnded(self.env.worker.clone(), asked));
        for run in running.values().filter(|run| run.in_handler) {
            self.world
                .record
                .observe(&Observation::HandlerEnded(self.env.worker.clone(), run.job.to_string()));
        }
        self.ended.notify_waiters();
    }

    pub(super) fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
