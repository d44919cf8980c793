//! The behaviour of one client. It is drawn at the start and differs widely between clients.

use std::time::Duration;

use crate::rng::Rng;

/// The actions of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Run,
    Runsync,
    /// Sends a submit with an `Idempotency-Key` again.
    Resend,
    Status,
    StatusSync,
    /// Changes a job's deletion time with `status?ttl=`.
    Keep,
    /// Reads a stream destructively.
    Drain,
    /// Reads a stream from an offset.
    Read,
    /// Follows a job by server-sent events.
    Follow,
    Cancel,
    Retry,
    Purge,
    Requests,
    Health,
    Invalid,
}

/// All actions with the largest weight that a client may give each.
const WEIGHTS_MAX: [(Action, u64); 15] = [
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
    (Action::Invalid, 15),
];

/// Index of the purge in the list.
const PURGE: usize = 11;

/// The behaviour of one client.
#[derive(Clone, Debug)]
pub(super) struct ClientProfile {
    /// Number of concurrent tasks.
    pub(super) tasks: u64,
    /// Number of open jobs at which the client stops submitting.
    pub(super) open_max: u64,
    /// Whether the client waits after a 429.
    pub(super) is_patient: bool,
    /// Probability that a submit has an `Idempotency-Key`.
    pub(super) idempotency_keys: f64,
    /// Probability that a job has a policy, and that it has a webhook.
    pub(super) policies: f64,
    pub(super) webhooks: f64,
    pub(super) input_bytes_max: u64,
    /// Probability that a request uses the paths of the client libraries.
    pub(super) uses_sdk: f64,
    weights: [u64; WEIGHTS_MAX.len()],
    pause_ms_max: u64,
    burst_max: u64,
    poll_ms_max: u64,
}

impl ClientProfile {
    /// Draws a client. All clients of a world pause `slowness` times as long as in the fastest world.
    pub(super) fn draw(rng: &mut Rng, slowness: u64) -> Self {
        let mut weights = WEIGHTS_MAX.map(|(_, most)| if rng.chance(0.3) { 0 } else { rng.skewed(0..=most) });
        weights[0] += rng.range(5..=50);
        // One purge ends the jobs of many clients, so most clients never purge.
        if rng.chance(0.7) {
            weights[PURGE] = 0;
        }
        let share = |rng: &mut Rng| if rng.chance(0.3) { 0.0 } else { rng.range(0..=100) as f64 / 100.0 };
        Self {
            tasks: rng.skewed(1..=16),
            open_max: rng.skewed(3..=1_000),
            is_patient: rng.chance(0.7),
            idempotency_keys: share(rng),
            policies: share(rng),
            webhooks: share(rng),
            input_bytes_max: rng.skewed(1..=20_000),
            uses_sdk: share(rng),
            weights,
            pause_ms_max: rng.skewed(10..=20_000) * slowness,
            burst_max: rng.skewed(1..=100),
            poll_ms_max: rng.skewed(50..=10_000) * slowness,
        }
    }

    /// Draws the next action.
    pub(super) fn action(&self, rng: &mut Rng) -> Action {
        // The weight of submits is never 0.
        let mut at = rng.range(1..=self.weights.iter().sum());
        for ((action, _), weights) in WEIGHTS_MAX.iter().zip(self.weights) {
            if at <= weights {
                return *action;
            }
            at -= weights;
        }
        Action::Run
    }

    /// Draws the pause between two bursts.
    pub(super) fn pause(&self, rng: &mut Rng) -> Duration {
        Duration::from_millis(rng.skewed(1..=self.pause_ms_max))
    }

    /// Draws the number of actions without a pause.
    pub(super) fn burst(&self, rng: &mut Rng) -> u64 {
        if rng.chance(0.2) { rng.skewed(1..=self.burst_max) } else { 1 }
    }

    /// Draws the time until the next request for one of the client's jobs.
    pub(super) fn poll_ms(&self, rng: &mut Rng) -> u64 {
        rng.range(1..=self.poll_ms_max)
    }
}
