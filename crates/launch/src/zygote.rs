//! Warm starts: workers as forks of a process that has imported what their handler imports
//! ([ADR 0023](../../../docs/adr/0023-warm-starts.md)).
//!
//! The first worker of a [`Recipe`] notes its [`Imports`] after its first job. Then a [`Zygote`] imports the same. Later workers
//! are forks of it, each with a shim as its parent, as with a plain start.

mod imports;
mod messages;
mod process;
mod recipe;

pub(crate) use imports::Imports;
pub(crate) use messages::send_with_files;
pub(crate) use process::Zygote;
pub(crate) use recipe::Recipe;

use std::collections::HashMap;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use longshore_model::EndpointId;
use tokio::sync::oneshot;

use crate::process::watch::WatchedShim;

/// How long an unused zygote is kept.
const IDLE_MAX: Duration = Duration::from_hours(1);
/// How often a fork or a zygote may fail before the recipe's workers are started without one.
const FAILURES_MAX: u32 = 3;

/// The zygotes of a launcher. They end when it is dropped.
#[derive(Default)]
pub(crate) struct Zygotes {
    /// The largest number of zygotes; 0: no worker is a fork.
    max: AtomicUsize,
    entries: Mutex<HashMap<Recipe, Entry>>,
}

/// What is known about the workers of one recipe.
struct Entry {
    state: State,
    failures: u32,
    used_at: Instant,
}

enum State {
    /// No worker has noted its imports.
    Unknown,
    /// A zygote imports them.
    Importing,
    /// Workers are forks of this zygote.
    Ready(Arc<Zygote>),
    /// Workers cannot be forks.
    Refused,
}

/// How a worker is started.
pub(crate) enum Route {
    /// As a fork of this zygote.
    Fork(Arc<Zygote>),
    /// By its command. It notes its imports.
    Learn,
    /// The worker is started by its command.
    Plain,
}

impl Zygotes {
    /// Sets the largest number of zygotes, which is 0 at first.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// How a worker of this recipe is started now. Zygotes of other recipes of the endpoint end. Blocks on the disk.
    pub(crate) fn route(&self, recipe: &Recipe) -> Route {
        if self.max.load(Ordering::Relaxed) == 0 {
            return Route::Plain;
        }
        let zygote = {
            let mut entries = self.entries();
            entries.retain(|other, _| other.endpoint != recipe.endpoint || other == recipe);
            let entry = entries.entry(recipe.clone()).or_insert_with(Entry::new);
            entry.used_at = Instant::now();
            match &entry.state {
                State::Unknown => return Route::Learn,
                State::Importing | State::Refused => return Route::Plain,
                State::Ready(zygote) => zygote.clone(),
            }
        };
        if zygote.is_current() {
            return Route::Fork(zygote);
        }
        tracing::info!(endpoint = %recipe.endpoint, "packages have changed: the zygote of the endpoint is made anew");
        self.set(recipe, State::Unknown);
        Route::Learn
    }

    /// Starts a zygote with what a worker of this recipe has noted. Does nothing if there is one. Ends the zygotes above the
    /// largest number that were used least recently. Returns when the zygote has ended.
    pub(crate) async fn make(self: Arc<Self>, recipe: Recipe, imports: Imports) {
        {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(&recipe) else { return };
            if !matches!(entry.state, State::Unknown) {
                return;
            }
            entry.state = State::Importing;
        }
        let endpoint = recipe.endpoint;
        let (zygote, child) = match started(recipe.clone(), imports).await {
            Ok(made) => made,
            Err(reason) => {
                tracing::info!(%endpoint, %reason, "workers of the endpoint start without a zygote");
                return self.set(&recipe, State::Refused);
            }
        };
        tracing::debug!(%endpoint, "the endpoint has a zygote");
        let zygote = Arc::new(zygote);
        self.set(&recipe, State::Ready(zygote.clone()));
        self.retire_oldest();
        let identity = Arc::downgrade(&zygote);
        // The entry alone keeps the zygote.
        drop(zygote);
        self.keep(&recipe, child, &identity).await;
    }

    /// Waits until a zygote ends, and ends it after [`IDLE_MAX`] without use.
    async fn keep(&self, recipe: &Recipe, child: Child, identity: &Weak<Zygote>) {
        let mut ended = std::pin::pin!(WatchedShim::Child(child).ended());
        loop {
            let Some(idle_at) = self.used_at(recipe).map(|used_at| used_at + IDLE_MAX) else {
                return ended.await;
            };
            tokio::select! {
                () = &mut ended => return self.note_end(recipe, identity),
                () = tokio::time::sleep_until(idle_at.into()) => self.forget_idle(recipe),
            }
        }
    }

    fn used_at(&self, recipe: &Recipe) -> Option<Instant> {
        self.entries().get(recipe).map(|entry| entry.used_at)
    }

    fn forget_idle(&self, recipe: &Recipe) {
        self.entries().retain(|other, entry| other != recipe || entry.used_at.elapsed() < IDLE_MAX);
    }

    /// A zygote has ended. If this program did not end it, the next worker learns again.
    fn note_end(&self, recipe: &Recipe, identity: &Weak<Zygote>) {
        let is_present = self.entries().get(recipe).is_some_and(
            |entry| matches!(&entry.state, State::Ready(zygote) if Weak::ptr_eq(&Arc::downgrade(zygote), identity)),
        );
        if is_present {
            self.note_failure(recipe, "its zygote ended");
        }
    }

    /// Counts a failure of a fork or a zygote. The next worker is started by its command and learns again; after some
    /// failures, all later ones are.
    pub(crate) fn note_failure(&self, recipe: &Recipe, reason: &str) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(recipe) else { return };
        entry.failures += 1;
        let is_last = entry.failures >= FAILURES_MAX;
        entry.state = if is_last { State::Refused } else { State::Unknown };
        let endpoint = recipe.endpoint;
        tracing::warn!(%endpoint, %reason, is_last, "a worker of the endpoint starts without a zygote");
    }

    /// Ends the zygotes of an endpoint.
    pub(crate) fn forget(&self, endpoint: &EndpointId) {
        self.entries().retain(|recipe, _| recipe.endpoint != *endpoint);
    }

    fn retire_oldest(&self) {
        let max = self.max.load(Ordering::Relaxed);
        let mut entries = self.entries();
        let is_ready = |entry: &Entry| matches!(entry.state, State::Ready(_));
        while entries.values().filter(|entry| is_ready(entry)).count() > max {
            let ready = entries.iter().filter(|(_, entry)| is_ready(entry));
            let Some(oldest) = ready.min_by_key(|(_, entry)| entry.used_at).map(|(recipe, _)| recipe.clone())
            else {
                return;
            };
            entries.remove(&oldest);
        }
    }

    fn set(&self, recipe: &Recipe, state: State) {
        if let Some(entry) = self.entries().get_mut(recipe) {
            entry.state = state;
        }
    }

    /// A poisoned map is valid, because every change is one assignment.
    fn entries(&self) -> MutexGuard<'_, HashMap<Recipe, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a zygote in a thread of its own: the end of the server does not wait for the imports.
async fn started(recipe: Recipe, imports: Imports) -> Result<(Zygote, Child), String> {
    let (sender, receiver) = oneshot::channel();
    let start = move || {
        // A dropped receiver means that the launcher is gone, and the zygote ends with it.
        let _ = sender.send(Zygote::start(&recipe, &imports));
    };
    thread::Builder::new().spawn(start).map_err(|error| format!("cannot start a thread: {error}"))?;
    receiver.await.map_err(|error| error.to_string())?
}

impl Entry {
    fn new() -> Self {
        Self { state: State::Unknown, failures: 0, used_at: Instant::now() }
    }
}
