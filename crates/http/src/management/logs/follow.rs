//! The lines of an endpoint's workers as they are printed, as server-sent events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::EndpointHandle;
use longshore_model::WorkerId;
use serde::Serialize;
use tokio::time::Instant;

use super::appended::{Appended, AppendedLines, Budget};
use super::lines::Line;
use super::search::{Found, Search};
use super::{LineView, PageView, StoredLogs, WorkerLogs, search_all, span_of};
use crate::HttpState;
use crate::events::reader_counts::ReaderPlace;
use crate::gate::auth::OngoingAccess;
use crate::management::workers::blocking;
use crate::wire::sse::{COMMENT, KEEP_ALIVE, Next};

/// The interval between two looks at logs without new lines.
const PERIOD: Duration = Duration::from_millis(250);
/// The most that a look reads of all logs: what waits for a reader that does not read.
const LOOK: Budget = Budget { bytes: 256 * 1024, lines: 5_000 };
/// Most bytes of text in a page, in bytes of JSON.
const PAGE_TEXT_BYTES: usize = 512 * 1024;
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
    /// Only lines that name this job, and those of its workers while they ran it.
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
    /// Whether a page was made since lines were left out last: there were too many, or their file was gone.
    is_begun: bool,
    /// The ended workers whose lines were all read.
    ended: BTreeSet<WorkerId>,
    /// The ended workers that were listed last.
    listed: BTreeSet<WorkerId>,
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

    /// The bytes of the next events. The response ends when the key, the session or the endpoint does, and when the server
    /// stops.
    pub(super) fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            loop {
                if self.state.engine().is_stopping() || !self.access.holds(&self.state) {
                    return None;
                }
                let is_deleted = self.state.engine().endpoint(self.endpoint.id().as_str()).is_none();
                let (event, has_more) = self.look().await?;
                if let Some(event) = event {
                    self.sent_at = Instant::now();
                    return Some((vec![event], self));
                }
                if is_deleted {
                    return None;
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

    /// Looks for lines: the event that tells those that are wanted, if there are any, and whether there is more to read. `None`
    /// if that failed.
    async fn look(&mut self) -> Option<(Option<Bytes>, bool)> {
        let running = self.endpoint.workers().fleet_status();
        let running: BTreeSet<WorkerId> = running.workers.iter().map(|worker| worker.id.clone()).collect();
        let stored = StoredLogs { files: Arc::clone(self.state.files()), endpoint: self.endpoint.id() };
        let mut wanted = self.wanted.clone();
        let mut logs = std::mem::take(&mut self.logs);
        wanted.search.job = span_of(&self.endpoint, wanted.job.as_deref()).await;
        let work = move || {
            let seen = logs.look(&stored, &running, &wanted);
            (event_of(seen, &wanted.search), logs)
        };
        let (found, logs) = blocking(work).await.ok()?;
        self.logs = logs;
        Some(found)
    }
}

/// The event that tells what was seen, if any of it is wanted, and whether there is more to read.
fn event_of(seen: Seen, search: &Search) -> (Option<Bytes>, bool) {
    match seen {
        Seen::Page(found) => (event("page", &PageView::of(&found)), false),
        Seen::Lines { lines, has_more } => {
            let is_wanted = |line: &&Line| search.wants(line) && line.at.is_none_or(|at| at >= search.since);
            let lines: Vec<_> = lines.iter().filter(is_wanted).map(LineView::of).collect();
            let told = if lines.is_empty() { None } else { event("lines", &LinesView { lines }) };
            (told, has_more)
        }
    }
}

/// The data of `lines`.
#[derive(Serialize)]
struct LinesView<'a> {
    lines: Vec<LineView<'a>>,
}

/// A server-sent event with this name.
fn event(name: &str, data: &impl Serialize) -> Option<Bytes> {
    let mut bytes = format!("event: {name}\ndata: ").into_bytes();
    serde_json::to_writer(&mut bytes, data).ok()?;
    bytes.extend(b"\n\n");
    Some(bytes.into())
}

impl Logs {
    /// Reads what was printed since the last look. Blocks.
    fn look(&mut self, stored: &impl WorkerLogs, running: &BTreeSet<WorkerId>, wanted: &WantedLines) -> Seen {
        if !self.is_begun {
            return self.begin(stored, running, wanted);
        }
        self.looks = self.looks.wrapping_add(1);
        let has_ended = self.positions.keys().any(|worker| !running.contains(worker));
        if has_ended || self.looks.is_multiple_of(LOOKS_PER_LIST) {
            self.list(stored.ended());
        }
        let unread = self.listed.difference(&self.ended);
        for worker in running.iter().chain(unread).filter(|it| wanted.includes(it)) {
            if !self.positions.contains_key(worker) {
                let log =
                    stored.log_of(worker).map(|path| AppendedLines::from_start(worker.to_string(), path));
                self.positions.extend(log.map(|lines| (worker.clone(), lines)));
            }
        }
        // Another worker is the first one each time, so that none waits for others that print much.
        let mut workers: Vec<WorkerId> = self.positions.keys().cloned().collect();
        let first = self.looks as usize % workers.len().max(1);
        workers.rotate_left(first);
        let (mut all, mut has_any, mut budget) = (Vec::new(), false, LOOK);
        for worker in workers {
            let Some(position) = self.positions.get_mut(&worker) else { continue };
            if !budget.has_some() {
                has_any = true;
                break;
            }
            if !running.contains(&worker) {
                // The log of an ended worker may be elsewhere. Only those of the last ones are stored.
                let Some(path) = stored.log_of(&worker) else {
                    self.is_begun = false;
                    continue;
                };
                position.move_to(path);
            }
            let Appended::Lines { lines, has_more } = position.read(&mut budget) else {
                self.is_begun = false;
                continue;
            };
            has_any |= has_more;
            if lines.is_empty() && !has_more && !running.contains(&worker) && self.listed.contains(&worker) {
                self.positions.remove(&worker);
                self.ended.insert(worker);
            }
            all.extend(lines);
        }
        all.sort_by(|one, other| one.key().cmp(&other.key()));
        // What was left out is told after what could be read.
        Seen::Lines { lines: all, has_more: has_any || !self.is_begun }
    }

    /// Notes which workers have ended. If none of those listed before is left, others may have come and gone between.
    fn list(&mut self, listed: BTreeSet<WorkerId>) {
        if !self.listed.is_empty() && !listed.is_empty() && self.listed.is_disjoint(&listed) {
            self.is_begun = false;
        }
        self.ended.retain(|worker| listed.contains(worker));
        self.listed = listed;
    }

    /// Returns the newest lines, and goes on after them.
    fn begin(
        &mut self,
        stored: &impl WorkerLogs,
        running: &BTreeSet<WorkerId>,
        wanted: &WantedLines,
    ) -> Seen {
        let ended = stored.ended();
        // The positions first: a line that is printed meanwhile comes twice, and none is left out.
        self.positions.clear();
        for worker in running.iter().filter(|it| wanted.includes(it)) {
            let log = stored.log_of(worker);
            let lines = log.map(|path| AppendedLines::from_end(worker.to_string(), path));
            self.positions.extend(lines.map(|lines| (worker.clone(), lines)));
        }
        self.is_begun = true;
        let workers = running.iter().chain(&ended).filter(|it| wanted.includes(it)).cloned().collect();
        let search = Search { text_bytes_max: Some(PAGE_TEXT_BYTES), ..wanted.search.clone() };
        let found = search_all(stored, workers, &search);
        self.ended = ended.difference(running).cloned().collect();
        self.listed = ended;
        Seen::Page(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    /// Logs in a folder, named after their workers.
    struct Folder {
        dir: tempfile::TempDir,
        ended: BTreeSet<WorkerId>,
    }

    impl Folder {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), ended: BTreeSet::new() }
        }

        fn print(&self, worker: &str, text: &str) {
            let path = self.dir.path().join(worker);
            let mut file = File::options().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
    }

    impl WorkerLogs for Folder {
        fn log_of(&self, worker: &WorkerId) -> Option<PathBuf> {
            let path = self.dir.path().join(worker.as_str());
            path.is_file().then_some(path)
        }

        fn ended(&self) -> BTreeSet<WorkerId> {
            self.ended.clone()
        }
    }

    fn workers<const N: usize>(names: [&str; N]) -> BTreeSet<WorkerId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn all() -> WantedLines {
        WantedLines {
            worker: None,
            job: None,
            search: Search { until: u64::MAX, limit: 500, ..Search::default() },
        }
    }

    /// The texts of the lines of the next looks, as long as there are more.
    fn told(logs: &mut Logs, folder: &Folder, running: &BTreeSet<WorkerId>) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let Seen::Lines { lines, has_more } = logs.look(folder, running, &all()) else {
                panic!("a page")
            };
            assert!(lines.len() <= LOOK.lines);
            texts.extend(lines.into_iter().map(|line| line.text));
            if !has_more {
                return texts;
            }
        }
    }

    #[test]
    fn lines_of_a_worker_that_ends_come_once() {
        let mut folder = Folder::new();
        folder.print("a", "one\n");
        let (both, mut logs) = (workers(["a", "b"]), Logs::default());
        let Seen::Page(page) = logs.look(&folder, &both, &all()) else { panic!("no page") };
        assert_eq!(page.lines[0].text, "one");
        folder.print("a", "two\n");
        folder.print("b", "three\n");
        assert_eq!(told(&mut logs, &folder, &both), ["two", "three"]);
        folder.print("a", "last\n");
        folder.ended = workers(["a", "sooner"]);
        folder.print("sooner", "not seen running\n");
        let left = workers(["b"]);
        assert_eq!(told(&mut logs, &folder, &left), ["last", "not seen running"]);
        for _ in 0..3 * LOOKS_PER_LIST {
            assert!(told(&mut logs, &folder, &left).is_empty());
        }
    }

    #[test]
    fn a_page_tells_that_lines_were_left_out() {
        let mut folder = Folder::new();
        let (one, mut logs) = (workers(["a"]), Logs::default());
        folder.print("a", "one\n");
        logs.look(&folder, &one, &all());
        std::fs::remove_file(folder.dir.path().join("a")).unwrap();
        folder.print("b", "told before the page\n");
        let left = workers(["b"]);
        let Seen::Lines { lines, has_more: true } = logs.look(&folder, &left, &all()) else {
            panic!("no lines")
        };
        assert_eq!(lines[0].text, "told before the page");
        let Seen::Page(page) = logs.look(&folder, &workers([]), &all()) else { panic!("no page") };
        assert!(page.lines.is_empty());
        // Workers that came and went between two lists, of which the last ones are stored.
        folder.ended = workers(["c", "d"]);
        while logs.listed.is_empty() {
            told(&mut logs, &folder, &workers([]));
        }
        folder.ended = workers(["g", "h"]);
        folder.print("g", "late\n");
        let is_page = |logs: &mut Logs| matches!(logs.look(&folder, &workers([]), &all()), Seen::Page(_));
        assert!((0..=LOOKS_PER_LIST).any(|_| is_page(&mut logs)));
        assert!((0..LOOKS_PER_LIST).all(|_| !is_page(&mut logs)));
    }

    #[test]
    fn much_of_one_worker_and_empty_lines_keep_no_other_waiting() {
        let folder = Folder::new();
        let (all_three, mut logs) = (workers(["a", "b", "c"]), Logs::default());
        logs.look(&folder, &all_three, &all());
        folder.print("a", &"\n".repeat(20_000));
        folder.print("b", &"much of it\n".repeat(60_000));
        folder.print("c", "little\n");
        let mut looks = 0;
        while !matches!(logs.look(&folder, &all_three, &all()), Seen::Lines { lines, .. } if lines.iter().any(|line| line.text == "little"))
        {
            looks += 1;
            assert!(looks < 3, "the one that prints little waits");
        }
        let rest = told(&mut logs, &folder, &all_three);
        assert!(rest.len() > 60_000 && rest.len() < 80_000, "{}", rest.len());
    }
}
