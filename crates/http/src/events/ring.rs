//! The events of the last minute, in their order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::EndpointId;
use serde_json::Value;
use tokio::time::Instant;

use super::topic::Topic;

/// How long an event is kept for readers that come back.
pub(super) const KEPT_FOR: Duration = Duration::from_mins(1);
/// Most bytes of kept events.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What an event takes in memory beside its bytes.
const EVENT_OVERHEAD_BYTES: usize = 128;

/// A numbered change that readers are told, with the lines that they get.
#[derive(Debug)]
pub(super) struct Event {
    /// Increases by one from event to event.
    pub(super) seq: u64,
    pub(super) topic: Topic,
    /// The endpoint that the event is about; `None` for an event about the server.
    pub(super) endpoint: Option<EndpointId>,
    /// The lines of the event, with the empty one at its end.
    pub(super) bytes: Bytes,
    /// When it was added.
    pub(super) at: Instant,
}

impl Event {
    /// The data; `None` if it is not JSON, which no event is.
    pub(super) fn data(&self) -> Option<Value> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        serde_json::from_str(text.lines().find_map(|line| line.strip_prefix("data: "))?).ok()
    }
}

/// The newest events. The numbers of events grow over restarts of the server, so that a reader cannot mistake an event of
/// this server for one of an earlier server.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number of the last event, or the number before the first one.
    last: u64,
    /// The number of the last event that is no longer kept.
    dropped: u64,
}

impl Ring {
    /// Returns an empty ring whose first event gets the number `last + 1`.
    pub(super) fn new(last: u64) -> Self {
        Self { events: VecDeque::new(), bytes: 0, last, dropped: last }
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Adds an event with this JSON as its data, and drops old ones.
    pub(super) fn push(&mut self, now: Instant, topic: Topic, endpoint: Option<EndpointId>, json: &str) {
        self.last += 1;
        let bytes = lines(topic, self.last, json);
        let event = Event { seq: self.last, topic, endpoint, bytes, at: now };
        self.bytes += size(&event);
        self.events.push_back(Arc::new(event));
        self.forget(now);
    }

    /// Drops the events that are too old or too many.
    pub(super) fn forget(&mut self, now: Instant) {
        let is_over = |bytes: usize, oldest: &Event| {
            bytes > KEPT_BYTES_MAX || now.saturating_duration_since(oldest.at) > KEPT_FOR
        };
        while let Some(oldest) = self.events.pop_front_if(|oldest| is_over(self.bytes, oldest)) {
            self.bytes -= size(&oldest);
            self.dropped = oldest.seq;
        }
    }

    /// Drops all events. A reader that comes back with the number of any of them is not resumed.
    pub(super) fn clear(&mut self) {
        // The number that is left out is the last one of no event.
        *self = Self::new(self.last + 1);
    }

    /// Whether every event after this number is kept.
    pub(super) fn has_all_after(&self, seq: u64) -> bool {
        (self.dropped..=self.last).contains(&seq)
    }

    /// The events after this number that are kept, oldest first.
    pub(super) fn after(&self, seq: u64) -> impl Iterator<Item = &Arc<Event>> {
        let first = self.events.partition_point(|event| event.seq <= seq);
        self.events.range(first..)
    }
}

/// The lines of an event with this JSON as its data.
pub(super) fn lines(topic: Topic, seq: u64, json: &str) -> Bytes {
    format!("event: {}\nid: {seq}\ndata: {json}\n\n", topic.event_name()).into()
}

fn size(event: &Event) -> usize {
    event.bytes.len() + EVENT_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(ring: &Ring, after: u64) -> Vec<u64> {
        ring.after(after).map(|event| event.seq).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_a_minute_and_eight_mebibytes() {
        let mut ring = Ring::new(100);
        let began = Instant::now();
        ring.push(began, Topic::Jobs, None, "1");
        ring.push(began + Duration::from_secs(30), Topic::Jobs, None, "2");
        assert_eq!((seqs(&ring, 100), ring.has_all_after(100)), (vec![101, 102], true));
        ring.forget(began + Duration::from_secs(61));
        assert_eq!(
            (seqs(&ring, 101), ring.has_all_after(100), ring.has_all_after(101)),
            (vec![102], false, true)
        );
        assert!(ring.has_all_after(102) && !ring.has_all_after(103), "a number of another server");
        let large = "x".repeat(1024 * 1024);
        for _ in 0..20 {
            ring.push(began, Topic::Jobs, None, &large);
        }
        assert!(ring.bytes <= KEPT_BYTES_MAX && ring.events.len() == 7, "{} events", ring.events.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cleared_ring_resumes_no_reader() {
        let mut ring = Ring::new(100);
        ring.push(Instant::now(), Topic::Jobs, None, "1");
        ring.clear();
        assert!(!ring.has_all_after(100) && !ring.has_all_after(101));
        let hello = ring.last();
        ring.push(Instant::now(), Topic::Jobs, None, "2");
        assert!(ring.has_all_after(hello));
        assert_eq!(seqs(&ring, hello), [hello + 1]);
    }
}
