//! The disk of the server's computer: rows and payload files that outlive the server's processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::blobs::{BlobFiles, SimBlobs};
use crate::faults::{Fault, Faults};
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::store::{Rows, SimStore};

/// Longest time of a write without a fault, in ms.
const WRITE_MS_MAX: u64 = 2;
/// Longest time of a sync on the slowest disk without a fault, in ms.
const SYNC_MS_MAX: u64 = 30;
/// Longest time of a write with a fault, in ms.
const SLOW_MS_MAX: u64 = 10_000;
/// Longest time for which a disk is full, in ms.
const FULL_MS_MAX: u64 = 60_000;
/// Longest time for which no read succeeds, in ms.
const UNREADABLE_MS_MAX: u64 = 60_000;

/// The disk that successive server processes use. Cheap to clone.
#[derive(Clone)]
pub struct Disk {
    drive: Arc<Drive>,
    rows: Arc<Rows>,
    files: Arc<BlobFiles>,
}

impl Disk {
    /// Creates an empty disk of random speed.
    pub fn new(rng: &mut Rng, faults: Faults, record: Recorder) -> Self {
        let drive = Drive {
            faults,
            record,
            sync_ms_max: rng.skewed(0..=SYNC_MS_MAX),
            state: Mutex::new(DiskState { rng: rng.fork(), full_until: None, unreadable_until: None }),
        };
        Self { drive: Arc::new(drive), rows: Arc::default(), files: Arc::default() }
    }

    /// Opens the rows for a new process. Its unfinished writes end with it.
    pub fn store(&self, process: &Process) -> SimStore {
        SimStore::open(process, Arc::clone(&self.drive), Arc::clone(&self.rows))
    }

    /// Opens the payload files for a new process.
    pub fn blobs(&self, process: &Process) -> SimBlobs {
        SimBlobs::open(
            process.clone(),
            Arc::clone(&self.drive),
            Arc::clone(&self.files),
            Arc::clone(&self.rows),
        )
    }

    /// Applies the death of the process to the disk. Call it after the death and before the next opening. With
    /// `power_cut`, unsynced data may be lost.
    pub fn crash(&self, power_cut: bool) {
        self.rows.crash(&self.drive, power_cut);
        self.files.crash(&self.drive, power_cut);
    }
}

/// Why a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// No space is left on the disk.
    Full,
    /// Any other failure of the disk.
    Failed,
}

/// The speed and the failures of the disk.
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
    /// Waits for the time of a write. After an error nothing was written.
    pub(crate) async fn write(&self, failure: Fault) -> Result<(), WriteError> {
        let slow = self.faults.inject(Fault::CommitSlow);
        self.pass(if slow { SLOW_MS_MAX } else { WRITE_MS_MAX }).await;
        if self.is_full() {
            return Err(WriteError::Full);
        }
        if self.faults.inject(failure) { Err(WriteError::Failed) } else { Ok(()) }
    }

    /// Waits for the time of a sync.
    pub(crate) async fn sync(&self) {
        self.pass(self.sync_ms_max).await;
    }

    /// Waits for the time of a read. Returns whether the read succeeds.
    pub(crate) async fn read(&self) -> bool {
        self.pass(1).await;
        !self.is_unreadable() && !self.faults.inject(Fault::ReadFailed)
    }

    /// Returns true or false with equal probability.
    pub(crate) fn toss(&self) -> bool {
        self.state().rng.chance(0.5)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        self.state().rng.range(0..=end as u64 - 1) as usize
    }

    fn is_full(&self) -> bool {
        self.is_within(Fault::DiskFull, FULL_MS_MAX, |state| &mut state.full_until)
    }

    fn is_unreadable(&self) -> bool {
        self.is_within(Fault::DiskUnreadable, UNREADABLE_MS_MAX, |state| &mut state.unreadable_until)
    }

    /// Whether a fault with a duration is active; starts it with its probability.
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
