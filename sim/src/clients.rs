//! Clients: they submit, follow, change and cancel jobs, and send invalid requests.

mod body;
mod client_state;
mod control;
mod events;
mod invalid;
mod profile;
mod reads;
mod submit;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use self::client_state::{ClientState, KnownJob};
use self::profile::{Action, ClientProfile};
use crate::auditor::Auditor;
use crate::endpoints::Endpoints;
use crate::faults::Faults;
use crate::observation::{HttpRequest, HttpResponse, Party};
use crate::raw_http::{get, text_member};
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Longest interval between two requests of a client for its jobs after the faults have stopped, in ms.
const QUIET_POLL_MS_MAX: u64 = 1_000;
/// The longest such interval when the client has seen the end of all its jobs, in ms.
const IDLE_POLL_MS_MAX: u64 = 60_000;
/// How long a client waits before it searches for endpoints again.
const NO_ENDPOINT_PAUSE: Duration = Duration::from_millis(500);
/// Interval of the surveys of jobs whose end no client has seen.
const SURVEY_INTERVAL: Duration = Duration::from_mins(4);

/// Starts some clients. Each uses one of the keys, of which there must be one.
pub fn start(world: &World, rng: &mut Rng, keys: &[String], endpoints: &Endpoints) -> Vec<Process> {
    let count = rng.skewed(1..=12) as u32;
    // In a slow world much time passes in few steps, so timers of hours expire, too.
    let slowness = rng.skewed(1..=50);
    let one = |number| {
        let key = rng.pick(keys).clone();
        Client::start(world, rng, number, &key, slowness, endpoints)
    };
    (0..count).map(one).collect()
}

/// Requests the jobs whose end no client has seen, after the faults have stopped.
async fn survey(client: Arc<Client>) {
    loop {
        sleep(SURVEY_INTERVAL).await;
        if !client.faults().are_over() {
            continue;
        }
        for (endpoint, job) in client.world.record.auditor(Auditor::open_jobs) {
            client.ask(get(format!("/v2/{endpoint}/status/{job}"), &client.credential)).await;
        }
    }
}

/// One client, which runs several tasks concurrently.
struct Client {
    number: u32,
    world: World,
    endpoints: Endpoints,
    /// The `Authorization` value, with or without `Bearer`.
    credential: String,
    profile: ClientProfile,
    rng: Mutex<Rng>,
    state: Mutex<ClientState>,
}

impl Client {
    fn start(
        world: &World,
        rng: &mut Rng,
        number: u32,
        key: &str,
        slowness: u64,
        endpoints: &Endpoints,
    ) -> Process {
        let mut rng = rng.fork();
        let bare = rng.chance(0.2);
        let client = Arc::new(Self {
            number,
            world: world.clone(),
            endpoints: endpoints.clone(),
            credential: if bare { key.to_owned() } else { format!("Bearer {key}") },
            profile: ClientProfile::draw(&mut rng, slowness),
            rng: Mutex::new(rng),
            state: Mutex::default(),
        });
        let process = world.tasks.process();
        for _ in 0..client.profile.tasks {
            let client = Arc::clone(&client);
            process.spawn(async move { client.work().await });
        }
        if number == 0 {
            process.spawn(survey(Arc::clone(&client)));
        }
        process.spawn(async move { client.poll_jobs().await });
        process
    }

    /// One of the client's tasks: runs actions one after the other until the faults have stopped.
    async fn work(&self) {
        loop {
            if self.endpoints.are_none() {
                sleep(NO_ENDPOINT_PAUSE).await;
                continue;
            }
            let (pauses, burst) = {
                let mut rng = self.rng();
                (self.profile.pause(&mut rng), self.profile.burst(&mut rng))
            };
            sleep(pauses).await;
            for _ in 0..burst {
                if self.faults().are_over() {
                    return;
                }
                let action = {
                    let mut rng = self.rng();
                    self.profile.action(&mut rng)
                };
                self.act(action).await;
            }
        }
    }

    async fn act(&self, action: Action) {
        match action {
            Action::Run => self.submit(false).await,
            Action::Runsync => self.submit(true).await,
            Action::Resend => self.resend().await,
            Action::Status => self.read_any_status().await,
            Action::StatusSync => self.wait_for_any().await,
            Action::Keep => self.keep_any().await,
            Action::Drain => self.drain_any().await,
            Action::Read => self.read_any().await,
            Action::Follow => self.follow_any().await,
            Action::Cancel => self.cancel_any().await,
            Action::Retry => self.retry_any().await,
            Action::Purge => self.purge().await,
            Action::Requests => self.list().await,
            Action::Health => self.health().await,
            Action::Invalid => self.send_invalid().await,
        }
    }

    /// Requests each of the client's jobs from time to time, so that the client sees every end.
    async fn poll_jobs(&self) {
        loop {
            let (pause, known) = {
                let (mut rng, mut state) = (self.rng(), self.state());
                let pause = match (self.faults().are_over(), state.open_len()) {
                    (false, _) => self.profile.poll_ms(&mut rng),
                    (true, 0) => rng.range(1..=IDLE_POLL_MS_MAX),
                    (true, _) => rng.range(1..=QUIET_POLL_MS_MAX),
                };

                (pause, state.next_open().or_else(|| state.pick_over(&mut rng)))
            };
            sleep(Duration::from_millis(pause)).await;
            if let Some(known) = known {
                self.read_status(&known).await;
            }
        }
    }

    /// Sends a request. `None` if no response arrives.
    async fn ask(&self, request: HttpRequest) -> Option<HttpResponse> {
        let answer = self.world.network.ask(Party::Client(self.number), request).await.ok()?;
        self.wait_if_refused(&answer).await;
        Some(answer)
    }

    async fn wait_if_refused(&self, answer: &HttpResponse) {
        if answer.status == 429 && self.profile.is_patient {
            let pause = self.rng().range(100..=10_000);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Records what a response says about a job.
    fn note(&self, known: &KnownJob, answer: &HttpResponse) {
        match answer.status {
            200 => match text_member(&answer.body, "status") {
                None => {}
                // A terminal job may be queued again, because another task or a resend retried it.
                Some("IN_QUEUE" | "IN_PROGRESS") => self.state().reopened(known),
                Some(state) => {
                    let may_retry = matches!(state, "FAILED" | "TIMED_OUT");
                    self.state().ended(known, may_retry);
                }
            },
            404 => self.state().gone(known),
            // An unreadable outcome stays unreadable, so this error is the job's end for the client.
            500 => self.state().ended(known, false),
            _ => {}
        }
    }

    fn faults(&self) -> &Faults {
        &self.world.faults
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
