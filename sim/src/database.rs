//! A database as PostgreSQL is one, as far as the store and the nodes of a cluster depend on it.
//!
//! ```text
//! session of a node ──► statements, in order ──► a backend: takes effect ──► done ──► on the disk: flushed
//!        │ cut, slow, one way only                 goes on with what arrived, also after the connection broke
//! ```
//!
//! What is done is visible to everyone. A crash loses what is done and not flushed, from its end on. The clock of the database
//! decides about leases, and the clocks of nodes do not.

mod backend;
mod lanes;
mod nodes;
mod store;
mod tables;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_postgres::StatementError;
use longshore_store::{MemoryStore, StoreError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

pub use self::backend::Session;
pub use self::store::SharedStore;
use self::tables::{TableChange, Tables};
use crate::cluster::partitions::{Partitions, Place};
use crate::faults::Fault;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// Longest time of a sync without a fault, in ms.
const SYNC_MS_MAX: u64 = 20;
/// How long a change that is done may not be on the disk, in ms: three times `wal_writer_delay`, and longer while the disk is slow.
pub const UNFLUSHED_MS_MAX: u64 = 600 + SLOW_MS_MAX;
/// Longest time of a statement or a sync with a fault, in ms.
const SLOW_MS_MAX: u64 = 6_000;
/// Longest time for which the database is down, in ms.
const DOWN_MS_MAX: u64 = 20_000;
/// Longest time for which the database refuses writes after a failover, in ms.
const READ_ONLY_MS_MAX: u64 = 10_000;
/// Longest time between two chances of the end of a session, in ms.
const SESSION_INTERVAL_MS_MAX: u64 = 10_000;
/// Longest time between two chances of a crash, in ms.
const CRASH_INTERVAL_MS_MAX: u64 = 30_000;

/// A database that several nodes share. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    shared: Arc<DatabaseShared>,
}

struct DatabaseShared {
    world: World,
    partitions: Partitions,
    rng: Mutex<Rng>,
    /// The tasks of the network.
    wires: Process,
    state: Mutex<DatabaseState>,
}

struct DatabaseState {
    /// The process of the present start, with the backends of all sessions. `None` while the database is down.
    process: Option<Process>,
    read_only_until: Option<Instant>,
    /// What everyone sees.
    done: Tables,
    /// What a crash does not lose.
    flushed: Tables,
    /// The changes in `done` that are not in `flushed`, with their times.
    tail: Vec<(Instant, TableChange)>,
    /// The number of changes that were flushed.
    flushed_count: u64,
    /// The session that holds the lock of the owner.
    lock: Option<i32>,
    /// The backends of the open sessions.
    sessions: BTreeMap<i32, AbortHandle>,
    last_session: i32,
    last_node: i32,
}

/// What a crash lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// Whether a change was lost that its sender did not wait for.
    pub lost_buffered: bool,
}

impl Database {
    /// Creates an empty database, which is up.
    pub fn new(world: &World, rng: &mut Rng, partitions: Partitions) -> Self {
        let state = DatabaseState {
            process: Some(world.tasks.process()),
            read_only_until: None,
            done: Tables::default(),
            flushed: Tables::default(),
            tail: Vec::new(),
            flushed_count: 0,
            lock: None,
            sessions: BTreeMap::new(),
            last_session: 0,
            last_node: 0,
        };
        let shared = DatabaseShared {
            world: world.clone(),
            partitions,
            rng: Mutex::new(rng.fork()),
            wires: world.tasks.process(),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes a new node the owner of the shards, without a membership. Returns its id and the epoch of the cluster.
    pub fn make_owner(&self) -> (i32, i64) {
        let mut state = self.state();
        state.last_node += 1;
        let (id, epoch) = (state.last_node, state.done.owners + 1);
        let change = TableChange::Owner(id, epoch);
        state.make(change);
        (id, epoch)
    }

    /// The database as a node reaches it.
    pub fn of_node(&self, node: usize) -> NodeView {
        NodeView { database: self.clone(), node }
    }

    /// Crashes the database from time to time, and calls `crashed` each time.
    pub async fn crash_sometimes(self, mut rng: Rng, crashed: impl Fn(Crash) + Send + 'static) {
        loop {
            sleep(Duration::from_millis(rng.skewed(1_000..=CRASH_INTERVAL_MS_MAX))).await;
            let faults = &self.shared.world.faults;
            if !faults.inject(Fault::DatabaseKilled) {
                continue;
            }
            let keeps_tail = !faults.inject(Fault::DatabaseTailLost);
            crashed(self.crash(keeps_tail));
            sleep(Duration::from_millis(rng.skewed(0..=DOWN_MS_MAX))).await;
            let read_only = Duration::from_millis(rng.skewed(1..=READ_ONLY_MS_MAX));
            let is_failover = faults.inject(Fault::DatabaseReadOnly);
            let mut state = self.state();
            state.process = Some(self.shared.world.tasks.process());
            state.read_only_until = is_failover.then(|| Instant::now() + read_only);
        }
    }

    /// Ends a session from time to time.
    pub async fn end_sessions_sometimes(self, mut rng: Rng) {
        loop {
            sleep(Duration::from_millis(rng.skewed(1_000..=SESSION_INTERVAL_MS_MAX))).await;
            if !self.inject(Fault::DatabaseSessionKilled) {
                continue;
            }
            let state = self.state();
            // The session with the owner's lock is one among many, and matters most.
            let of_owner = state.lock.filter(|_| rng.chance(0.5));
            let open: Vec<i32> = state.sessions.keys().copied().collect();
            let ended = of_owner.or_else(|| (!open.is_empty()).then(|| *rng.pick(&open)));
            if let Some(session) = ended.and_then(|id| state.sessions.get(&id)) {
                session.abort();
            }
        }
    }

    /// Ends all sessions, and loses some of what is not flushed.
    fn crash(&self, keeps_tail: bool) -> Crash {
        let mut state = self.state();
        if let Some(process) = state.process.take() {
            process.kill();
        }
        state.lock = None;
        state.sessions.clear();
        let written = state.tail.len() as u64;
        let kept = if keeps_tail { written } else { self.below(written + 1) };
        let is_old =
            |(at, _): &(Instant, TableChange)| at.elapsed() >= Duration::from_millis(UNFLUSHED_MS_MAX);
        let kept = state.tail.partition_point(is_old).max(kept as usize);
        let lost = state.tail.split_off(kept);
        let lost_buffered = lost.iter().any(|(_, change)| change.is_buffered());
        state.flush_all();
        if !lost.is_empty() {
            state.done = state.flushed.clone();
        }
        let text = || format!("the database crashed and lost {} of {written} unflushed changes", lost.len());
        self.shared.world.record.note(text);
        Crash { lost_buffered }
    }

    fn state(&self) -> MutexGuard<'_, DatabaseState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inject(&self, fault: Fault) -> bool {
        self.shared.world.faults.inject(fault)
    }

    fn below(&self, end: u64) -> u64 {
        let mut rng = self.shared.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.range(0..=end.saturating_sub(1))
    }

    fn random_ms(&self, ms_max: u64) -> Duration {
        let mut rng = self.shared.rng.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_millis(rng.skewed(0..=ms_max))
    }

    /// The clock of the database, in ms.
    fn now_ms(&self) -> u64 {
        self.shared.world.clock.now().ms
    }

    /// Waits until everything is on the disk that is done now. The process of the caller dies with a crash.
    async fn flush(&self) {
        let end = self.state().done_count();
        let slow = self.inject(Fault::DatabaseSlow);
        sleep(self.random_ms(if slow { SLOW_MS_MAX } else { SYNC_MS_MAX })).await;
        self.state().flush_to(end);
    }

    /// Makes a change, visibly for everyone.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database refuses writes.
    fn change(&self, change: TableChange) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.read_only_until.is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::Io("the database is read-only now".to_owned()));
        }
        state.make(change);
        Ok(())
    }

    fn rows(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.state().done.rows)
    }
}

impl DatabaseState {
    fn make(&mut self, change: TableChange) {
        self.done.apply(&change);
        self.tail.push((Instant::now(), change));
    }

    fn done_count(&self) -> u64 {
        self.flushed_count + self.tail.len() as u64
    }

    fn flush_to(&mut self, end: u64) {
        let count = end.saturating_sub(self.flushed_count).min(self.tail.len() as u64);
        for (_, change) in self.tail.drain(..count as usize) {
            self.flushed.apply(&change);
        }
        self.flushed_count += count;
    }

    fn flush_all(&mut self) {
        self.flush_to(u64::MAX);
    }
}

/// The database as one node reaches it. Cheap to clone.
#[derive(Clone)]
pub struct NodeView {
    database: Database,
    node: usize,
}

impl NodeView {
    fn place(&self) -> Place {
        Place::Node(self.node)
    }
}

/// A statement that the database refuses: it changed nothing.
fn not_done(error: StoreError) -> StatementError {
    let breaks_connection = matches!(error, StoreError::Io(_));
    StatementError { error, breaks_connection }
}
