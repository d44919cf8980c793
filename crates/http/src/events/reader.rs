//! One reader of events: a position in the ring, and what its key may see.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::TrackedKey;
use longshore_model::{ApiKey, EndpointId, JobId, Millis, Permission};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::hub::Place;
use super::ring::{Event, Ring, lines};
use super::topic::Topic;
use crate::HttpState;
use crate::gate::auth::{OngoingKey, now_for};
use crate::gate::caller::Caller;
use crate::wire::sse::{KEEP_ALIVE, Next};

/// Most bytes of events that may wait for a reader for longer than [`LATE`]. With more, it gets `gap` in their place.
pub(super) const WAITING_BYTES_MAX: usize = 256 * 1024;
/// Younger events do not count as waiting: on a server with many endpoints, more than the most are added together.
const LATE: Duration = Duration::from_secs(2);
/// Bytes after which a part of the response ends.
const PART_BYTES: usize = 64 * 1024;
/// How often a reader without events checks that its key still holds.
const CHECK: Duration = Duration::from_secs(1);

/// Which events a reader wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) topics: Vec<Topic>,
    /// Only the events of this endpoint.
    pub(super) endpoint: Option<EndpointId>,
    /// A job whose changes are told by themselves.
    pub(super) job: Option<(EndpointId, JobId)>,
}

impl Wanted {
    fn includes(&self, event: &Event) -> bool {
        self.topics.contains(&event.topic.named())
            && self.endpoint.is_none_or(|endpoint| event.endpoint == Some(endpoint))
    }

    /// The event of the wanted job that a `jobs` event has: its row, or `unknown` if the job may be one of those that are only
    /// counted.
    fn job_event(&self, event: &Event) -> Option<Bytes> {
        let (endpoint, job) = self.job.filter(|(endpoint, _)| event.endpoint == Some(*endpoint))?;
        if event.topic != Topic::Jobs {
            return None;
        }
        let data = event.data()?;
        let id = job.to_string();
        let row = data["changed"].as_array()?.iter().find(|row| row["id"] == *id);
        let mut told = match row {
            Some(row) => row.clone(),
            None if data["more"].as_u64() > Some(0) => json!({ "id": id, "unknown": true }),
            None => return None,
        };
        told["endpoint"] = json!(endpoint);
        Some(format!("event: job\nid: {}\ndata: {told}\n\n", event.seq).into())
    }
}

/// A response of events in progress.
pub(super) struct Reader {
    state: HttpState,
    access: OngoingKey,
    wanted: Wanted,
    /// The number of the last event that was sent, or is not for this reader.
    at: u64,
    /// The events up to this number were there when the reader came back. It may read them as slowly as it wants.
    resumed_until: u64,
    changed: watch::Receiver<u64>,
    /// When something was sent last.
    sent_at: Instant,
    /// The first event, until it is sent.
    hello: Option<Bytes>,
    _place: Place,
}

/// What a look into the ring found.
enum Found {
    Events(Vec<Bytes>),
    /// Events were missed: all up to the present one are left out.
    Gap,
}

impl Reader {
    /// Returns a reader at its position. `last` is the number of the last event that it got on an earlier connection.
    pub(super) fn new(
        state: HttpState,
        caller: &Caller,
        wanted: Wanted,
        last: Option<u64>,
        place: Place,
    ) -> Self {
        let events = Arc::clone(state.events());
        let changed = events.subscribe();
        let position = |ring: &Ring| (ring.last(), last.filter(|seq| ring.has_all_after(*seq)));
        let (present, resumed) = events.with_ring(position);
        let at = resumed.unwrap_or(present);
        let data = json!({ "seq": at, "server": env!("CARGO_PKG_VERSION"), "resumed": resumed.is_some() });
        Self {
            hello: Some(format!("event: hello\nid: {at}\ndata: {data}\n\n").into()),
            access: OngoingKey::of(caller),
            state,
            wanted,
            at,
            resumed_until: present,
            changed,
            sent_at: Instant::now(),
            _place: place,
        }
    }

    /// The bytes of the next events. The response ends when the key or the session does, and when the server stops.
    pub(super) fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            loop {
                let key = self.access.key(&self.state).filter(|_| !self.state.engine().is_stopping())?;
                let mut parts: Vec<_> = self.hello.take().into_iter().collect();
                self.changed.mark_unchanged();
                match self.look(&key) {
                    Found::Events(events) => parts.extend(events),
                    Found::Gap => parts.push(self.skip()),
                }
                if parts.is_empty() && self.sent_at.elapsed() >= KEEP_ALIVE {
                    // The id moves on too: a reader that gets no event can come back after an hour.
                    parts.push(format!("id: {}\n: keep-alive\n\n", self.at).into());
                }
                if !parts.is_empty() {
                    self.sent_at = Instant::now();
                    return Some((parts, self));
                }
                // Woken by an event, or by the time: then the key is checked again.
                let _ = timeout(CHECK, self.changed.changed()).await;
            }
        })
    }

    /// Takes the next events from the ring, and moves on behind them.
    fn look(&mut self, key: &TrackedKey) -> Found {
        let now = now_for(key, &self.state);
        let events = Arc::clone(self.state.events());
        events.with_ring(|ring| {
            let wanted = &self.wanted;
            let gets = |event: &Event| {
                wanted.includes(event) && event.topic.is_permitted(key, event.endpoint.as_ref(), now)
            };
            let is_late = |event: &Event| event.at.elapsed() > LATE;
            let waiting = ring.after(self.at.max(self.resumed_until)).take_while(|event| is_late(event));
            let waiting = waiting.filter(|event| gets(event));
            let waiting_bytes: usize = waiting.map(|event| event.bytes.len()).sum();
            if !ring.has_all_after(self.at) || waiting_bytes > WAITING_BYTES_MAX {
                return Found::Gap;
            }
            let (mut parts, mut bytes) = (Vec::new(), 0);
            for event in ring.after(self.at) {
                if bytes >= PART_BYTES {
                    break;
                }
                self.at = event.seq;
                let is_permitted = event.topic.is_permitted(key, event.endpoint.as_ref(), now);
                if let Some(told) = wanted.job_event(event).filter(|_| is_permitted) {
                    bytes += told.len();
                    parts.push(told);
                }
                if gets(event) {
                    let told = for_key(event, key, now);
                    bytes += told.len();
                    parts.push(told);
                }
            }
            Found::Events(parts)
        })
    }

    /// Moves on behind the last event, and returns the event that says so.
    fn skip(&mut self) -> Bytes {
        let to = self.state.events().with_ring(Ring::last);
        self.state.events().count_dropped(to.saturating_sub(self.at));
        let data = json!({ "from": self.at + 1, "to": to });
        self.at = to;
        format!("event: gap\nid: {to}\ndata: {data}\n\n").into()
    }
}

/// The lines of an event as this key gets them: the actions of a problem are for keys that may do them.
fn for_key(event: &Event, key: &ApiKey, now: Millis) -> Bytes {
    let hides_actions = event.topic == Topic::Attention
        && !key.permits(Permission::WriteCatalog, event.endpoint.as_ref(), now);
    let data = if hides_actions { event.data() } else { None };
    match data {
        Some(mut problem) if problem.get("actions").is_some() => {
            problem["actions"] = json!([]);
            lines(event.topic, event.seq, &problem.to_string())
        }
        _ => event.bytes.clone(),
    }
}
