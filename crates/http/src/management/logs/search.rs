//! Merges the lines of workers by time, in one order or the other, and finds those that a search is for.

use std::fmt;
use std::time::{Duration, Instant};

use super::lines::{Line, ReadFrom, WorkerLines};
use super::pattern::Pattern;

/// Limits of one call.
const SCANNED_BYTES_MAX: u64 = 64 << 20;
const TIME_MAX: Duration = Duration::from_secs(1);
/// Limit of the text in one response, in bytes of JSON.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// The clock is read once per this number of lines.
const LINES_PER_LOOK: u64 = 512;

/// Which lines are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// A text in lower case; every line has the empty one.
    pub(super) text: String,
    pub(super) pattern: Option<Pattern>,
    pub(super) job: Option<JobSpan>,
    /// This level or a worse one.
    pub(super) level: Option<&'static str>,
    /// The first and the end of the times, in ms.
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) limit: usize,
    /// Fewer bytes of text than a response may have, in bytes of JSON; `None` without this limit.
    pub(super) text_bytes_max: Option<usize>,
    /// Whether the oldest line is the first, in place of the newest one.
    pub(super) is_ascending: bool,
    /// Only lines that follow this one in the order.
    pub(super) cursor: Option<Cursor>,
}

/// A job: its id, and the workers that ran it, from and to when in ms, for each of its last attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobSpan {
    pub(super) id: String,
    pub(super) ran: Vec<(String, u64, u64)>,
}

/// The last line of a response, after which the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    at: u64,
    offset: u64,
    worker: String,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.at, self.offset, self.worker)
    }
}

impl Cursor {
    /// The cursor with this text; `None` for another text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (at, offset) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { at, offset, worker: parts.next().filter(|worker| !worker.is_empty())?.to_owned() })
    }

    fn of(line: &Line) -> Self {
        Self { at: line.at.unwrap_or(0), offset: line.offset, worker: line.worker.clone() }
    }

    fn key(&self) -> (u64, &str, u64) {
        (self.at, &self.worker, self.offset)
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The lines, in the order of the search.
    pub(super) lines: Vec<Line>,
    /// Bytes that were read.
    pub(super) scanned_bytes: u64,
    /// Where to go on; `None` if all lines were read.
    pub(super) cursor: Option<Cursor>,
}

impl Search {
    /// From where the lines of workers are read.
    pub(super) fn read_from(&self) -> ReadFrom {
        let at = self.cursor.as_ref().map(|cursor| cursor.at);
        if self.is_ascending {
            return ReadFrom::Start { first_ms: self.since.max(at.unwrap_or(0)) };
        }
        ReadFrom::End { last_ms: self.until.saturating_sub(1).min(at.unwrap_or(u64::MAX)) }
    }

    /// Reads the lines of all workers, in the order, until there are enough or a limit is reached.
    pub(super) fn run(&self, sources: Vec<WorkerLines>) -> Found {
        let begun = Instant::now();
        let mut found = Found::default();
        let mut heads: Vec<(Line, WorkerLines)> = Vec::new();
        for mut source in sources {
            match source.next() {
                Some(line) => heads.push((line, source)),
                None => found.scanned_bytes += source.scanned_bytes,
            }
        }
        let text_bytes_max = self.text_bytes_max.unwrap_or(TEXT_BYTES_MAX);
        let (mut seen, mut text_bytes) = (0_u64, 0);
        loop {
            let first = heads.iter().enumerate().min_by(|(_, (one, _)), (_, (other, _))| {
                let by_time = one.key().cmp(&other.key());
                if self.is_ascending { by_time } else { by_time.reverse() }
            });
            let Some(place) = first.map(|(place, _)| place) else { break };
            let (head, source) = &mut heads[place];
            let line = if let Some(next) = source.next() {
                std::mem::replace(head, next)
            } else {
                let (line, source) = heads.swap_remove(place);
                found.scanned_bytes += source.scanned_bytes;
                line
            };
            if line.at.is_some_and(|at| if self.is_ascending { at >= self.until } else { at < self.since }) {
                break;
            }
            seen += 1;
            let scanned =
                found.scanned_bytes + heads.iter().map(|(_, source)| source.scanned_bytes).sum::<u64>();
            let is_late = seen.is_multiple_of(LINES_PER_LOOK) && begun.elapsed() > TIME_MAX;
            let cursor = Cursor::of(&line);
            if self.wants(&line) {
                text_bytes += json_bytes(&line.text);
                found.lines.push(line);
            }
            let is_full = found.lines.len() >= self.limit || text_bytes >= text_bytes_max;
            if (is_full || is_late || scanned > SCANNED_BYTES_MAX) && !heads.is_empty() {
                found.cursor = Some(cursor);
                break;
            }
        }
        found.scanned_bytes += heads.iter().map(|(_, source)| source.scanned_bytes).sum::<u64>();
        found
    }

    /// Whether the line is looked for.
    pub(super) fn wants(&self, line: &Line) -> bool {
        let follows = |cursor: &Cursor| {
            if self.is_ascending { line.key() > cursor.key() } else { line.key() < cursor.key() }
        };
        self.cursor.as_ref().is_none_or(follows)
            && line.at.is_none_or(|at| at >= self.since && at < self.until)
            && (self.text.is_empty() || line.text.to_lowercase().contains(&self.text))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&line.text))
            && self.job.as_ref().is_none_or(|job| job.has(line))
            && self.level.is_none_or(|level| is_of_level(&line.text, level))
    }
}

/// The most bytes that a text has as a string of JSON.
fn json_bytes(text: &str) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=31 => 6,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

impl JobSpan {
    /// Whether the line names the job, or is of one of its workers while that ran it.
    fn has(&self, line: &Line) -> bool {
        let is_while = |(worker, from, to): &(String, u64, u64)| {
            // Times are to 100 ms.
            *worker == line.worker && line.at.is_some_and(|at| at + 100 >= *from && at <= *to)
        };
        line.text.contains(&self.id) || self.ran.iter().any(is_while)
    }
}

/// The level of a line: that of the SDK's lines, else a guess from its words; `None` for an ordinary line.
pub(super) fn level_of(text: &str) -> Option<&'static str> {
    let has = |word: &str| text.contains(word);
    if has("\"level\": \"ERROR\"")
        || has("ERROR")
        || has("CRITICAL")
        || has("Traceback (most recent call last)")
    {
        return Some("ERROR");
    }
    // The last line of a traceback begins with the name of the exception.
    let first = text.split(':').next().unwrap_or_default();
    let is_exception = (first.ends_with("Error") || first.ends_with("Exception")) && !first.contains(' ');
    match () {
        () if is_exception => Some("ERROR"),
        () if has("WARN") || has("Warning:") => Some("WARNING"),
        () => None,
    }
}

/// Whether a line is of this level or a worse one. An ordinary line is of `INFO`, unless its words say that it is of a lower level.
fn is_of_level(text: &str, level: &str) -> bool {
    match level_of(text) {
        Some(found) => found == "ERROR" || found == level || level == "INFO",
        None => level == "INFO" && !is_detail(text),
    }
}

/// Whether a line has a word that names a level below `INFO`.
fn is_detail(text: &str) -> bool {
    let is_end = |char: char| !char.is_alphanumeric() && char != '_';
    text.split(is_end).any(|word| matches!(word, "DEBUG" | "TRACE"))
}

/// The job that a line of the SDK is about.
pub(super) fn job_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("{\"requestId\": \"")?;
    rest.split('"').next().filter(|id| !id.is_empty() && id.len() <= 64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A worker whose line `n` of `count` was printed at `from` + n × `every` ms.
    fn worker(
        dir: &Path,
        name: &str,
        from: u64,
        every: u64,
        count: u64,
    ) -> impl Fn(&Search) -> WorkerLines + use<> {
        let path = dir.join(name);
        let (mut text, mut times) = (String::new(), Vec::new());
        for number in 0..count {
            times.extend((text.len() as u64).to_le_bytes());
            times.extend((from + number * every).to_le_bytes());
            let level = if number % 10 == 0 { "ERROR" } else { "fine" };
            text.extend([name, " ", &number.to_string(), " ", level, "\n"]);
        }
        std::fs::write(&path, text).unwrap();
        std::fs::write(path.with_added_extension("times"), times).unwrap();
        let name = name.to_owned();
        move |search| WorkerLines::open(name.clone(), &path, search.read_from())
    }

    #[test]
    fn pages_have_every_line_once_by_time() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) =
            (worker(dir.path(), "a", 1_000, 7, 1_000), worker(dir.path(), "b", 1_500, 11, 700));
        let all = |is_ascending| {
            let mut search = Search { until: u64::MAX, limit: 137, is_ascending, ..Search::default() };
            let mut all = Vec::new();
            loop {
                let found = search.run(vec![one(&search), other(&search)]);
                assert!(found.lines.len() <= 137 && found.scanned_bytes > 0);
                all.extend(found.lines);
                let Some(cursor) = found.cursor else { return all };
                assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor.clone()));
                search.cursor = Some(cursor);
            }
        };
        let mut newest_first = all(false);
        assert_eq!(newest_first.len(), 1_700);
        assert!(newest_first.windows(2).all(|pair| pair[0].key() > pair[1].key()));
        newest_first.reverse();
        assert!(all(true) == newest_first, "the same lines in the other order");
    }

    #[test]
    fn lines_are_found_by_text_level_time_and_job() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) =
            (worker(dir.path(), "a", 1_000, 1_000, 100), worker(dir.path(), "b", 1_000, 1_000, 100));
        let count = |search: Search| search.run(vec![one(&search), other(&search)]).lines.len();
        let all = || Search { until: u64::MAX, limit: 5_000, ..Search::default() };
        assert_eq!(count(all()), 200);
        assert_eq!(count(Search { text: "a 7".to_owned(), ..all() }), 11);
        let pattern = Pattern::parse("^a [0-4]+ ").ok();
        assert_eq!(count(Search { pattern, ..all() }), 25);
        assert_eq!(count(Search { level: Some("WARNING"), ..all() }), 20);
        assert_eq!(count(Search { level: Some("INFO"), ..all() }), 200);
        let span = Search { since: 10_000, until: 20_000, ..all() };
        assert_eq!(count(span.clone()), 20);
        let ascending = Search { is_ascending: true, ..span };
        let found = ascending.run(vec![one(&ascending), other(&ascending)]);
        let at = |line: Option<&Line>| line.and_then(|line| line.at);
        assert_eq!(
            (found.lines.len(), at(found.lines.first()), at(found.lines.last())),
            (20, Some(10_000), Some(19_000))
        );
        let ran = vec![("b".to_owned(), 5_050, 8_000), ("a".to_owned(), 9_050, 11_000)];
        assert_eq!(count(Search { job: Some(JobSpan { id: "a 3 ".to_owned(), ran }), ..all() }), 1 + 4 + 3);
        for bad in ["", "1.2", "1.2.", "x.1.w", "1.-1.w"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn levels_and_jobs_are_read_from_lines() {
        for (text, level) in [
            ("{\"requestId\": \"j\", \"message\": \"x\", \"level\": \"ERROR\"}", Some("ERROR")),
            ("Traceback (most recent call last):", Some("ERROR")),
            ("ValueError: no", Some("ERROR")),
            ("FutureWarning: soon", Some("WARNING")),
            ("an Error: in words", None),
            ("loaded", None),
        ] {
            assert_eq!(level_of(text), level, "{text}");
        }
        for (text, levels) in [
            ("loaded DEBUGGER, traced", [false, false, true]),
            ("DEBUG: loaded", [false, false, false]),
            ("{\"requestId\": null, \"message\": \"x\", \"level\": \"TRACE\"}", [false, false, false]),
            ("WARNING in DEBUG mode", [false, true, true]),
            ("ERROR", [true, true, true]),
        ] {
            assert_eq!(["ERROR", "WARNING", "INFO"].map(|level| is_of_level(text, level)), levels, "{text}");
        }
        assert_eq!(job_of("{\"requestId\": \"j-1\", \"message\""), Some("j-1"));
        assert_eq!(job_of("{\"requestId\": null, \"message\""), None);
    }
}
