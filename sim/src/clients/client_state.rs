//! The state of a client.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::rng::Rng;

/// Terminal jobs that a client remembers.
const OVER_KEPT: usize = 40;
/// Submits with an idempotency key that a client remembers.
const SUBMITS_KEPT: usize = 10;

/// A job that a client knows.
#[derive(Clone)]
pub(super) struct KnownJob {
    /// The job's id.
    pub(super) job: Arc<str>,
    /// The endpoint that the job was submitted to.
    pub(super) endpoint: Arc<str>,
    /// Whether the job had failed or timed out when it was last seen.
    may_retry: bool,
    /// Increases with each job.
    number: u64,
}

/// A submit that may be sent again.
#[derive(Clone)]
pub(super) struct UnacknowledgedSubmit {
    pub(super) path: String,
    pub(super) endpoint: Arc<str>,
    pub(super) key: String,
    pub(super) body: Bytes,
}

/// The jobs and submits that a client remembers.
#[derive(Default)]
pub(super) struct ClientState {
    /// Jobs whose end the client has not seen.
    open: BTreeMap<u64, KnownJob>,
    /// The most recent jobs whose end the client has seen.
    over: VecDeque<KnownJob>,
    keyed_submits: VecDeque<UnacknowledgedSubmit>,
    last_number: u64,
    submits: u64,
    /// The last open job that was requested.
    last_polled: u64,
}

impl ClientState {
    /// Number of open jobs.
    pub(super) fn open_len(&self) -> usize {
        self.open.len()
    }

    /// Returns a number that is unique among this client's submits.
    pub(super) fn next_submit(&mut self) -> u64 {
        self.submits += 1;
        self.submits
    }

    /// Records an accepted job. A known job, whose key was sent twice, stays unchanged.
    pub(super) fn opened(&mut self, job: &str, endpoint: &Arc<str>) {
        if self.open.values().rev().take(SUBMITS_KEPT * 4).any(|known| &*known.job == job) {
            return;
        }
        self.last_number += 1;
        let known = KnownJob {
            job: job.into(),
            endpoint: endpoint.clone(),
            may_retry: false,
            number: self.last_number,
        };
        self.open.insert(known.number, known);
    }

    /// Records that the client has seen the job's end.
    pub(super) fn ended(&mut self, known: &KnownJob, may_retry: bool) {
        let Some(mut known) = self.open.remove(&known.number) else { return };
        known.may_retry = may_retry;
        if self.over.len() == OVER_KEPT {
            self.over.pop_front();
        }
        self.over.push_back(known);
    }

    /// Forgets a job that the server has deleted.
    pub(super) fn gone(&mut self, known: &KnownJob) {
        self.open.remove(&known.number);
        self.over.retain(|over| over.number != known.number);
    }

    /// Marks a job as open, also after an end that was retried.
    pub(super) fn reopened(&mut self, known: &KnownJob) {
        if self.open.contains_key(&known.number) {
            return;
        }
        self.over.retain(|over| over.number != known.number);
        self.open.insert(known.number, known.clone());
    }

    /// Returns the next open job in turn.
    pub(super) fn next_open(&mut self) -> Option<KnownJob> {
        let next = self.open.range(self.last_polled + 1..).next().or_else(|| self.open.iter().next());
        let (number, known) = next?;
        self.last_polled = *number;
        Some(known.clone())
    }

    /// Returns a random open job.
    pub(super) fn pick_open(&self, rng: &mut Rng) -> Option<KnownJob> {
        let (first, last) = (*self.open.keys().next()?, *self.open.keys().next_back()?);
        self.open.range(rng.range(first..=last)..).next().map(|(_, known)| known.clone())
    }

    /// Returns a random terminal job.
    pub(super) fn pick_over(&mut self, rng: &mut Rng) -> Option<KnownJob> {
        (!self.over.is_empty()).then(|| rng.pick(self.over.make_contiguous()).clone())
    }

    /// Returns the last job that may be retried.
    pub(super) fn pick_failed(&self) -> Option<KnownJob> {
        self.over.iter().rev().find(|known| known.may_retry).cloned()
    }

    /// Returns an open job with a higher probability than a terminal one.
    pub(super) fn pick(&mut self, rng: &mut Rng) -> Option<KnownJob> {
        if rng.chance(0.8) { self.pick_open(rng) } else { self.pick_over(rng) }
    }

    /// Records that this key was sent with this body.
    pub(super) fn submit_sent(&mut self, submit: UnacknowledgedSubmit) {
        if self.keyed_submits.len() == SUBMITS_KEPT {
            self.keyed_submits.pop_front();
        }
        self.keyed_submits.push_back(submit);
    }

    /// Returns one of the recent submits.
    pub(super) fn pick_submit(&mut self, rng: &mut Rng) -> Option<UnacknowledgedSubmit> {
        (!self.keyed_submits.is_empty()).then(|| rng.pick(self.keyed_submits.make_contiguous()).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_open_then_over_then_gone() {
        let (mut state, mut rng) = (ClientState::default(), Rng::new(1));
        let endpoint: Arc<str> = "ep".into();
        state.opened("a", &endpoint);
        state.opened("a", &endpoint);
        state.opened("b", &endpoint);
        let order: Vec<_> =
            (0..3).filter_map(|_| state.next_open()).map(|known| known.job.to_string()).collect();
        assert_eq!(order, ["a", "b", "a"]);
        let known = state.next_open().unwrap();
        state.ended(&known, true);
        assert_eq!((state.open_len(), &*state.pick_over(&mut rng).unwrap().job), (1, "b"));
        assert_eq!(&*state.pick_failed().unwrap().job, "b");
        state.reopened(&known);
        assert_eq!((state.open_len(), state.pick_over(&mut rng).is_none()), (2, true));
        state.gone(&known);
        assert_eq!(state.open_len(), 1);
    }
}
