//! How one client behaves: drawn when it begins, widely different from client to client.

use std::time::Duration;

use crate::rng::Rng;

/// What a client may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Run,
    Runsync,
    /// Sends a submit again that has an `Idempotency-Key`.
    Resend,
    Status,
    StatusSync,
    /// `status?ttl=`.
    Keep,
    /// Reads a stream and drains it.
    Drain,
    /// Reads a stream from an offset.
    Read,
    /// Follows a job by its events.
    Follow,
    Cancel,
    Retry,
    Purge,
    Requests,
    Health,
    Nonsense,
}

/// Everything, and how eager the most eager client is for it.
const EAGERNESS_MAX: [(Action, u64); 15] = [
    (Action::Run, 100),
    (Action::Runsync, 40),
    (Action::Resend, 15),
    (Action::Status, 60),
    (Action::StatusSync, 15),
    (Action::Keep, 5),
    (Action::Drain, 20),
    (Action::Read, 20),
    (Action::Follow, 20),
    (Action::Cancel, 20),
    (Action::Retry, 20),
    (Action::Purge, 2),
    (Action::Requests, 10),
    (Action::Health, 10),
    (Action::Nonsense, 15),
];

/// Where the purge is among them.
const PURGE: usize = 11;

/// What one client is like.
#[derive(Clone, Debug)]
pub(super) struct ClientProfile {
    /// How many things it does at once.
    pub(super) hands: u64,
    /// It hands in nothing while so many of its jobs are open.
    pub(super) open_max: u64,
    /// It waits after a 429.
    pub(super) is_patient: bool,
    /// How likely a submit has an `Idempotency-Key`.
    pub(super) promises: f64,
    /// How likely a job has a policy, and a webhook.
    pub(super) policies: f64,
    pub(super) webhooks: f64,
    pub(super) input_bytes_max: u64,
    /// How likely it uses the paths of the client libraries.
    pub(super) uses_sdk: f64,
    eagerness: [u64; EAGERNESS_MAX.len()],
    pause_ms_max: u64,
    burst_max: u64,
    look_ms_max: u64,
}

impl ClientProfile {
    /// Of a world in which everybody takes so many times as long as in the fastest.
    pub(super) fn draw(rng: &mut Rng, slowness: u64) -> Self {
        let mut eagerness =
            EAGERNESS_MAX.map(|(_, most)| if rng.chance(0.3) { 0 } else { rng.skewed(0..=most) });
        eagerness[0] += rng.range(5..=50);
        // One purge undoes what many clients did.
        if rng.chance(0.7) {
            eagerness[PURGE] = 0;
        }
        let share = |rng: &mut Rng| if rng.chance(0.3) { 0.0 } else { rng.range(0..=100) as f64 / 100.0 };
        Self {
            hands: rng.skewed(1..=16),
            open_max: rng.skewed(3..=1_000),
            is_patient: rng.chance(0.7),
            promises: share(rng),
            policies: share(rng),
            webhooks: share(rng),
            input_bytes_max: rng.skewed(1..=20_000),
            uses_sdk: share(rng),
            eagerness,
            pause_ms_max: rng.skewed(10..=20_000) * slowness,
            burst_max: rng.skewed(1..=100),
            look_ms_max: rng.skewed(50..=10_000) * slowness,
        }
    }

    /// The next thing to do.
    pub(super) fn action(&self, rng: &mut Rng) -> Action {
        // There is at least some eagerness to hand in jobs.
        let mut at = rng.range(1..=self.eagerness.iter().sum());
        for ((action, _), eagerness) in EAGERNESS_MAX.iter().zip(self.eagerness) {
            if at <= eagerness {
                return *action;
            }
            at -= eagerness;
        }
        Action::Run
    }

    /// How long a hand rests.
    pub(super) fn pause(&self, rng: &mut Rng) -> Duration {
        Duration::from_millis(rng.skewed(1..=self.pause_ms_max))
    }

    /// How many things it does then without a pause.
    pub(super) fn burst(&self, rng: &mut Rng) -> u64 {
        if rng.chance(0.2) { rng.skewed(1..=self.burst_max) } else { 1 }
    }

    /// How long until it looks at the next of its jobs.
    pub(super) fn look_ms(&self, rng: &mut Rng) -> u64 {
        rng.range(1..=self.look_ms_max)
    }
}
