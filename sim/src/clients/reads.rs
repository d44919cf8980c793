//! Clients read jobs, streams and lists.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Client;
use super::client_state::KnownJob;
use crate::raw_http::{get, post};

/// Most polls of one stream.
const POLLS_MAX: u64 = 30;
/// Most pages of one list.
const PAGES_MAX: u64 = 5;

impl Client {
    /// Requests the status of a job once.
    pub(super) async fn read_status(&self, known: &KnownJob) {
        let (path, posts) = {
            let mut rng = self.rng();
            (format!("{}/status/{}", self.mount(&known.endpoint, &mut rng), known.job), rng.chance(0.05))
        };
        let request = if posts { post(path, &self.credential, "") } else { get(path, &self.credential) };
        if let Some(answer) = self.ask(request).await {
            self.note(known, &answer);
        }
    }

    pub(super) async fn read_any_status(&self) {
        if let Some(known) = self.any() {
            self.read_status(&known).await;
        }
    }

    /// Waits for a job with `status-sync`.
    pub(super) async fn wait_for_any(&self) {
        let Some(known) = self.any() else { return };
        let path = {
            let mut rng = self.rng();
            let base = self.mount(&known.endpoint, &mut rng);
            format!("{base}/status-sync/{}?wait={}", known.job, rng.skewed(1_000..=300_000))
        };
        if let Some(answer) = self.ask(get(path, &self.credential)).await {
            self.note(&known, &answer);
        }
    }

    /// Reads a stream destructively, as the client libraries do, until it ends.
    pub(super) async fn drain_any(&self) {
        let Some(known) = self.any() else { return };
        let polls = self.rng().range(1..=POLLS_MAX);
        for _ in 0..polls {
            let (path, enveloped) = {
                let mut rng = self.rng();
                let base = self.mount(&known.endpoint, &mut rng);
                let wait =
                    if rng.chance(0.3) { format!("?wait={}", rng.skewed(0..=20_000)) } else { String::new() };
                (format!("{base}/stream/{}{wait}", known.job), base.starts_with("/sdk"))
            };
            let Some(answer) = self.ask(get(path, &self.credential)).await else { continue };
            if answer.status != 200 {
                return;
            }
            let page = StreamReply::read(&answer.body, enveloped);
            if page.is_last || (page.chunks == 0 && self.rng().chance(0.3)) {
                return;
            }
        }
    }

    /// Reads a stream from an offset, as one of several readers.
    pub(super) async fn read_any(&self) {
        let Some(known) = self.any() else { return };
        let (polls, mut offset) = {
            let mut rng = self.rng();
            (rng.range(1..=POLLS_MAX), if rng.chance(0.2) { rng.range(0..=10) } else { 0 })
        };
        for _ in 0..polls {
            let (path, enveloped) = {
                let mut rng = self.rng();
                let base = self.mount(&known.endpoint, &mut rng);
                let wait = rng.skewed(0..=20_000);
                (format!("{base}/stream/{}?offset={offset}&wait={wait}", known.job), base.starts_with("/sdk"))
            };
            let Some(answer) = self.ask(get(path, &self.credential)).await else { continue };
            if answer.status != 200 {
                return;
            }
            let page = StreamReply::read(&answer.body, enveloped);
            offset += page.chunks;
            if page.is_last || (page.chunks == 0 && self.rng().chance(0.3)) {
                return;
            }
        }
    }

    /// Reads the pages of `/requests`.
    pub(super) async fn list(&self) {
        let first = {
            let mut rng = self.rng();
            let Some(endpoint) = self.endpoints.pick(&mut rng) else { return };
            let status = match rng.range(0..=9) {
                0 => "&status=IN_QUEUE",
                1 => "&status=COMPLETED",
                2 => "&status=CANCELLED",
                _ => "",
            };
            format!("{}/requests?limit={}{status}", self.base(&endpoint, &mut rng), rng.skewed(1..=200))
        };
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let Some(answer) = self.ask(get(format!("{first}{cursor}"), &self.credential)).await else {
                return;
            };
            let Some(next) = next_page(&answer.body).filter(|_| answer.status == 200) else { return };
            cursor = format!("&cursor={next}");
        }
    }

    pub(super) async fn health(&self) {
        let path = {
            let mut rng = self.rng();
            let Some(endpoint) = self.endpoints.pick(&mut rng) else { return };
            self.base(&endpoint, &mut rng) + "/health"
        };
        self.ask(get(path, &self.credential)).await;
    }

    pub(super) fn any(&self) -> Option<KnownJob> {
        let (mut rng, mut state) = (self.rng(), self.state());
        state.pick(&mut rng)
    }
}

/// The parts of a stream response that a reader needs.
struct StreamReply {
    chunks: u64,
    is_last: bool,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    status: std::borrow::Cow<'a, str>,
    stream: Vec<IgnoredAny>,
}

impl StreamReply {
    fn read(body: &[u8], enveloped: bool) -> Self {
        if !enveloped {
            let chunks: Vec<IgnoredAny> = serde_json::from_slice(body).unwrap_or_default();
            return Self { chunks: chunks.len() as u64, is_last: false };
        }
        match serde_json::from_slice::<Envelope<'_>>(body) {
            Ok(page) => Self {
                chunks: page.stream.len() as u64,
                is_last: page.stream.is_empty() && !matches!(&*page.status, "IN_QUEUE" | "IN_PROGRESS"),
            },
            Err(_) => Self { chunks: 0, is_last: true },
        }
    }
}

/// The cursor of the next page; `None` on the last page.
fn next_page(body: &[u8]) -> Option<&str> {
    let tail = std::str::from_utf8(&body[body.len().saturating_sub(200)..]).ok()?;
    tail.rsplit_once("\"cursor\":\"")?.1.strip_suffix("\"}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_cursor() {
        assert_eq!(next_page(br#"{"requests":[],"cursor":"abc"}"#), Some("abc"));
        assert_eq!(next_page(br#"{"requests":[],"cursor":null}"#), None);
    }

    #[test]
    fn a_stream_is_over_when_it_is_empty_and_its_job_is() {
        let read = |body: &str| {
            let page = StreamReply::read(body.as_bytes(), true);
            (page.chunks, page.is_last)
        };
        assert_eq!(read(r#"{"status":"COMPLETED","stream":[]}"#), (0, true));
        assert_eq!(read(r#"{"status":"COMPLETED","stream":[{"output":1}]}"#), (1, false));
        assert_eq!(read(r#"{"status":"IN_QUEUE","stream":[]}"#), (0, false));
        assert_eq!(StreamReply::read(br#"[{"output":1},{"output":2}]"#, false).chunks, 2);
    }
}
