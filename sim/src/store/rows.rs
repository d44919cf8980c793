//! The contents of the disk: synced rows, and the log of unsynced changes.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use longshore_model::{Durability, EndpointNo, Epoch, JobKey, JobRow, ShardId};
use longshore_store::{Batch, MemoryStore, Payload, Store, StoreError, Write};
use tokio::time::Instant;

use super::damage::DamagedPayloads;
use crate::disk::Drive;
use crate::faults::Fault;

/// How long a power cut can lose a buffered change: the promise of [`Store::commit`].
const UNSYNCED_MAX: Duration = Duration::from_millis(100);

/// Age of a written outcome from which no reader in the server still sees the job as running.
const KNOWN_AFTER: Duration = Duration::from_secs(1);

/// One change, applied completely or not at all.
#[derive(Clone)]
pub(super) enum Change {
    /// A call of [`Store::claim_shards`].
    Claim(Vec<ShardId>),
    /// A call of [`Store::release_shards`].
    Release(Vec<(ShardId, Epoch)>),
    /// A call of [`Store::commit`].
    Commit(ShardId, Epoch, Batch),
}

/// The result of a change: for a claim its new epochs.
pub(super) type ClaimReply = Result<Vec<Epoch>, StoreError>;

impl Change {
    /// Whether the writer waits for the sync.
    pub(super) fn is_synced(&self) -> bool {
        match self {
            Self::Claim(_) | Self::Release(_) => true,
            Self::Commit(_, _, batch) => batch.durability == Durability::Synced,
        }
    }

    /// The commit chain that a commit depends on.
    pub(super) fn chain(&self) -> Option<(ShardId, Option<u64>)> {
        match self {
            Self::Claim(_) | Self::Release(_) => None,
            Self::Commit(shard, _, batch) => Some((*shard, batch.chain)),
        }
    }

    /// The jobs whose outcomes the change writes.
    fn outcomes(&self) -> impl Iterator<Item = JobKey> {
        let writes = match self {
            Self::Commit(_, _, batch) => batch.writes.as_slice(),
            Self::Claim(_) | Self::Release(_) => &[],
        };
        writes.iter().filter_map(|write| match write {
            Write::PutOutcome(job, _) => Some(*job),
            _ => None,
        })
    }

    fn apply(&self, rows: &MemoryStore) -> ClaimReply {
        match self.clone() {
            Self::Claim(shards) => ready(rows.claim_shards(shards)),
            Self::Release(shards) => ready(rows.release_shards(shards)).map(|()| Vec::new()),
            Self::Commit(shard, epoch, batch) => ready(rows.commit(shard, epoch, batch)).map(|()| Vec::new()),
        }
    }
}

/// The rows on the disk.
#[derive(Default)]
pub(crate) struct Rows {
    state: Mutex<StoreState>,
    damage: DamagedPayloads,
}

#[derive(Default)]
struct StoreState {
    /// All written rows: what readers see.
    seen: Arc<MemoryStore>,
    /// The rows that a power cut cannot lose.
    synced: MemoryStore,
    /// Changes in `seen` that are not in `synced`, in order, with their times.
    tail: Vec<(Instant, Change)>,
    /// Time of the last write of each outcome.
    outcomes_written: BTreeMap<JobKey, Instant>,
    /// A group at the end of the log that is being written, or whose sync failed. It has no effect, and the next
    /// group overwrites it. Until then a crash can make it valid, because the log does not record which replies
    /// were sent.
    unsure: Vec<Change>,
}

impl Rows {
    /// Returns the rows that readers see.
    pub(super) fn seen(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.state().seen)
    }

    /// Returns the job's row, as readers see it.
    pub(super) fn job(&self, job: JobKey) -> Option<JobRow> {
        let rows = ready(self.seen().jobs(job.endpoint, job.seq.saturating_sub(1), 1)).ok()?;
        rows.into_iter().find(|row| row.key == job)
    }

    /// Returns the job whose output or progress value is in the file of this name.
    pub(crate) fn with_output(&self, file: &str) -> Option<JobRow> {
        let (folder, name) = file.split_once('/')?;
        let (id, _) = name.split_once(".output")?;
        let seen = self.seen();
        let rows = ready(seen.jobs(EndpointNo(folder.parse().ok()?), 0, usize::MAX)).ok()?;
        let row = rows.into_iter().find(|row| row.id.to_string() == id)?;
        let outcome = ready(seen.outcome(row.key)).ok()??;
        matches!(outcome.output, Some(Payload::Blob(reference)) if *reference.name == *file).then_some(row)
    }

    /// Whether the outcome is old enough that no reader still sees the job as running.
    pub(super) fn has_old_outcome(&self, job: JobKey) -> bool {
        let written = self.state().outcomes_written.get(&job).copied();
        written.is_none_or(|written| written.elapsed() > KNOWN_AFTER)
    }

    /// Returns the damaged payloads.
    pub(super) fn damage(&self) -> &DamagedPayloads {
        &self.damage
    }

    /// Records that a group is being written.
    pub(super) fn begin(&self, group: Vec<Change>) {
        self.state().unsure = group;
    }

    /// Records that the group could not be written.
    pub(super) fn forget(&self) {
        self.state().unsure.clear();
    }

    /// Records that the group is written, and synced if required. Readers see it from now on.
    pub(super) fn keep(&self) -> Vec<ClaimReply> {
        let mut state = self.state();
        let group = std::mem::take(&mut state.unsure);
        let is_synced = group.iter().any(Change::is_synced);
        let now = Instant::now();
        let answers = group.into_iter().map(|change| {
            let answer = change.apply(&state.seen);
            if answer.is_ok() {
                state.outcomes_written.extend(change.outcomes().map(|job| (job, now)));
                state.tail.push((now, change));
            }
            answer
        });
        let answers = answers.collect();
        if is_synced {
            state.sync_all();
        } else {
            state.sync_old(now);
        }
        answers
    }

    /// Keeps what survives the death of the process.
    pub(crate) fn crash(&self, drive: &Drive, power_cut: bool) {
        let mut state = self.state();
        state.sync_old(Instant::now());
        let written = state.tail.len();
        let kept = if power_cut { state.survivors(drive) } else { written };
        if kept < written {
            drive.record.note(|| format!("the disk lost {} of {written} unsynced changes", written - kept));
            state.tail.truncate(kept);
            state.sync_all();
            state.seen = Arc::new(state.synced.clone());
        }
        let unsure = std::mem::take(&mut state.unsure);
        // Records after a gap in the log are not read.
        if !unsure.is_empty() && kept == written && drive.toss() {
            drive.record.note(|| format!("the disk has {} changes that were not acknowledged", unsure.len()));
            let now = Instant::now();
            for change in unsure {
                if change.apply(&state.seen).is_ok() {
                    state.tail.push((now, change));
                }
            }
        }
        if power_cut {
            state.sync_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreState {
    /// Draws how many unsynced changes survive a power cut.
    fn survivors(&self, drive: &Drive) -> usize {
        let written = self.tail.len();
        if written == 0 || drive.faults.inject(Fault::TailLost) {
            0
        } else if drive.faults.inject(Fault::TailTorn) {
            drive.below(written)
        } else {
            written
        }
    }

    fn sync_all(&mut self) {
        let end = self.tail.len();
        self.sync(end);
    }

    fn sync_old(&mut self, now: Instant) {
        let end = self.tail.partition_point(|(written_at, _)| now - *written_at >= UNSYNCED_MAX);
        self.sync(end);
    }

    fn sync(&mut self, end: usize) {
        for (_, change) in self.tail.drain(..end) {
            // The change was admitted before, after the same changes.
            let _ = change.apply(&self.synced);
        }
    }
}

/// Returns the result of a future that is ready at its first poll, as all futures of a memory store are.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a memory store waits for nothing"),
    }
}
