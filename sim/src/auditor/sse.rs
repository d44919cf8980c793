//! Jobs that are followed by server-sent events, over connections that may break at any time.

use bytes::Bytes;

use super::Auditor;
use super::damage::says_damaged;
use super::exchange::Exchange;
use super::job::{Delivery, Job, JobNo, Post};
use super::job_view::history;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::outcome_cause::is_stale;
use super::promise::Promise;
use super::reports::{exchange_is_large, is_of_past_run};
use super::submit::hash_of;
use super::wire::{Chunk, JobRecord, PostContent, ShownState, brief};
use crate::events::{Event, EventReader};

/// Longest latency of a packet, in ms.
const LATENCY_MS_MAX: u64 = 20_000;

/// State of a response with server-sent events.
#[derive(Debug, Default)]
pub(super) struct SseState {
    reader: EventReader,
    /// First requested offset.
    start: u64,
    /// Whether the reader had received the previous chunk.
    is_resumed: bool,
    /// The lowest possible offset of the next chunk.
    next: u64,
    /// Received chunks: offsets and hashes.
    shown: Vec<(u64, u64)>,
    /// When the last piece with an event arrived, in ms.
    last_event_ms: u64,
    /// Whether the response has started, so that the rate limit let it pass.
    has_passed: bool,
    /// The event that ends the response, if it has arrived.
    last: Option<LastEvent>,
}

/// An event after which no other may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEvent {
    Done,
    /// A chunk or the output is damaged.
    Damaged,
}

impl SseState {
    /// Returns the state if the request asks for events.
    pub fn of<'a>(operation: Operation, header: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let Operation::Stream { offset } = operation else { return None };
        header("accept").filter(|kind| *kind == "text/event-stream")?;
        let last = header("last-event-id").and_then(|text| text.parse::<u64>().ok());
        let start = last.map_or(offset.unwrap_or(0), |last| last + 1);
        Some(Self { start, next: start, is_resumed: last.is_some(), ..Self::default() })
    }

    pub fn has_passed(&self) -> bool {
        self.has_passed
    }
}

impl Auditor {
    /// A piece of a response with events arrived.
    pub(super) fn piece_received(&mut self, id: u64, piece: &Bytes) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        if !exchange.sse.as_ref().is_none_or(SseState::has_passed) {
            // An open event stream does not count as a concurrent request.
            self.limit_settled(id, &exchange, Some(200));
        }
        if let Some(mut sse) = exchange.sse.take() {
            sse.has_passed = true;
            for event in sse.reader.read(piece) {
                sse.last_event_ms = self.ledger.now.ms;
                self.event_received(&exchange, &mut sse, event);
            }
            exchange.sse = Some(sse);
        }
        self.exchanges.insert(id, exchange);
    }

    fn event_received(&mut self, exchange: &Exchange, sse: &mut SseState, event: Event) {
        let text = || format!("{}: {event:?} after the end", exchange.path);
        self.ledger.check(Promise::Followed, sse.last.is_none(), text);
        let Some(no) = exchange.job.filter(|_| !exchange.is_void) else { return };
        match (event.id, event.name.as_str()) {
            (Some(offset), "") => self.chunk_received(exchange, no, sse, offset, &event.data),
            (None, "status" | "done") => {
                if event.name == "done" {
                    sse.last = Some(LastEvent::Done);
                }
                self.record_received(exchange, no, sse, &Bytes::from(event.data));
            }
            (None, "error") if says_damaged(event.data.as_bytes()) => {
                sse.last = Some(LastEvent::Damaged);
                if let Some(arrived) = exchange.arrived {
                    self.damage_reported(exchange, arrived);
                }
            }
            _ => self.ledger.fail(Promise::WellFormed, || format!("{}: {event:?}", exchange.path)),
        }
    }

    fn chunk_received(
        &mut self,
        exchange: &Exchange,
        no: JobNo,
        sse: &mut SseState,
        offset: u64,
        data: &str,
    ) {
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
            let text = || format!("{}: no chunk: {}", exchange.path, brief(data.as_bytes()));
            return self.ledger.fail(Promise::WellFormed, text);
        };
        let bytes = chunk.output.get().as_bytes();
        let hash = hash_of(bytes);
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(no).filter(|job| !job.is_void) else { return };
        job.touched = now;
        let known = *job.log.entry(offset).or_insert(hash);
        let next = std::mem::replace(&mut sse.next, offset + 1);
        sse.shown.push((offset, hash));
        let text = || format!("{}: chunk {offset} instead of {next} or later; {}", job.id, history(job));
        self.ledger.check(Promise::Followed, offset >= next, text);
        let text = || format!("{}: chunk {offset} was another one before; {}", job.id, history(job));
        self.ledger.check(Promise::Followed, hash == known, text);
        if job.chunks.iter().any(|post| exchange_is_large(post, self.rules.chunk_bytes_max)) {
            // Hashes stand for the parts.
            return;
        }
        let from = exchange.arrived.unwrap_or(now);
        let matches_chunk =
            |content: &PostContent| matches!(content, PostContent::Progress(posted) if posted == bytes);
        let found = job.chunks.iter().any(|post| {
            matches_chunk(&post.content)
                && post.span.may_precede(now)
                && !is_stale(&job.deliveries, post)
                && !is_of_past_run(job, post, from)
        });
        let text = || format!("{} is followed and shows {}; {}", job.id, brief(bytes), history(job));
        self.ledger.check(Promise::FromHolder, found, text);
        // Independent of readers and reconnections, each post has one offset.
        let places = job.log.values().filter(|other| **other == hash).count();
        let posted = job.chunks.iter().filter(|post| matches_chunk(&post.content)).count();
        let text =
            || format!("{}: {} has {places} offsets and was posted {posted} times", job.id, brief(bytes));
        self.ledger.check(Promise::Followed, places <= posted, text);
    }

    /// A record arrived, in between or as the last event.
    fn record_received(&mut self, exchange: &Exchange, no: JobNo, sse: &SseState, data: &Bytes) {
        let Ok(record) = serde_json::from_slice::<JobRecord<'_>>(data) else {
            let text = || format!("{}: no record: {}", exchange.path, brief(data));
            return self.ledger.fail(Promise::WellFormed, text);
        };
        let state = ShownState::parse(record.status);
        let is_over = state.is_some_and(ShownState::is_terminal);
        let is_for_job =
            self.model.find_job(record.id) == Some(no) && is_over == (sse.last == Some(LastEvent::Done));
        let text = || format!("{}: {}", exchange.path, brief(data));
        self.ledger.check(Promise::WellFormed, is_for_job, text);
        if matches!(state, Some(ShownState::Completed | ShownState::Failed)) {
            self.check_whole(exchange, no, sse);
        }
        if let Some(arrived) = exchange.arrived {
            self.record_shown(data, &record, arrived, "an event");
        }
    }

    /// A reader received the end. It must have all chunks of the run that ended the job, without a gap.
    fn check_whole(&mut self, exchange: &Exchange, no: JobNo, sse: &SseState) {
        let Some(job) = self.model.get(no).filter(|job| !job.is_void) else { return };
        // A job that was retried meanwhile may show its earlier end.
        let is_this_cycle = job.retries_done == 0
            || exchange.arrived.is_some_and(|arrived| arrived.seq > job.cycle.began.1.seq);
        let Some(last) = job.holder().filter(|_| is_this_cycle && job.retries.is_empty()) else { return };
        if self.is_silent(last.worker, self.rules.lease_ms()) || self.may_have_ended_before_chunks(job) {
            return;
        }
        let Some(posted) = chunks_of_run(job, last, self.rules.chunk_bytes_max) else { return };
        let missing = missing(&posted, sse, job);
        let text = || {
            let SseState { start, shown, .. } = sse;
            let offsets: Vec<u64> = shown.iter().map(|(offset, _)| *offset).collect();
            let missing = missing.as_deref().unwrap_or_default();
            format!(
                "{} was followed from {start} and shows {offsets:?} of a run with {} chunks: {missing}; {}",
                job.id,
                posted.len(),
                history(job)
            )
        };
        self.ledger.check(Promise::Followed, missing.is_none(), text);
    }

    /// A response with events ended or broke off. Its reader must have received everything until then.
    pub(super) fn sse_ended(&mut self, exchange: &Exchange) {
        let (Some(sse), Some(no)) = (&exchange.sse, exchange.job) else { return };
        let Some(job) = self.model.get(no).filter(|job| !job.is_void && job.retries.is_empty()) else {
            return;
        };
        let is_told = sse.last.is_some();
        let Some((over, why)) = job.cycle.over.filter(|_| sse.has_passed && !is_told) else {
            return;
        };
        // Each piece may be in flight for long, and the connection may be gone before its reader notices.
        let arrived_ms = exchange.arrived.map_or(0, |arrived| arrived.ms);
        let since_ms = over.ms.max(sse.last_event_ms).max(job.cycle.began.1.ms).max(arrived_ms);
        let now_ms = self.ledger.now.ms;
        if !self.is_outage_free(since_ms, now_ms) {
            return;
        }
        let is_soon = since_ms + SLACK_MS + 3 * LATENCY_MS_MAX >= now_ms;
        let text = || {
            let waited_ms = now_ms - since_ms;
            format!("{}: no end was told within {waited_ms} ms after {why}; {}", exchange.path, history(job))
        };
        self.ledger.check(Promise::WaitAnswered, is_soon, text);
    }
}

/// Hashes of the chunks of the last delivery's run, if it is certain that the run was not lost and exactly these
/// chunks were stored in this order.
fn chunks_of_run(job: &Job, last: &Delivery, chunk_bytes_max: usize) -> Option<Vec<u64>> {
    if job.deliveries.iter().filter(|delivery| delivery.worker == last.worker).count() > 1 {
        // A late chunk of the worker's earlier run would count.
        return None;
    }
    // Posts of earlier runs were answered before this run started.
    let ends =
        |post: &&Post| !matches!(post.content, PostContent::Progress(_)) && post.span.may_follow(last.asked);
    let mut results = job.posts.iter().filter(ends);
    let first_end = results.clone().map(|post| post.span.from.seq).min();
    let evidence = last.evidence;
    // A worker that posted a result has released the job. If the result was refused, the job may have been
    // requeued.
    let released = evidence.denied && results.next().is_none_or(|first| !first.accepted);
    let is_lost =
        evidence.silent || released || evidence.failed || evidence.ended.is_some() || last.unlisted >= 2;
    if is_lost || job.cycle.seen_queued.is_some_and(|(_, seen)| seen.seq > last.got.seq) {
        return None;
    }
    let mut chunks = Vec::new();
    let mut answered = last.got.seq;
    for post in job.chunks.iter().filter(|post| post.worker == last.worker) {
        let PostContent::Progress(chunk) = &post.content else { return None };
        let until = post.span.until.filter(|_| post.accepted)?.seq;
        // A chunk after the end is answered alike but not stored.
        let is_early = first_end.is_none_or(|end| until < end);
        if !is_early || post.span.from.seq < answered || exchange_is_large(post, chunk_bytes_max) {
            return None;
        }
        chunks.push(hash_of(chunk));
        answered = until;
    }
    Some(chunks)
}

/// Returns what is missing of the posted run.
fn missing(posted: &[u64], sse: &SseState, job: &Job) -> Option<String> {
    let shown = &sse.shown[sse.shown.len().saturating_sub(posted.len())..];
    let expected = &posted[posted.len() - shown.len()..];
    if let Some(at) = (0..shown.len()).find(|at| shown[*at].1 != expected[*at]) {
        return Some(format!("chunk {} is not the one that was posted there", shown[at].0));
    }
    if let Some(gap) = shown.windows(2).find(|two| two[0].0 + 1 != two[1].0) {
        return Some(format!("nothing between {} and {}", gap[0].0, gap[1].0));
    }
    if shown.len() == posted.len() {
        return None;
    }
    // The reader started in the middle of the run.
    match shown.first() {
        Some((first, _)) => (*first != sse.start).then(|| format!("{first} is not the first")),
        None if sse.is_resumed => {
            let had = job.log.get(&(sse.start - 1));
            (had.is_some() && had != posted.last()).then(|| "the last ones did not come".to_owned())
        }
        None => (sse.start == 0).then(|| "none came".to_owned()),
    }
}
