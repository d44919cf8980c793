//! Clients follow a job by server-sent events as the manual describes: a disconnected reader reconnects and names
//! the last chunk that it received.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Client;
use super::client_state::KnownJob;
use crate::events::EventReader;
use crate::observation::{HttpRequest, Party};
use crate::raw_http::{get, text_member};

/// Most connections of one reader.
const CONNECTIONS_MAX: u64 = 30;
/// Longest time of a reader that sees no end, in ms.
const FOLLOW_MS_MAX: u64 = 300_000;
/// Most pieces after which an impatient reader disconnects.
const PIECES_MAX: u64 = 30;
/// Longest pause before a reader reconnects, in ms.
const RECONNECT_MS_MAX: u64 = 10_000;

/// The position of a reader.
#[derive(Default)]
struct Place {
    first: Option<u64>,
    last: Option<u64>,
    /// The job's terminal state, if the reader has seen it.
    end: Option<String>,
}

impl Client {
    pub(super) async fn follow_any(&self) {
        let Some(known) = self.any() else { return };
        let (connections, first) = {
            let mut rng = self.rng();
            (rng.range(1..=CONNECTIONS_MAX), rng.chance(0.2).then(|| rng.range(0..=10)))
        };
        let mut place = Place { first, ..Place::default() };
        for _ in 0..connections {
            if !self.follow_once(&known, &mut place).await {
                return;
            }
            if let Some(state) = &place.end {
                return self.state().ended(&known, matches!(state.as_str(), "FAILED" | "TIMED_OUT"));
            }
            let pause_ms = self.rng().skewed(0..=RECONNECT_MS_MAX);
            sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    /// Reads one connection. Returns whether the reader should reconnect.
    async fn follow_once(&self, known: &KnownJob, place: &mut Place) -> bool {
        let request = self.request(known, place);
        let (follow_ms, mut pieces_left) = {
            let mut rng = self.rng();
            let disconnects = rng.chance(0.4);
            (
                rng.skewed(1_000..=FOLLOW_MS_MAX),
                if disconnects { rng.range(0..=PIECES_MAX) } else { u64::MAX },
            )
        };
        let mut reader = EventReader::default();
        let receive = |piece: &bytes::Bytes| {
            for event in reader.read(piece) {
                place.last = event.id.or(place.last);
                if event.name == "done" {
                    place.end = text_member(event.data.as_bytes(), "status").map(str::to_owned);
                }
            }
            pieces_left = pieces_left.saturating_sub(1);
            // After the end, the reader reads until the server closes the connection.
            pieces_left > 0 || place.end.is_some()
        };
        let from = Party::Client(self.number);
        let response = self.world.network.follow(from, request, receive);
        let Ok(Ok(answer)) = timeout(Duration::from_millis(follow_ms), response).await else { return true };
        self.wait_if_refused(&answer).await;
        if answer.status == 404 {
            self.state().gone(known);
        }
        matches!(answer.status, 200 | 429 | 503)
    }

    fn request(&self, known: &KnownJob, place: &Place) -> HttpRequest {
        let mut rng = self.rng();
        let base = self.mount(&known.endpoint, &mut rng);
        let offset = place.first.map(|first| format!("?offset={first}")).unwrap_or_default();
        let mut request = get(format!("{base}/stream/{}{offset}", known.job), &self.credential);
        request.headers.push(("accept", "text/event-stream".to_owned()));
        if let Some(last) = place.last {
            request.headers.push(("last-event-id", last.to_string()));
        }
        request
    }
}
