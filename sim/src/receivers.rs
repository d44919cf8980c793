//! Receivers of webhook calls, each with its own speed and reliability.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::faults::Fault;
use crate::observation::Observation;
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::world::World;

/// Number of receivers: `receiver-0.test` and so on.
pub const RECEIVERS: u64 = 6;

/// Longest response time of a slow receiver, in ms; longer than a call's timeout.
const SLOW_MS_MAX: u64 = 30_000;
/// Longest time for which a receiver is down, in ms.
const DOWN_MS_MAX: u64 = 120_000;

/// All receivers. Cheap to clone.
#[derive(Clone)]
pub struct Receivers {
    shared: Arc<ReceiversShared>,
}

struct ReceiversShared {
    world: World,
    last_call: AtomicU64,
    state: Mutex<ReceiversState>,
}

struct ReceiversState {
    rng: Rng,
    receivers: Vec<Receiver>,
}

struct Receiver {
    /// Longest response time without a fault, in ms.
    takes_ms_max: u64,
    /// The status that the receiver returns with a fault.
    error: StatusCode,
    down_until: Option<Instant>,
}

/// What a receiver does with a call.
enum Behaviour {
    Down,
    Answer(Duration, StatusCode),
}

impl Receivers {
    /// Creates receivers with random properties.
    pub fn new(world: &World, rng: &mut Rng) -> Self {
        let errors =
            [500, 503, 404, 302, 201, 204].map(|code| StatusCode::from_u16(code).unwrap_or_default());
        let receiver =
            |_| Receiver { takes_ms_max: rng.skewed(0..=3_000), error: *rng.pick(&errors), down_until: None };
        let receivers = (0..RECEIVERS).map(receiver).collect();
        let state = Mutex::new(ReceiversState { rng: rng.fork(), receivers });
        Self {
            shared: Arc::new(ReceiversShared { world: world.clone(), last_call: AtomicU64::new(0), state }),
        }
    }

    /// Calls a receiver. Dropping the future disconnects.
    ///
    /// # Errors
    ///
    /// A text if no receiver has this host, or if the receiver is down. The receiver did not get the call then, and
    /// the caller may repeat it.
    pub async fn deliver(&self, request: http::Request<Bytes>) -> Result<StatusCode, String> {
        let ReceiversShared { world, last_call, .. } = &*self.shared;
        let number = last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let (parts, body) = request.into_parts();
        world.record.observe(&Observation::Called(number, parts.uri.to_string(), body));
        let mut call = Call { record: &world.record, number, is_over: false };
        let conduct = self.conduct(parts.uri.host().unwrap_or_default());
        match conduct {
            None => Err("no such host".to_owned()),
            Some(Behaviour::Down) => Err("connection refused".to_owned()),
            Some(Behaviour::Answer(after, status)) => {
                if !after.is_zero() {
                    sleep(after).await;
                }
                call.is_over = true;
                world.record.observe(&Observation::CallAnswered(number, status.as_u16()));
                Ok(status)
            }
        }
    }

    fn conduct(&self, host: &str) -> Option<Behaviour> {
        let at: usize = host.strip_prefix("receiver-")?.strip_suffix(".test")?.parse().ok()?;
        let faults = &self.shared.world.faults;
        let mut state = self.state();
        let ReceiversState { rng, receivers } = &mut *state;
        let receiver = receivers.get_mut(at)?;
        if faults.inject(Fault::ReceiverDown) {
            let down = rng.skewed(1..=DOWN_MS_MAX);
            receiver.down_until = Some(Instant::now() + Duration::from_millis(down));
        }
        if receiver.down_until.is_some_and(|end| end > Instant::now()) && !faults.are_over() {
            return Some(Behaviour::Down);
        }
        let slow = faults.inject(Fault::ReceiverSlow);
        let takes_ms = rng.range(0..=if slow { SLOW_MS_MAX } else { receiver.takes_ms_max });
        let status = if faults.inject(Fault::ReceiverFails) { receiver.error } else { StatusCode::OK };
        Some(Behaviour::Answer(Duration::from_millis(takes_ms), status))
    }

    fn state(&self) -> MutexGuard<'_, ReceiversState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in flight.
struct Call<'a> {
    record: &'a Recorder,
    number: u64,
    is_over: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.record.observe(&Observation::CallBroken(self.number));
        }
    }
}
