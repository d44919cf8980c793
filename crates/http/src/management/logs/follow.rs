//! The lines of an endpoint's workers as they are printed, as server-sent events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::EndpointHandle;
use longshore_model::{EndpointId, WorkerId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::appended::{Appended, AppendedLines, PIECE_BYTES, PIECE_BYTES_MIN};
use super::lines::Line;
use super::search::{Found, Search};
use super::{line_view, page_of, search_all, span_of};
use crate::HttpState;
use crate::events::reader_counts::ReaderPlace;
use crate::gate::auth::OngoingAccess;
use crate::management::workers::blocking;
use crate::services::files::FileService;
use crate::wire::sse::{COMMENT, KEEP_ALIVE, Next};

/// The interval between two looks at logs without new lines.
const PERIOD: Duration = Duration::from_millis(250);
/// Most bytes of all logs that a look reads, while each log gives more than a line.
const LOOK_BYTES: usize = 1 << 20;
/// Every how many looks the workers that ended are listed: some end before a look finds them running.
const LOOKS_PER_LIST: u32 = 8;

/// A response that follows the logs of an endpoint.
pub(super) struct Follower {
    state: HttpState,
    access: OngoingAccess,
    endpoint: EndpointHandle,
    wanted: WantedLines,
    logs: Logs,
    /// When something was sent last.
    sent_at: Instant,
    _place: ReaderPlace,
}

/// Which lines are wanted.
#[derive(Clone)]
pub(super) struct WantedLines {
    /// Only lines of this worker.
    pub(super) worker: Option<String>,
    /// Only lines that name this job, and those of its worker while it ran.
    pub(super) job: Option<String>,
    /// What else lines are looked for by. Its `limit` is that of the first page.
    pub(super) search: Search,
}

impl WantedLines {
    pub(super) fn includes(&self, worker: &WorkerId) -> bool {
        self.worker.as_ref().is_none_or(|wanted| wanted == worker.as_str())
    }
}

/// The positions in the logs.
#[derive(Default)]
struct Logs {
    /// By worker; empty before the first page.
    positions: BTreeMap<WorkerId, AppendedLines>,
    is_begun: bool,
    /// The ended workers whose lines were all read.
    ended: BTreeSet<WorkerId>,
    looks: u32,
}

/// What a look at the logs found.
enum Seen {
    /// The newest lines, at the begin and after lines were left out.
    Page(Found),
    Lines {
        lines: Vec<Line>,
        has_more: bool,
    },
}

impl Follower {
    pub(super) fn new(
        state: HttpState,
        access: OngoingAccess,
        endpoint: EndpointHandle,
        wanted: WantedLines,
        place: ReaderPlace,
    ) -> Self {
        let sent_at = Instant::now();
        Self { state, access, endpoint, wanted, logs: Logs::default(), sent_at, _place: place }
    }

    /// The bytes of the next events. The response ends when the key or the session does, and when the server stops.
    pub(super) fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            loop {
                if self.state.engine().is_stopping() || !self.access.holds(&self.state) {
                    return None;
                }
                let (events, has_more) = match self.look().await? {
                    Seen::Page(found) => (vec![event("page", &page_of(&found))], false),
                    Seen::Lines { lines, has_more } => (self.lines_event(lines).await, has_more),
                };
                if !events.is_empty() {
                    self.sent_at = Instant::now();
                    return Some((events, self));
                }
                if self.sent_at.elapsed() >= KEEP_ALIVE {
                    self.sent_at = Instant::now();
                    return Some((vec![Bytes::from_static(COMMENT)], self));
                }
                if !has_more {
                    tokio::time::sleep(PERIOD).await;
                }
            }
        })
    }

    /// Looks for lines; `None` if that failed.
    async fn look(&mut self) -> Option<Seen> {
        let running = self.endpoint.workers().fleet_status();
        let running: BTreeSet<WorkerId> = running.workers.iter().map(|worker| worker.id.clone()).collect();
        let (files, endpoint) = (Arc::clone(self.state.files()), self.endpoint.id());
        let mut wanted = self.wanted.clone();
        let mut logs = std::mem::take(&mut self.logs);
        if !logs.is_begun {
            wanted.search.job = span_of(&self.endpoint, wanted.job.as_deref()).await;
        }
        let work = move || {
            let seen = logs.look(&*files, &endpoint, &running, &wanted);
            (seen, logs)
        };
        let (seen, logs) = blocking(work).await.ok()?;
        self.logs = logs;
        Some(seen)
    }

    /// The event with those of the lines that are wanted; none without any.
    async fn lines_event(&self, mut lines: Vec<Line>) -> Vec<Bytes> {
        let mut search = self.wanted.search.clone();
        if !lines.is_empty() {
            search.job = span_of(&self.endpoint, self.wanted.job.as_deref()).await;
        }
        lines.retain(|line| search.wants(line) && line.at.is_none_or(|at| at >= search.since));
        if lines.is_empty() {
            return Vec::new();
        }
        let views: Vec<Value> = lines.iter().map(line_view).collect();
        vec![event("lines", &json!({ "lines": views }))]
    }
}

/// The ended workers whose logs are stored.
fn ended_workers(files: &dyn FileService, endpoint: &EndpointId) -> BTreeSet<WorkerId> {
    files.ended_workers(endpoint).into_iter().map(|ended| ended.worker).collect()
}

/// A server-sent event with this name.
fn event(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

impl Logs {
    /// Reads what was printed since the last look. Blocks.
    fn look(
        &mut self,
        files: &dyn FileService,
        endpoint: &EndpointId,
        running: &BTreeSet<WorkerId>,
        wanted: &WantedLines,
    ) -> Seen {
        let log_of = |worker: &WorkerId| files.worker_log(endpoint, worker).map(|log| log.path);
        if !self.is_begun {
            return self.begin(files, endpoint, running, wanted);
        }
        self.looks += 1;
        let ended = self.looks.is_multiple_of(LOOKS_PER_LIST).then(|| ended_workers(files, endpoint));
        let unread = ended.iter().flatten().filter(|worker| !self.ended.contains(worker));
        for worker in running.iter().chain(unread).filter(|it| wanted.includes(it)) {
            if !self.positions.contains_key(worker) {
                let log = log_of(worker).map(|path| AppendedLines::from_start(worker.to_string(), path));
                self.positions.extend(log.map(|lines| (worker.clone(), lines)));
            }
        }
        let bytes_max = (LOOK_BYTES / self.positions.len().max(1)).clamp(PIECE_BYTES_MIN, PIECE_BYTES);
        let (mut all, mut over, mut has_any) = (Vec::new(), Vec::new(), false);
        for (worker, position) in &mut self.positions {
            let is_running = running.contains(worker);
            let moved = if is_running { None } else { log_of(worker) };
            // The log of an ended worker may be elsewhere, or be deleted.
            let is_last = !is_running
                && (moved.is_none() || ended.as_ref().is_some_and(|ended| ended.contains(worker)));
            if let Some(path) = moved {
                position.move_to(path);
            }
            match position.read(bytes_max) {
                Appended::Behind => return self.begin(files, endpoint, running, wanted),
                Appended::Lines { lines, has_more } => {
                    has_any |= has_more;
                    if is_last && lines.is_empty() && !has_more {
                        over.push(worker.clone());
                    }
                    all.extend(lines);
                }
            }
        }
        if let Some(ended) = ended {
            self.ended.retain(|worker| ended.contains(worker));
        }
        for worker in over {
            self.positions.remove(&worker);
            self.ended.insert(worker);
        }
        all.sort_by(|one, other| one.key().cmp(&other.key()));
        Seen::Lines { lines: all, has_more: has_any }
    }

    /// Returns the newest lines, and goes on after them.
    fn begin(
        &mut self,
        files: &dyn FileService,
        endpoint: &EndpointId,
        running: &BTreeSet<WorkerId>,
        wanted: &WantedLines,
    ) -> Seen {
        let ended = ended_workers(files, endpoint);
        // The positions first: a line that is printed meanwhile comes twice, and none is left out.
        self.positions.clear();
        for worker in running.iter().filter(|it| wanted.includes(it)) {
            let log = files.worker_log(endpoint, worker);
            let lines = log.map(|log| AppendedLines::from_end(worker.to_string(), log.path));
            self.positions.extend(lines.map(|lines| (worker.clone(), lines)));
        }
        self.is_begun = true;
        let workers = running.iter().chain(&ended).filter(|it| wanted.includes(it)).cloned().collect();
        let found = search_all(files, endpoint, workers, &wanted.search);
        self.ended = ended.difference(running).cloned().collect();
        Seen::Page(found)
    }
}
