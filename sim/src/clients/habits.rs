//! How one client behaves: drawn when it begins, widely different from client to client.

use std::time::Duration;

use crate::dice::Dice;

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
pub(super) struct Habits {
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

impl Habits {
    /// Of a world in which everybody takes so many times as long as in the fastest.
    pub(super) fn draw(dice: &mut Dice, slowness: u64) -> Self {
        let mut eagerness =
            EAGERNESS_MAX.map(|(_, most)| if dice.chance(0.3) { 0 } else { dice.skewed(0..=most) });
        eagerness[0] += dice.range(5..=50);
        // One purge undoes what many clients did.
        if dice.chance(0.7) {
            eagerness[PURGE] = 0;
        }
        let share = |dice: &mut Dice| if dice.chance(0.3) { 0.0 } else { dice.range(0..=100) as f64 / 100.0 };
        Self {
            hands: dice.skewed(1..=16),
            open_max: dice.skewed(3..=1_000),
            is_patient: dice.chance(0.7),
            promises: share(dice),
            policies: share(dice),
            webhooks: share(dice),
            input_bytes_max: dice.skewed(1..=20_000),
            uses_sdk: share(dice),
            eagerness,
            pause_ms_max: dice.skewed(10..=20_000) * slowness,
            burst_max: dice.skewed(1..=100),
            look_ms_max: dice.skewed(50..=10_000) * slowness,
        }
    }

    /// The next thing to do.
    pub(super) fn action(&self, dice: &mut Dice) -> Action {
        // There is at least some eagerness to hand in jobs.
        let mut at = dice.range(1..=self.eagerness.iter().sum());
        for ((action, _), eagerness) in EAGERNESS_MAX.iter().zip(self.eagerness) {
            if at <= eagerness {
                return *action;
            }
            at -= eagerness;
        }
        Action::Run
    }

    /// How long a hand rests.
    pub(super) fn pause(&self, dice: &mut Dice) -> Duration {
        Duration::from_millis(dice.skewed(1..=self.pause_ms_max))
    }

    /// How many things it does then without a pause.
    pub(super) fn burst(&self, dice: &mut Dice) -> u64 {
        if dice.chance(0.2) { dice.skewed(1..=self.burst_max) } else { 1 }
    }

    /// How long until it looks at the next of its jobs.
    pub(super) fn look_ms(&self, dice: &mut Dice) -> u64 {
        dice.range(1..=self.look_ms_max)
    }
}
