//! Checks of what workers post: results, progress, chunks.

use bytes::Bytes;

use super::Auditor;
use super::exchange::Exchange;
use super::job::{Job, Post, WorkerNo};
use super::job_view::{JobView, history};
use super::operation::Operation;
use super::outcome_cause::{Causes, is_stale};
use super::promise::Promise;
use super::time_bounds::{EventTime, Span};
use super::wire::{Chunk, PostContent, Streamed, brief, read_chunk, read_result};

impl Auditor {
    /// A worker's post arrived at the server.
    pub(super) fn post_arrived(&mut self, id: u64, exchange: &Exchange) {
        let (Some(no), Some(worker)) = (exchange.job, exchange.worker) else { return };
        if self.model.get(no).is_none_or(|job| job.is_void) {
            return;
        }
        let now = self.ledger.now;
        let is_chunk = exchange.operation == Operation::Chunk;
        let content = if is_chunk { read_chunk(&exchange.body) } else { read_result(&exchange.body) };
        let fails = matches!(content, PostContent::Failed(..));
        let ends = fails || matches!(content, PostContent::Completed(_) | PostContent::Unreadable);
        let Some((job, endpoint)) = self.model.with_endpoint(no) else { return };
        let may_retry = fails && endpoint.settings.may_retry_errors;
        let span = Span { from: now, until: None };
        let is_holders =
            job.deliveries.last().is_some_and(|holder| holder.worker == worker && !holder.evidence.any());
        let post = Post { exchange: id, worker, content, span, accepted: false, is_holders };
        if is_chunk {
            job.chunks.push(post);
        } else {
            job.posts.push(post);
        }
        if ends {
            if may_retry {
                self.add_evidence(worker, Some(no), |evidence| evidence.failed = true);
            } else {
                self.add_evidence(worker, Some(no), |evidence| evidence.denied = true);
            }
            self.released(worker, no);
        }
    }

    /// Whether this worker has posted a failure since then that requeued the job.
    pub(super) fn may_have_failed_in(&self, job: &Job, worker: WorkerNo, since: EventTime) -> bool {
        self.model.endpoints[job.endpoint.0].settings.may_retry_errors
            && job.posts.iter().chain(&job.chunks).any(|post| {
                matches!(post.content, PostContent::Failed(..))
                    && post.worker == worker
                    && post.span.may_follow(since)
            })
    }

    /// A worker's post was answered.
    pub(super) fn post_answered(&mut self, id: u64, exchange: &Exchange, status: u16) {
        let Some(no) = exchange.job else { return };
        let now = self.ledger.now;
        let denied = exchange.worker.and_then(|worker| self.model.workers[worker.0].denied);
        let Some((job, endpoint)) = self.model.with_endpoint(no) else { return };
        job.touched = now;
        let posts = if exchange.operation == Operation::Chunk { &mut job.chunks } else { &mut job.posts };
        let Some(at) = posts.iter().rposition(|post| post.exchange == id) else { return };
        if (400..500).contains(&status) {
            posts.remove(at);
            return;
        }
        if status != 200 {
            return;
        }
        posts[at].span.until = Some(now);
        posts[at].accepted = true;
        let post = posts[at].clone();
        let may_retry = endpoint.settings.may_retry_errors;
        if exchange.operation == Operation::Chunk
            || post.span.from.seq < job.cycle.began.1.seq && job.retries_done > 0
        {
            return;
        }
        // Whether a late result from before a retry counts is uncertain.
        let began = if job.retries_done > 0 { job.cycle.began.1.seq } else { 0 };
        let was_given = job.deliveries.iter().any(|delivery| {
            delivery.worker == post.worker
                && delivery.asked.seq >= began
                && delivery.got.seq < post.span.from.seq
        });
        if !was_given || !job.retries.is_empty() {
            return;
        }
        // Only a failure by the holder counts; a result that is too long is a failure.
        let released = denied.is_some_and(|denied| denied.seq > post.span.from.seq);
        let is_holders = is_only_holder(job, &post) && !released;
        let ends = match &post.content {
            PostContent::Completed(output) => {
                !self.rules.is_too_long(job.is_sync, output.as_ref()) || is_holders
            }
            // The job may be retried.
            PostContent::Failed(..) => is_holders && !may_retry,
            _ => false,
        };
        if ends && let Some(job) = self.model.get_mut(no) {
            job.end_cycle(now, "a result was accepted");
            self.watch_stop(no);
        }
    }

    /// A running job shows an output, which must be progress of the job's worker.
    pub(super) fn check_progress(&mut self, view: &JobView, output: &Bytes) {
        let now = self.ledger.now;
        let Some(job) = self.model.get(view.job) else { return };
        let found = job.posts.iter().any(|post| {
            matches!(&post.content, PostContent::Progress(shown) if shown == output)
                && post.span.may_precede(now)
                && !is_stale(&job.deliveries, post)
                && !is_of_past_run(job, post, view.from)
        });
        let text =
            || format!("{} shows progress {} in {}; {}", job.id, brief(output), view.what, history(job));
        self.ledger.check(Promise::FromHolder, found, text);
    }

    /// Chunks were shown. Each must have been posted by a worker that held the job.
    pub(super) fn stream_shown(&mut self, exchange: &Exchange, body: &Bytes) {
        let Some(no) = exchange.job else { return };
        let chunks = if body.first() == Some(&b'[') {
            serde_json::from_slice::<Vec<Chunk<'_>>>(body)
        } else {
            serde_json::from_slice::<Streamed<'_>>(body).map(|streamed| {
                self.stream_state(exchange, streamed.status);
                streamed.stream
            })
        };
        let Ok(chunks) = chunks else {
            return self
                .ledger
                .fail(Promise::WellFormed, || format!("{}: no chunks: {}", exchange.path, brief(body)));
        };
        let now = self.ledger.now;
        if let (Operation::Stream { offset: Some(offset) }, Some(arrived)) =
            (exchange.operation, exchange.arrived)
        {
            self.check_page_damage(no, offset, chunks.len(), arrived);
        }
        let Some(job) = self.model.get(no).filter(|job| !job.is_void) else { return };
        if job.chunks.iter().any(|post| exchange_is_large(post, self.rules.chunk_bytes_max)) {
            return;
        }
        let from = exchange.arrived.unwrap_or(now);
        for chunk in &chunks {
            let shown = chunk.output.get().as_bytes();
            let found = job.chunks.iter().any(|post| {
                matches!(&post.content, PostContent::Progress(posted) if posted == shown)
                    && post.span.may_precede(now)
                    && !is_stale(&job.deliveries, post)
                    && !is_of_past_run(job, post, from)
            });
            let text = || format!("{} streams {}; {}", job.id, brief(shown), history(job));
            self.ledger.check(Promise::FromHolder, found, text);
        }
        if let Operation::Stream { offset: Some(0) } = exchange.operation
            && let Some(from) = exchange.arrived
            && !job.deliveries.iter().any(|holder| self.is_silent(holder.worker, self.rules.lease_ms()))
            && let Some(expected) = certain_chunks(job, from)
            && !self.may_have_ended_before_chunks(job)
        {
            let shown: Vec<&str> = chunks.iter().map(|chunk| chunk.output.get()).collect();
            // A page ends before a damaged chunk.
            let first_damaged =
                self.first_damaged_chunk(job).map(|first| usize::try_from(first).unwrap_or(usize::MAX));
            let needed = first_damaged.map_or(expected.len(), |first| expected.len().min(first));
            let complete = shown.len() >= needed
                && expected.iter().zip(&shown).all(|(one, other)| *one == other.as_bytes());
            let text = || {
                format!(
                    "{} streams {} chunks, not the first {} as posted; {}",
                    job.id,
                    shown.len(),
                    expected.len(),
                    history(job)
                )
            };
            self.ledger.check(Promise::FromHolder, complete, text);
        }
        self.chunks_consumed(exchange, &chunks);
    }

    /// Whether the job may have timed out or been cancelled before its last chunk was answered. A later chunk is
    /// answered alike but not stored.
    pub(super) fn may_have_ended_before_chunks(&self, job: &Job) -> bool {
        let Some(limit) = job.chunks.iter().filter_map(|post| post.span.until).max() else { return false };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let damaged = self.unread.damaged(&job.id);
        let causes = Causes { job, endpoint, clock: &self.clock, rules: &self.rules, damaged, limit };
        causes.timed_out().is_some() || causes.cancelled().is_some()
    }

    fn stream_state(&mut self, exchange: &Exchange, status: &str) {
        // A terminal state may be withheld until the last chunk is shown, but must not be shown too early.
        let (Some(job), Some(from), Some(state)) =
            (exchange.job, exchange.arrived, super::wire::ShownState::parse(status))
        else {
            return;
        };
        if state.is_terminal() {
            self.observe_job(&JobView { job, from, state, shown: None, what: "stream" });
        }
    }
}

pub(super) fn exchange_is_large(post: &Post, chunk_bytes_max: usize) -> bool {
    matches!(&post.content, PostContent::Progress(chunk) if chunk.len() > chunk_bytes_max)
}

/// Whether a retry certainly took effect between this post and the request.
pub(super) fn is_of_past_run(job: &Job, post: &Post, from: EventTime) -> bool {
    let Some(until) = post.span.until else { return false };
    let retried =
        job.retries_done > 0 && until.seq < job.cycle.began.0.seq && job.cycle.began.1.seq < from.seq;
    let queued =
        job.cycle.seen_queued.is_some_and(|(since, seen)| until.seq < since.seq && seen.seq < from.seq);
    let mut others = job.deliveries.iter().filter(|delivery| delivery.got.seq < from.seq);
    retried || queued || others.any(|delivery| until.seq < delivery.asked.seq)
}

/// Whether the worker certainly held the job from the post's arrival to its response.
fn is_only_holder(job: &Job, post: &Post) -> bool {
    let Some(holder) = job.deliveries.last() else { return false };
    let Some(until) = post.span.until else { return false };
    let evidence = holder.evidence;
    // Only the worker's own post may have released the job.
    let lost = !post.is_holders || evidence.silent || evidence.ended.is_some() || holder.unlisted >= 2;
    holder.worker == post.worker
        && holder.got.seq < post.span.from.seq
        && !lost
        && until.seq > post.span.from.seq
}

/// The chunks that a stream must start with, if they are certain: one attempt, and each chunk accepted after the
/// previous one.
fn certain_chunks(job: &Job, from: EventTime) -> Option<Vec<&Bytes>> {
    let [only] = job.deliveries.as_slice() else { return None };
    let evidence = only.evidence;
    // A worker that posted a result has released the job. If the result was refused, the job may have been
    // requeued.
    let mut results = job.posts.iter().filter(|post| !matches!(post.content, PostContent::Progress(_)));
    let released = evidence.denied && results.next().is_none_or(|first| !first.accepted);
    let lost =
        evidence.silent || released || evidence.failed || evidence.ended.is_some() || only.unlisted >= 2;
    if lost || job.cycle.seen_queued.is_some_and(|(_, seen)| seen.seq > only.got.seq) || job.retries_done > 0
    {
        return None;
    }
    let mut expected = Vec::new();
    let mut before: Option<EventTime> = None;
    for post in &job.chunks {
        let PostContent::Progress(chunk) = &post.content else { return None };
        let until = post.span.until.filter(|_| post.accepted)?;
        let in_order = before.is_none_or(|before| before.seq < post.span.from.seq);
        // Whether a chunk counts is uncertain if the job may have ended before.
        let is_early = job.cycle.over.is_none_or(|(over, _)| until.seq < over.seq);
        if post.worker != only.worker || !in_order || !is_early {
            return None;
        }
        if until.seq < from.seq {
            expected.push(chunk);
        }
        before = Some(until);
    }
    Some(expected)
}
