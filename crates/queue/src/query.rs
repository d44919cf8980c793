//! What can be read off the machine without changing it.

use alloc::vec::Vec;

use longshore_model::{Counters, JobId, JobRow, JobState, Millis, WorkerId, WorkerPhase};

use crate::Queue;
use crate::jobs::Slot;
use crate::packed::PackedRow;

/// Jobs that one page looks at when few of them match, so that a list never walks a million.
const PAGE_SCAN_MAX: usize = 10_000;

/// Jobs, newest first.
#[derive(Debug, Default)]
pub struct Page {
    /// The jobs that match.
    pub jobs: Vec<JobRow>,
    /// Continue before this id; none at the end.
    pub cursor: Option<JobId>,
}

/// The endpoint's load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// Waiting jobs.
    pub queued: u64,
    /// Waiting jobs that may cause a worker to start.
    pub queued_normal: u64,
    /// Jobs in workers' hands.
    pub running: u64,
    /// When the first normal job in line entered the queue.
    pub first_normal_since: Option<Millis>,
}

/// One worker's load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLoad {
    /// Its id.
    pub id: WorkerId,
    /// What it is doing.
    pub phase: WorkerPhase,
    /// Whether a launcher of ours runs it.
    pub managed: bool,
    /// Jobs it holds.
    pub running: u32,
    /// Since when it has held none.
    pub idle_since: Millis,
}

impl Queue {
    /// The job as clients see it: none once its time is over, cancelled once it is purged, whatever its row
    /// still says.
    ///
    /// Its time is over by the clock, before the slice that deletes its row is durable or even decided: nobody who asks
    /// for an expired job waits for the deletion of those before it. So this one answer rests on the clock and not on a row; a
    /// clock that is set back across a restart can take it back, as it makes any job live longer.
    pub fn find_visible(&self, id: JobId, now: Millis) -> Option<JobRow> {
        let slot = self.jobs.find(id)?;
        (now < self.jobs[slot].delete_at()).then(|| self.as_seen(slot))
    }

    /// A waiting job's place in the line: 1 is next. None for a job that does not wait.
    pub fn position(&self, id: JobId) -> Option<u64> {
        let row = &self.jobs[self.jobs.find(id)?];
        let waits = self.state_seen(row) == JobState::InQueue;
        waits.then(|| self.ready.len_before(row.order) + self.aside.lanes.len_before(row.order) + 1)
    }

    /// The job as it is stored, also when its time is over and only its webhook keeps it.
    pub fn find_stored(&self, id: JobId) -> Option<JobRow> {
        self.jobs.find(id).map(|slot| self.jobs.row(slot))
    }

    /// The row as clients see it while the job's time is not over.
    pub(crate) fn as_seen(&self, slot: Slot) -> JobRow {
        let mut seen = self.jobs.row(slot);
        if self.is_purged(&self.jobs[slot]) {
            seen.state = JobState::Cancelled;
            seen.finished_at = self.counters.purged_until;
        }
        seen
    }

    fn state_seen(&self, row: &PackedRow) -> JobState {
        if self.is_purged(row) { JobState::Cancelled } else { row.state() }
    }

    /// Up to `limit` jobs in `state` (none: any), from the newest, or the one before `before`, on.
    pub fn page(&self, state: Option<JobState>, limit: usize, before: Option<JobId>, now: Millis) -> Page {
        let mut page = Page::default();
        let mut last = None;
        for (scanned, slot) in self.jobs.newest_first(before).enumerate() {
            if page.jobs.len() == limit || scanned == PAGE_SCAN_MAX {
                page.cursor = last;
                break;
            }
            let row = &self.jobs[slot];
            last = Some(row.id);
            if now < row.delete_at() && state.is_none_or(|state| self.state_seen(row) == state) {
                page.jobs.push(self.as_seen(slot));
            }
        }
        page
    }

    /// The cumulative counts. Purged jobs count as cancelled as they are written.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many jobs there are, in any state.
    pub fn len(&self) -> u64 {
        self.jobs.len()
    }

    /// Whether there is no job in any state.
    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// How many jobs wait.
    pub fn queued(&self) -> u64 {
        self.ready.len() + self.aside.lanes.len()
    }

    /// The size of the input of the job that is handed out next.
    pub fn next_input_bytes(&self) -> Option<u32> {
        self.ready.first().map(|slot| self.jobs[slot].input_bytes())
    }

    /// The endpoint's load.
    pub fn load(&self) -> QueueLoad {
        let lanes = [&self.ready, &self.aside.lanes];
        let first_normal = lanes.iter().filter_map(|lanes| lanes.first_normal()).min();
        QueueLoad {
            queued: self.queued(),
            queued_normal: self.ready.len_normal() + self.aside.lanes.len_normal(),
            running: self.running,
            first_normal_since: first_normal.map(|(_, slot)| self.jobs[slot].enqueued_at()),
        }
    }

    /// Every worker that the queue knows of.
    pub fn worker_loads(&self) -> impl Iterator<Item = WorkerLoad> {
        self.workers.iter().map(|(id, worker)| WorkerLoad {
            id: id.clone(),
            phase: match () {
                () if worker.draining => WorkerPhase::Draining,
                () if !worker.held.is_empty() => WorkerPhase::Running,
                () if worker.asked => WorkerPhase::Idle,
                () => WorkerPhase::Initializing,
            },
            managed: worker.managed,
            running: worker.held.len() as u32,
            idle_since: worker.idle_since,
        })
    }

    /// How many workers hold a job.
    pub fn running_workers(&self) -> u32 {
        self.workers.busy()
    }

    /// Whether this worker gets no more jobs.
    pub fn is_draining(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.draining)
    }

    /// Whether a launcher of ours runs this worker.
    pub fn is_managed(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.managed)
    }
}
