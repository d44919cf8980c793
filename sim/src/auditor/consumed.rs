//! Consumed chunks: a stream read without an offset removes the chunks that it returns.

use super::Auditor;
use super::exchange::Exchange;
use super::job_view::history;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::submit::hash_of;
use super::time_bounds::EventTime;
use super::wire::{Chunk, Word, brief};

/// A read that consumed chunks.
#[derive(Debug)]
pub(super) struct Drain {
    arrived: EventTime,
    answered: EventTime,
    /// Hashes of the chunks.
    hashes: Vec<u64>,
}

impl Auditor {
    /// A consuming read was answered. Chunks consumed before its arrival are not in it, unless they were posted
    /// again.
    pub(super) fn drained(&mut self, exchange: &Exchange, chunks: &[Chunk<'_>]) {
        let (Operation::Stream { offset: None }, Some(no), Some(arrived)) =
            (exchange.operation, exchange.job, exchange.arrived)
        else {
            return;
        };
        let now = self.ledger.now;
        let Some(job) = self.notes.get(no) else { return };
        let hashes: Vec<u64> = chunks.iter().map(|chunk| hash_of(chunk.output.get().as_bytes())).collect();
        // The consumed offset is stored after the response, so a server that dies then has not stored it.
        let is_kept = |drain: &&Drain| {
            drain.answered.seq < arrived.seq
                && self.is_smooth(drain.answered.ms.saturating_sub(SLACK_MS), drain.answered.ms + SLACK_MS)
        };
        let earlier: Vec<&Drain> = job.drains.iter().filter(is_kept).collect();
        for (chunk, hash) in chunks.iter().zip(&hashes) {
            let here = hashes.iter().filter(|other| *other == hash).count();
            let shown = here + times_taken(&earlier, *hash);
            let is_it = |word: &Word| matches!(word, Word::Progress(posted) if *posted == chunk.output.get().as_bytes());
            let posted = job.chunks.iter().filter(|post| is_it(&post.word)).count();
            let text = || {
                let chunk = brief(chunk.output.get().as_bytes());
                format!("{}: {chunk} was drained {shown} times, posted {posted}; {}", job.id, history(job))
            };
            self.ledger.check(Promise::DrainedOnce, shown <= posted, text);
        }
        let Some(job) = self.notes.get_mut(no).filter(|_| !hashes.is_empty()) else { return };
        job.drains.push(Drain { arrived, answered: now, hashes });
    }
}

/// How often this chunk was certainly consumed. Concurrent readers may get the same chunk.
fn times_taken(drains: &[&Drain], hash: u64) -> usize {
    let (mut taken, mut last) = (0, None);
    // In the order of the responses.
    for drain in drains {
        let times = drain.hashes.iter().filter(|other| **other == hash).count();
        if times > 0 && last.is_none_or(|last: EventTime| last.seq < drain.arrived.seq) {
            (taken, last) = (taken + times, Some(drain.answered));
        }
    }
    taken
}
