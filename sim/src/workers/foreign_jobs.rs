//! Jobs that any worker had, so that other workers can post results for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::rng::Rng;

/// Jobs that are remembered per endpoint.
const KEPT: usize = 32;

/// Jobs that workers had, by the id of their endpoint. Cheap to clone.
#[derive(Clone, Default)]
pub struct ForeignJobs {
    jobs: Arc<Mutex<BTreeMap<String, VecDeque<Arc<str>>>>>,
}

impl ForeignJobs {
    /// Records that a worker got a job.
    pub(super) fn record(&self, endpoint: &str, job: Arc<str>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if !jobs.contains_key(endpoint) {
            jobs.insert(endpoint.to_owned(), VecDeque::new());
        }
        let Some(known) = jobs.get_mut(endpoint) else { return };
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back(job);
    }

    /// Returns a job that a worker of this endpoint had.
    pub(super) fn pick(&self, endpoint: &str, rng: &mut Rng) -> Option<Arc<str>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.get_mut(endpoint).map(|known| rng.pick(known.make_contiguous()).clone())
    }
}
