//! Streams that are drained: whoever reads without an offset takes the chunks away.

use super::Auditor;
use super::exchange::Exchange;
use super::job_view::history;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::submit::hash_of;
use super::time_bounds::EventTime;
use super::wire::{Chunk, Word, brief};

/// Chunks that were taken away.
#[derive(Debug)]
pub(super) struct Drain {
    arrived: EventTime,
    answered: EventTime,
    /// They stand for the chunks.
    hashes: Vec<u64>,
}

impl Auditor {
    /// A drain was answered: what was drained before it came is not in it, unless it was posted once more.
    pub(super) fn drained(&mut self, exchange: &Exchange, chunks: &[Chunk<'_>]) {
        let (Operation::Stream { offset: None }, Some(no), Some(arrived)) =
            (exchange.operation, exchange.job, exchange.arrived)
        else {
            return;
        };
        let now = self.ledger.now;
        let Some(job) = self.notes.get(no) else { return };
        let hashes: Vec<u64> = chunks.iter().map(|chunk| hash_of(chunk.output.get().as_bytes())).collect();
        // That chunks were drained is written down after the answer left: a server that dies then does not know.
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

/// How often this chunk was certainly taken away. Readers who ask at the same time may get the same one.
fn times_taken(drains: &[&Drain], hash: u64) -> usize {
    let (mut taken, mut last) = (0, None);
    // In the order of their answers.
    for drain in drains {
        let times = drain.hashes.iter().filter(|other| **other == hash).count();
        if times > 0 && last.is_none_or(|last: EventTime| last.seq < drain.arrived.seq) {
            (taken, last) = (taken + times, Some(drain.answered));
        }
    }
    taken
}
