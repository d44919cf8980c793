//! Jobs that some worker had: others post results for them, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::rng::Rng;

/// How many jobs are remembered for each endpoint.
const KEPT: usize = 32;

/// Jobs that workers had, by the token they got them with. Cheap to clone.
#[derive(Clone, Default)]
pub struct ForeignJobs {
    jobs: Arc<Mutex<BTreeMap<String, VecDeque<Arc<str>>>>>,
}

impl ForeignJobs {
    /// A worker got a job.
    pub(super) fn tell(&self, token: &str, job: Arc<str>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if !jobs.contains_key(token) {
            jobs.insert(token.to_owned(), VecDeque::new());
        }
        let Some(known) = jobs.get_mut(token) else { return };
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back(job);
    }

    /// A job that some worker with this token had.
    pub(super) fn pick(&self, token: &str, rng: &mut Rng) -> Option<Arc<str>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.get_mut(token).map(|known| rng.pick(known.make_contiguous()).clone())
    }
}
