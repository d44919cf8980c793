//! Jobs that failed, timed out or were cancelled, by id: few among many, which a list finds without looking at the others.

use longshore_model::{JobId, JobState};

use crate::index::Index;
use crate::jobs::Slot;

/// The jobs in the states of [`EndedJobs::STATES`]. Completed jobs are not listed, so that their end costs nothing.
#[derive(Debug, Default)]
pub(crate) struct EndedJobs {
    failed: Index<JobId>,
    cancelled: Index<JobId>,
    timed_out: Index<JobId>,
}

impl EndedJobs {
    /// The states whose jobs are listed.
    pub(crate) const STATES: [JobState; 3] = [JobState::Failed, JobState::Cancelled, JobState::TimedOut];

    /// The jobs in this state; `None` for a state that is not listed.
    pub(crate) fn of(&self, state: JobState) -> Option<&Index<JobId>> {
        match state {
            JobState::Failed => Some(&self.failed),
            JobState::Cancelled => Some(&self.cancelled),
            JobState::TimedOut => Some(&self.timed_out),
            JobState::InQueue | JobState::InProgress | JobState::Completed => None,
        }
    }

    /// Lists a job in its new state.
    pub(crate) fn insert(&mut self, state: JobState, id: JobId, slot: Slot) {
        if let Some(jobs) = self.of_mut(state) {
            let is_new = jobs.insert(id, slot);
            assert!(is_new, "a job is listed once");
        }
    }

    /// Removes a job that leaves its state.
    pub(crate) fn remove(&mut self, state: JobState, id: JobId, slot: Slot) {
        if let Some(jobs) = self.of_mut(state) {
            let was_listed = jobs.remove(id, slot);
            assert!(was_listed, "a job in a listed state is listed");
        }
    }

    /// The number of listed jobs.
    pub(crate) fn len(&self) -> u64 {
        self.failed.len() + self.cancelled.len() + self.timed_out.len()
    }

    fn of_mut(&mut self, state: JobState) -> Option<&mut Index<JobId>> {
        match state {
            JobState::Failed => Some(&mut self.failed),
            JobState::Cancelled => Some(&mut self.cancelled),
            JobState::TimedOut => Some(&mut self.timed_out),
            JobState::InQueue | JobState::InProgress | JobState::Completed => None,
        }
    }
}
