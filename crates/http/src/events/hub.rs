//! The events of a server: the ring, the number of its readers, and whether they are collected.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_engine::Health;
use longshore_model::EndpointId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::reader_counts::ReaderCounts;
use super::reads::{Read, Reads};
use super::ring::{KEPT_FOR, Ring};
use super::topic::Topic;
use crate::wire::api_error::ApiError;

/// Numbers of events begin at the time of the server's start, in ms, times this. Fewer events than this happen in a
/// millisecond.
const NUMBERS_PER_MS: u64 = 1_000;

/// The events of one server. One per server.
pub(crate) struct EventHub {
    state: Mutex<HubState>,
    /// The number of the last event, for readers that wait for the next one.
    last: watch::Sender<u64>,
    /// The events in the gaps of all readers.
    dropped: AtomicU64,
    /// What was read since the collector looked last.
    reads: Reads,
}

struct HubState {
    ring: Ring,
    readers: ReaderCounts,
    /// When the last reader left.
    left_at: Instant,
    /// Whether the task that collects events runs.
    is_collecting: bool,
    /// Whether a reader came that has to be told every state.
    has_new_reader: bool,
}

/// An event that has no number yet.
pub(crate) struct Draft {
    pub(crate) topic: Topic,
    pub(crate) endpoint: Option<EndpointId>,
    /// The data, on one line.
    pub(crate) json: String,
}

/// The place of one reader, which is given back when it is dropped.
pub(super) struct Place {
    hub: Arc<EventHub>,
    key: String,
}

impl EventHub {
    /// Returns a hub without events. `now_ms` is the time in ms since the epoch.
    pub(crate) fn new(now_ms: u64) -> Self {
        let first = now_ms.saturating_mul(NUMBERS_PER_MS);
        let state = HubState {
            ring: Ring::new(first),
            readers: ReaderCounts::default(),
            left_at: Instant::now(),
            is_collecting: false,
            has_new_reader: false,
        };
        Self {
            state: Mutex::new(state),
            last: watch::Sender::new(first),
            dropped: AtomicU64::new(0),
            reads: Reads::default(),
        }
    }

    /// Takes a place for a reader with this key. If nothing is collected, calls `collect`, which must not wait.
    ///
    /// # Errors
    ///
    /// `too_many_readers` if there is no place.
    pub(super) fn join(self: &Arc<Self>, key: &str, collect: impl FnOnce()) -> Result<Place, ApiError> {
        let mut hub = self.lock();
        hub.readers.add(key)?;
        hub.has_new_reader = true;
        if !hub.is_collecting {
            hub.is_collecting = true;
            collect();
        }
        Ok(Place { hub: Arc::clone(self), key: key.to_owned() })
    }

    /// Whether a reader is there, or can come back. If not, the events are dropped, `stop` is called, and the collector has
    /// to end.
    pub(crate) fn is_needed(&self, now: Instant, stop: impl FnOnce()) -> bool {
        let mut hub = self.lock();
        let is_needed = hub.readers.total() > 0 || now.saturating_duration_since(hub.left_at) <= KEPT_FOR;
        if !is_needed {
            hub.ring.clear();
            hub.is_collecting = false;
            // A reader that joins next starts collecting again.
            stop();
            self.last.send_replace(hub.ring.last());
        }
        is_needed
    }

    /// Whether a reader came since the last call.
    pub(crate) fn has_new_reader(&self) -> bool {
        std::mem::take(&mut self.lock().has_new_reader)
    }

    /// Notes what was read of an endpoint. To be called after the state was read, which the collector compares with what it sees
    /// later.
    pub(crate) fn note_read(&self, endpoint: EndpointId, read: impl FnOnce() -> Read) {
        if self.lock().is_collecting {
            self.reads.add(endpoint, read());
        }
    }

    /// Notes that the numbers of an endpoint were read; see [`note_read`](Self::note_read).
    pub(crate) fn note_health(&self, endpoint: EndpointId, health: &Health) {
        self.note_read(endpoint, || Read::of_health(health));
    }

    /// What was noted since the last call.
    pub(crate) fn take_reads(&self) -> HashMap<EndpointId, Read> {
        self.reads.take()
    }

    /// Adds events, and wakes the readers.
    pub(crate) fn publish(&self, drafts: Vec<Draft>) {
        let mut hub = self.lock();
        let now = Instant::now();
        hub.ring.forget(now);
        if drafts.is_empty() {
            return;
        }
        for Draft { topic, endpoint, json } in drafts {
            hub.ring.push(now, topic, endpoint, &json);
        }
        self.last.send_replace(hub.ring.last());
    }

    /// Calls `read` with the ring. It must not take long: the collector waits for it.
    pub(super) fn with_ring<T>(&self, read: impl FnOnce(&Ring) -> T) -> T {
        read(&self.lock().ring)
    }

    /// Wakes when there are later events than at the last call.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Counts events that a reader did not get, because it was too slow or away for too long.
    pub(super) fn count_dropped(&self, events: u64) {
        self.dropped.fetch_add(events, Ordering::Relaxed);
    }

    /// The number of events that readers did not get.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The number of readers.
    pub(crate) fn readers(&self) -> u32 {
        self.lock().readers.total()
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hub = self.hub.lock();
        hub.readers.remove(&self.key);
        hub.left_at = Instant::now();
    }
}
