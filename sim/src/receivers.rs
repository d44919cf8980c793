//! Those whom webhooks call: each as fast and as reliable as it is.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::faults::Fault;
use crate::record::Record;
use crate::seen::Seen;
use crate::world::World;

/// How many there are: `receiver-0.test` and so on.
pub const RECEIVERS: u64 = 6;

/// How long a receiver takes at most when it is slow; longer than a call may.
const SLOW_MS_MAX: u64 = 30_000;
/// How long a receiver is down at most.
const DOWN_MS_MAX: u64 = 120_000;

/// All receivers. Cheap to clone.
#[derive(Clone)]
pub struct Receivers {
    shared: Arc<Shared>,
}

struct Shared {
    world: World,
    last_call: AtomicU64,
    state: Mutex<State>,
}

struct State {
    dice: Dice,
    receivers: Vec<Receiver>,
}

struct Receiver {
    /// How long it takes at most when nothing is wrong, in milliseconds.
    takes_ms_max: u64,
    /// What it answers when something is.
    error: StatusCode,
    down_until: Option<Instant>,
}

/// What a receiver does with a call.
enum Conduct {
    Down,
    Answer(Duration, StatusCode),
}

impl Receivers {
    /// As reliable as chance has it.
    pub fn new(world: &World, dice: &mut Dice) -> Self {
        let errors =
            [500, 503, 404, 302, 201, 204].map(|code| StatusCode::from_u16(code).unwrap_or_default());
        let receiver = |_| Receiver {
            takes_ms_max: dice.skewed(0..=3_000),
            error: *dice.pick(&errors),
            down_until: None,
        };
        let receivers = (0..RECEIVERS).map(receiver).collect();
        let state = Mutex::new(State { dice: dice.fork(), receivers });
        Self { shared: Arc::new(Shared { world: world.clone(), last_call: AtomicU64::new(0), state }) }
    }

    /// Calls a receiver. Dropping this hangs up.
    pub async fn deliver(&self, request: http::Request<Bytes>) -> Result<StatusCode, String> {
        let Shared { world, last_call, .. } = &*self.shared;
        let number = last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let (parts, body) = request.into_parts();
        world.record.see(&Seen::Called(number, parts.uri.to_string(), body));
        let mut call = Call { record: &world.record, number, is_over: false };
        let conduct = self.conduct(parts.uri.host().unwrap_or_default());
        match conduct {
            None => Err("no such host".to_owned()),
            Some(Conduct::Down) => Err("connection refused".to_owned()),
            Some(Conduct::Answer(after, status)) => {
                if !after.is_zero() {
                    sleep(after).await;
                }
                call.is_over = true;
                world.record.see(&Seen::CallAnswered(number, status.as_u16()));
                Ok(status)
            }
        }
    }

    fn conduct(&self, host: &str) -> Option<Conduct> {
        let at: usize = host.strip_prefix("receiver-")?.strip_suffix(".test")?.parse().ok()?;
        let faults = &self.shared.world.faults;
        let mut state = self.state();
        let State { dice, receivers } = &mut *state;
        let receiver = receivers.get_mut(at)?;
        if faults.strike(Fault::ReceiverDown) {
            let down = dice.skewed(1..=DOWN_MS_MAX);
            receiver.down_until = Some(Instant::now() + Duration::from_millis(down));
        }
        if receiver.down_until.is_some_and(|end| end > Instant::now()) && !faults.are_over() {
            return Some(Conduct::Down);
        }
        let slow = faults.strike(Fault::ReceiverSlow);
        let takes_ms = dice.range(0..=if slow { SLOW_MS_MAX } else { receiver.takes_ms_max });
        let status = if faults.strike(Fault::ReceiverFails) { receiver.error } else { StatusCode::OK };
        Some(Conduct::Answer(Duration::from_millis(takes_ms), status))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
struct Call<'a> {
    record: &'a Record,
    number: u64,
    is_over: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.record.see(&Seen::CallBroken(self.number));
        }
    }
}
