//! The disk of the server's machine: rows and payload files that outlive the server's processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::blobs::{BlobFiles, SimBlobs};
use crate::faults::{Fault, Faults};
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::store::{Rows, SimStore};

/// Milliseconds that a write takes at most when nothing is wrong.
const WRITE_MS_MAX: u64 = 2;
/// Milliseconds that a sync takes at most on the slowest disk that has nothing wrong with it.
const SYNC_MS_MAX: u64 = 30;
/// Milliseconds that a write takes at most when something is wrong.
const SLOW_MS_MAX: u64 = 10_000;
/// Milliseconds for which a disk stays full at most.
const FULL_MS_MAX: u64 = 60_000;
/// Milliseconds for which nothing can be read at most.
const UNREADABLE_MS_MAX: u64 = 60_000;

/// What the server's processes, one after the other, find on their disk. Cheap to clone.
#[derive(Clone)]
pub struct Disk {
    drive: Arc<Drive>,
    rows: Arc<Rows>,
    files: Arc<BlobFiles>,
}

impl Disk {
    /// An empty disk, as fast as chance will have it.
    pub fn new(rng: &mut Rng, faults: Faults, record: Recorder) -> Self {
        let drive = Drive {
            faults,
            record,
            sync_ms_max: rng.skewed(0..=SYNC_MS_MAX),
            state: Mutex::new(DiskState { rng: rng.fork(), full_until: None, unreadable_until: None }),
        };
        Self { drive: Arc::new(drive), rows: Arc::default(), files: Arc::default() }
    }

    /// The rows, for a process that has just begun. What it has not finished when it dies stays unfinished.
    pub fn store(&self, process: &Process) -> SimStore {
        SimStore::open(process, Arc::clone(&self.drive), Arc::clone(&self.rows))
    }

    /// The payload files, for a process that has just begun.
    pub fn blobs(&self, process: &Process) -> SimBlobs {
        SimBlobs::open(
            process.clone(),
            Arc::clone(&self.drive),
            Arc::clone(&self.files),
            Arc::clone(&self.rows),
        )
    }

    /// What the death of the process does to the disk, to be called between its death and the next opening. With
    /// a power cut, what was not synced may be gone.
    pub fn crash(&self, power_cut: bool) {
        self.rows.crash(&self.drive, power_cut);
        self.files.crash(&self.drive, power_cut);
    }
}

/// A write did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The disk is full.
    Full,
    /// It failed for another reason.
    Failed,
}

/// How long the disk takes, and when it fails.
pub(crate) struct Drive {
    pub(crate) faults: Faults,
    pub(crate) record: Recorder,
    sync_ms_max: u64,
    state: Mutex<DiskState>,
}

struct DiskState {
    rng: Rng,
    full_until: Option<Instant>,
    unreadable_until: Option<Instant>,
}

impl Drive {
    /// Takes the time of a write. After an error nothing is written.
    pub(crate) async fn write(&self, failure: Fault) -> Result<(), WriteError> {
        let slow = self.faults.inject(Fault::CommitSlow);
        self.pass(if slow { SLOW_MS_MAX } else { WRITE_MS_MAX }).await;
        if self.is_full() {
            return Err(WriteError::Full);
        }
        if self.faults.inject(failure) { Err(WriteError::Failed) } else { Ok(()) }
    }

    /// Takes the time of a sync.
    pub(crate) async fn sync(&self) {
        self.pass(self.sync_ms_max).await;
    }

    /// Takes the time of a read; whether it succeeds.
    pub(crate) async fn read(&self) -> bool {
        self.pass(1).await;
        !self.is_unreadable() && !self.faults.inject(Fault::ReadFailed)
    }

    /// One or the other, equally likely.
    pub(crate) fn toss(&self) -> bool {
        self.state().rng.chance(0.5)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        self.state().rng.range(0..=end as u64 - 1) as usize
    }

    fn is_full(&self) -> bool {
        self.is_within(Fault::DiskFull, FULL_MS_MAX, |state| &mut state.full_until)
    }

    fn is_unreadable(&self) -> bool {
        self.is_within(Fault::DiskUnreadable, UNREADABLE_MS_MAX, |state| &mut state.unreadable_until)
    }

    /// Whether a fault that lasts for a while does so now; it may begin now.
    fn is_within(
        &self,
        fault: Fault,
        ms_max: u64,
        until: fn(&mut DiskState) -> &mut Option<Instant>,
    ) -> bool {
        let begins = self.faults.inject(fault);
        let mut state = self.state();
        if begins {
            let lasts = Duration::from_millis(state.rng.skewed(1..=ms_max));
            *until(&mut state) = Some(Instant::now() + lasts);
        }
        !self.faults.are_over() && until(&mut state).is_some_and(|until| Instant::now() < until)
    }

    async fn pass(&self, ms_max: u64) {
        let takes = Duration::from_millis(self.state().rng.skewed(0..=ms_max));
        if !takes.is_zero() {
            sleep(takes).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
