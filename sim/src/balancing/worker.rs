//! Workers of a load-balancing endpoint, good and bad ones.

use std::collections::BTreeMap;

use longshore_fleet::{Check, WorkerKey};

use crate::rng::Rng;

/// How a worker behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// It is healthy and answers.
    Good,
    /// It is healthy and takes its time.
    Slow,
    /// It answers its checks with 204.
    Loading,
    /// It fails checks and requests.
    Sick,
    /// It is healthy by its checks, accepts no connections of requests, or closes them.
    Lying,
    /// Each check and each request may fail.
    Flaky,
}

impl Mood {
    /// A random mood.
    pub(super) fn any(rng: &mut Rng) -> Self {
        *rng.pick(&[Self::Good, Self::Good, Self::Slow, Self::Loading, Self::Sick, Self::Lying, Self::Flaky])
    }
}

/// How a request ends at a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) after_ms: u64,
    /// Whether a part of the request was sent.
    pub(super) is_sent: bool,
    pub(super) is_answered: bool,
}

impl Outcome {
    /// The worker exited with the request.
    pub(super) const CLOSED: Self = Self { after_ms: 0, is_sent: true, is_answered: false };
}

/// A worker.
#[derive(Debug)]
pub(super) struct Server {
    /// The key in the balance; `None` after the exit.
    pub(super) key: Option<WorkerKey>,
    pub(super) mood: Mood,
    pub(super) is_drained: bool,
    /// When a drained worker exits, in ms.
    pub(super) exits_at: Option<u64>,
    /// How the requests at this worker end.
    pub(super) outcomes: BTreeMap<u64, Outcome>,
}

impl Server {
    pub(super) fn with(mood: Mood) -> Self {
        Self { key: None, mood, is_drained: false, exits_at: None, outcomes: BTreeMap::new() }
    }

    /// The result of a health check.
    pub(super) fn check(&self, rng: &mut Rng) -> Check {
        match self.mood {
            Mood::Good | Mood::Slow | Mood::Lying => Check::Healthy,
            Mood::Loading => Check::Initializing,
            Mood::Sick => Check::Failed,
            Mood::Flaky => *rng.pick(&[Check::Healthy, Check::Initializing, Check::Failed, Check::Failed]),
        }
    }

    /// How the next request ends.
    pub(super) fn outcome(&self, rng: &mut Rng) -> Outcome {
        let is_good = match self.mood {
            Mood::Good | Mood::Slow | Mood::Loading => true,
            Mood::Sick | Mood::Lying => false,
            Mood::Flaky => rng.chance(0.5),
        };
        let longest_ms = if self.mood == Mood::Slow { 60_000 } else { 2_000 };
        let after_ms = rng.skewed(1..=longest_ms);
        Outcome { after_ms, is_sent: is_good || rng.chance(0.5), is_answered: is_good }
    }
}
